"""JUnit XML as Jenkins, GitLab and GitHub's test reporters read it: a suite per gate.

There is no official schema; element order and attributes follow Jenkins' `junit-10.xsd`.
"""

from xml.etree import ElementTree as ET

from atlas_retry.model import Diagnostic, GateResult, Status
from atlas_retry.reports.phrases import complaints, place, plain
from atlas_retry.reports.subject import Subject

COULD_NOT_RUN = (Status.BROKEN, Status.TIMED_OUT)


def report(subject: Subject) -> str:
    """A suite per gate; a gate that passes is one case, one that fails a case per complaint."""
    root = ET.Element("testsuites", _attributes(name=f"atlas {subject.workspace.name}"))
    for result in subject.validation.results:
        root.append(_suite(result))
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    root.set("time", f"{subject.validation.duration_ms / 1000:.3f}")
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(result: GateResult) -> ET.Element:
    cases = _cases(result)
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
    properties = ET.SubElement(suite, "properties")
    for name in ("kind", "command", "status", "exit_code", "required"):
        value = str(getattr(result, name))
        ET.SubElement(properties, "property", _attributes(name=name, value=value))
    suite.extend(cases)
    for name, text in (("system-out", result.stdout), ("system-err", result.stderr)):
        ET.SubElement(suite, name).text = plain(text)
    return suite


def _cases(result: GateResult) -> list[ET.Element]:
    if result.success:
        case = _case(result, result.name)
        if result.status is Status.SKIPPED:
            ET.SubElement(case, "skipped", _attributes(message=result.error or "skipped"))
        return [case]
    return [_failed(result, complaint) for complaint in complaints(result)]


def _failed(result: GateResult, complaint: Diagnostic) -> ET.Element:
    where = complaint.test_id or " ".join(filter(None, (place(complaint), complaint.rule_id)))
    case = _case(result, where or result.name, file=complaint.path)
    element = "failure" if result.required else "skipped"
    if result.required and result.status in COULD_NOT_RUN:
        element = "error"
    told = _attributes(message=complaint.message)
    if element != "skipped":
        told |= _attributes(type=complaint.rule_id or result.status)
    outcome = ET.SubElement(case, element, told)
    outcome.text = plain(complaint.text or f"{place(complaint)} {complaint.message}".strip())
    return case


def _case(result: GateResult, name: str, *, file: str | None = None) -> ET.Element:
    return ET.Element(
        "testcase",
        _attributes(
            classname=f"atlas.{result.kind}.{result.name}",
            name=name,
            file=file,
            time=f"{result.duration_ms / 1000:.3f}",
        ),
    )


def _attributes(**values: object) -> dict[str, str]:
    return {name: plain(str(value)) for name, value in values.items() if value is not None}
