"""JUnit XML as Jenkins, GitLab and GitHub's test reporters read it: a suite per gate.

There is no official schema; element order and attributes follow Jenkins' `junit-10.xsd`.
"""

from collections import Counter
from collections.abc import Iterable
from xml.etree import ElementTree as ET

from atlas_retry.model import Diagnostic, GateResult, Status
from atlas_retry.reports.findings import TOOL, Finding
from atlas_retry.reports.phrases import plain
from atlas_retry.reports.problems import position, problems
from atlas_retry.reports.subject import Subject

COULD_NOT_RUN = (Status.BROKEN, Status.TIMED_OUT)


def report(subject: Subject) -> str:
    """A suite per gate, with the cases of its own JUnit report where it has written one.

    Else a gate that passes is one case, and one that fails is a case per problem.
    """
    root = ET.Element("testsuites", _attributes(name=f"atlas {subject.workspace.name}"))
    for result in subject.validation.results:
        root.append(_suite(result, subject.junit.get(result.log_path or "")))
    if subject.findings:
        root.append(_answered(subject.findings))
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    root.set("time", f"{subject.validation.duration_ms / 1000:.3f}")
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _is_red(test: ET.Element) -> bool:
    return any(test.find(kind) is not None for kind in _RED)


def _suite(result: GateResult, own: bytes | None) -> ET.Element:
    tests = _own(own) if own else []
    cases = [_copied(result, test) for test in tests]
    if not any(map(_is_red, tests)):
        cases += [] if cases and result.success else _cases(result)
    suite = ET.Element(
        "testsuite",
        _attributes(
            name=result.name,
            tests=len(cases),
            failures=sum(case.find("failure") is not None for case in cases),
            errors=sum(case.find("error") is not None for case in cases),
            skipped=sum(case.find("skipped") is not None for case in cases),
            time=f"{result.duration_ms / 1000:.3f}",
            timestamp=result.started_at[:19] or None,
        ),
    )
    names = ("kind", "command", "status", "exit_code", "required")
    suite.append(_properties((name, str(getattr(result, name))) for name in names))
    suite.extend(cases)
    for name, text in (("system-out", result.stdout), ("system-err", result.stderr)):
        ET.SubElement(suite, name).text = plain(text)
    return suite


def _answered(found: Iterable[Finding]) -> ET.Element:
    """A suite without a case: what the guard answered is no test that passed or failed."""
    suite = ET.Element("testsuite", _attributes(name=TOOL, tests=0, failures=0, errors=0))
    told = ((one.answer, f"{one.where}: {one.seen.rule}: {one.sentence}") for one in found)
    suite.append(_properties(told))
    return suite


def _properties(told: Iterable[tuple[str, str]]) -> ET.Element:
    properties = ET.Element("properties")
    for name, value in told:
        ET.SubElement(properties, "property", _attributes(name=name, value=value))
    return properties


def _own(content: bytes) -> list[ET.Element]:
    """The cases that the gate's runner wrote; none where it is no XML. A DTD is refused."""
    from defusedxml import ElementTree as Safe

    try:
        root = Safe.fromstring(content, forbid_dtd=True)
    except (ET.ParseError, ValueError):
        return []
    return list(root.iter("testcase"))


def _copied(result: GateResult, case: ET.Element) -> ET.Element:
    copy = ET.Element("testcase", _attributes(**{name: case.get(name) for name in _CASE}))
    for kind in (*_RED, "skipped"):
        for child in case.findall(kind):
            told = _attributes(message=child.get("message"), type=child.get("type"))
            name = kind if result.required else "skipped"
            ET.SubElement(copy, name, told).text = plain(child.text or "")
    return copy


_RED = ("failure", "error")
_CASE = ("classname", "name", "file", "line", "time")


def _cases(result: GateResult) -> list[ET.Element]:
    if result.success:
        case = _case(result, result.name, time=f"{result.duration_ms / 1000:.3f}")
        if result.status is Status.SKIPPED:
            ET.SubElement(case, "skipped", _attributes(message=result.error or "skipped"))
        return [case]
    seen: Counter[str] = Counter()
    return [_failed(result, problem, seen) for problem in problems(result)]


def _failed(result: GateResult, problem: Diagnostic, seen: Counter[str]) -> ET.Element:
    case = _case(result, _name(result, problem, seen), file=problem.path)
    element = "failure" if result.required else "skipped"
    if result.required and result.status in COULD_NOT_RUN:
        element = "error"
    told = _attributes(message=problem.message)
    if element != "skipped":
        told |= _attributes(type=problem.rule_id or result.status)
    outcome = ET.SubElement(case, element, told)
    outcome.text = plain(problem.text or f"{position(problem)} {problem.message}".strip())
    return case


def _name(result: GateResult, problem: Diagnostic, seen: Counter[str]) -> str:
    """Without line numbers, so that the history of a case outlives a move; each only once."""
    known = (problem.path, problem.symbol, problem.rule_id)
    name = problem.test_id or " ".join(filter(None, known)) or result.name
    seen[name] += 1
    return name if seen[name] == 1 else f"{name} ({seen[name]})"


def _case(
    result: GateResult, name: str, *, file: str | None = None, time: str | None = None
) -> ET.Element:
    """`time` only where it is known: a runner's output does not tell how long one test took."""
    classname = f"atlas.{result.kind}.{result.name}"
    return ET.Element("testcase", _attributes(classname=classname, name=name, file=file, time=time))


def _attributes(**values: object) -> dict[str, str]:
    return {name: plain(str(value)) for name, value in values.items() if value is not None}
