"""JUnit XML for Jenkins, GitLab and GitHub's test reporters: one suite per gate.

There is no official schema; element order and attributes follow Jenkins' `junit-10.xsd`.
"""

from collections import Counter
from collections.abc import Iterable
from xml.etree import ElementTree as ET

from atlas_retry.model import Diagnostic, GateResult, Status
from atlas_retry.reports.findings import TOOL
from atlas_retry.reports.phrases import plain
from atlas_retry.reports.problems import position, problems
from atlas_retry.reports.subject import Subject

COULD_NOT_RUN = (Status.BROKEN, Status.TIMED_OUT)
_RED = ("failure", "error")
_CASE = ("classname", "name", "file", "line", "time")


def report(subject: Subject) -> str:
    """One suite per gate, with the cases of the gate's own JUnit report if it wrote one.

    Otherwise a passing gate is one case, and a failing one has a case per problem.
    """
    root = _element("testsuites", name=f"atlas {subject.workspace.name}")
    for result in subject.validation.results:
        root.append(_suite(result, subject.junit.get(result.log_path or "")))
    if subject.findings:
        # no cases: the guard's answers are not tests
        suite = _element("testsuite", name=TOOL, tests=0, failures=0, errors=0)
        answers = (
            (f.answer.word, f"{f.answer.where}: {f.answer.rule}: {f.sentence}")
            for f in subject.findings
        )
        suite.append(_properties(answers))
        root.append(suite)
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    root.set("time", f"{subject.validation.duration_ms / 1000:.3f}")
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(result: GateResult, own: bytes | None) -> ET.Element:
    tests = _own(own) if own else []
    cases = [_copied(result, test) for test in tests]
    red = [test for test in tests if any(test.find(kind) is not None for kind in _RED)]
    if not red and not (cases and result.success):
        cases += _cases(result)
    suite = _element(
        "testsuite",
        name=result.name,
        tests=len(cases),
        failures=sum(case.find("failure") is not None for case in cases),
        errors=sum(case.find("error") is not None for case in cases),
        skipped=sum(case.find("skipped") is not None for case in cases),
        time=f"{result.duration_ms / 1000:.3f}",
        timestamp=result.started_at[:19] or None,
    )
    names = ("kind", "command", "status", "exit_code", "required")
    suite.append(_properties((name, str(getattr(result, name))) for name in names))
    suite.extend(cases)
    for name, text in (("system-out", result.stdout), ("system-err", result.stderr)):
        ET.SubElement(suite, name).text = plain(text)
    return suite


def _properties(values: Iterable[tuple[str, str]]) -> ET.Element:
    properties = ET.Element("properties")
    properties.extend(_element("property", name=name, value=value) for name, value in values)
    return properties


def _own(content: bytes) -> list[ET.Element]:
    """The cases that the gate's runner wrote; empty if it is not XML. A DTD is refused."""
    from defusedxml import ElementTree as Safe

    try:
        return list(Safe.fromstring(content, forbid_dtd=True).iter("testcase"))
    except (ET.ParseError, ValueError):
        return []


def _copied(result: GateResult, case: ET.Element) -> ET.Element:
    copy = _element("testcase", **{name: case.get(name) for name in _CASE})
    for kind in (*_RED, "skipped"):
        for child in case.findall(kind):
            name = kind if result.required else "skipped"
            end = _element(name, message=child.get("message"), type=child.get("type"))
            end.text = plain(child.text or "")
            copy.append(end)
    return copy


def _cases(result: GateResult) -> list[ET.Element]:
    classname = f"atlas.{result.kind}.{result.name}"
    if result.success:
        # the time is known only here: a runner's output has no times of tests
        time = f"{result.duration_ms / 1000:.3f}"
        case = _element("testcase", classname=classname, name=result.name, time=time)
        if result.status is Status.SKIPPED:
            case.append(_element("skipped", message=result.error or "skipped"))
        return [case]
    seen: Counter[str] = Counter()
    cases = []
    for problem in problems(result):
        # no line numbers, so that a case keeps its history when lines move; each name is unique
        known = (problem.path, problem.symbol, problem.rule_id)
        name = problem.test_id or " ".join(filter(None, known)) or result.name
        seen[name] += 1
        if seen[name] > 1:
            name = f"{name} ({seen[name]})"
        case = _element("testcase", classname=classname, name=name, file=problem.path)
        case.append(_end(result, problem))
        cases.append(case)
    return cases


def _end(result: GateResult, problem: Diagnostic) -> ET.Element:
    kind = "error" if result.status in COULD_NOT_RUN else "failure"
    end = _element(kind, message=problem.message, type=problem.rule_id or result.status)
    if not result.required:
        end = _element("skipped", message=problem.message)
    end.text = plain(problem.text or f"{position(problem)} {problem.message}".strip())
    return end


def _element(tag: str, /, **values: object) -> ET.Element:
    known = {name: plain(str(value)) for name, value in values.items() if value is not None}
    return ET.Element(tag, known)
