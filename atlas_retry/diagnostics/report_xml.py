"""Reads XML reports by their root element. Entities and DTDs are refused.

https://github.com/testmoapp/junitxml describes the variants of JUnit's; the others:
https://checkstyle.org, https://pmd.github.io, https://docs.nunit.org (Test Result XML Format),
https://xunit.net/docs/format-xml-v2, and vstst.xsd of Visual Studio for TRX.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from atlas_retry.diagnostics.failures import (
    above,
    failure,
    go_frames,
    java_frames,
    javascript_frames,
    python_frames,
)
from atlas_retry.diagnostics.pytest_log import explain
from atlas_retry.diagnostics.table import LEVELS, region_of
from atlas_retry.diagnostics.values import Report, UnknownReportError
from atlas_retry.model import Diagnostic, Frame, Level
from atlas_retry.patterns import regex

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_STACK = regex(r"^\s*(?:at |\u276f )")


_DOTNET = regex(r"(?m)^\s*at (?P<function>.+?) in (?P<path>.+):line (?P<line>\d{1,9})\s*$")


def read_xml(content: bytes, name: str | None = None) -> Report:
    """The problems, and whether any test ran; `name` is the format, None = any.

    Raises ValueError for content that is no XML, UnknownReportError for another root element.
    """
    from defusedxml import ElementTree

    try:
        root = ElementTree.fromstring(content, forbid_dtd=True)
    except ElementTree.ParseError as error:
        raise ValueError(str(error)) from error
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    known = _ROOTS.get(root.tag)
    if known is None or (name is not None and known[0] != name):
        raise UnknownReportError(f"<{root.tag}>")
    return known[1](root)


def _junit(root: "Element") -> Report:
    """A test may have failed several times, as in a rerun; the first is its problem."""
    cases = list(root.iter("testcase"))
    problems: list[Diagnostic] = []
    for case in cases:
        elements = (*case.findall("failure"), *case.findall("error"))
        if failures := [_failure(case, element) for element in elements]:
            messages = (each.message for each in failures)
            problems.append(replace(failures[0], message="\n".join(dict.fromkeys(messages))))
    return Report((*problems,), any(case.find("skipped") is None for case in cases))


def _listed(root: "Element", *, tag: str, tool: str, line: str, column: str) -> Report:
    """The problems below the elements of their files."""
    problems: list[Diagnostic] = []
    for file in root.iter("file"):
        for one in file.iter(tag):
            rule = one.get("source") or one.get("rule") or ""
            level = one.get("severity") or one.get("priority") or "error"
            place = {"line": one.get(line, ""), "column": one.get(column, "")}
            problem = Diagnostic(
                tool=tool,
                rule_id=rule.rpartition(".")[2] or None,
                level=LEVELS.get(level.lower(), Level.WARNING if level in "345" else Level.ERROR),
                message=(one.get("message") or one.text or "").strip(),
                path=file.get("name"),
                region=region_of(place),
            )
            problems.append(problem)
    return Report((*problems,))


def _nunit(root: "Element") -> Report:
    """Of NUnit 2 and 3, which spell results differently."""
    cases = list(root.iter("test-case"))
    ran = any(case.get("executed") != "False" and case.get("result") != "Skipped" for case in cases)
    bad = ("failed", "failure", "error")
    failed = (
        case
        for case in cases
        if (case.get("result") or ("failure" if case.get("success") == "False" else "")).lower()
        in bad
    )
    return Report(
        tuple(_dotnet("nunit", c.get("fullname") or c.get("name"), c) for c in failed), ran
    )


def _xunit(root: "Element") -> Report:
    tests = list(root.iter("test"))
    failed = (test for test in tests if test.get("result") == "Fail")
    ran = any(test.get("result") != "Skip" for test in tests)
    return Report(tuple(_dotnet("xunit", test.get("name"), test) for test in failed), ran)


def _trx(root: "Element") -> Report:
    results = list(root.iter("UnitTestResult"))
    bad = ("Failed", "Error", "Timeout", "Aborted")
    owners: dict[str | None, str] = {}
    for test in root.iter("UnitTest"):
        for method in test.findall("TestMethod"):
            owners[test.get("id")] = method.get("className", "").partition(",")[0]
    problems: list[Diagnostic] = []
    for one in (one for one in results if one.get("outcome") in bad):
        owner, name = owners.get(one.get("testId"), ""), one.get("testName")
        is_short = owner and name and not name.startswith(owner.rpartition(".")[0] or owner)
        problems.append(_dotnet("trx", f"{owner}.{name}" if is_short else name, one))
    return Report((*problems,), any(one.get("outcome") != "NotExecuted" for one in results))


def _dotnet(tool: str, name: str | None, element: "Element") -> Diagnostic:
    message, stack = (
        next((e.text or "" for e in element.iter() if e.tag.lower() == tag), "")
        for tag in ("message", "stacktrace" if tool == "trx" else "stack-trace")
    )
    frames = tuple(
        Frame(path=m["path"].replace("\\", "/"), line=int(m["line"]), function=m["function"])
        for m in reversed([*_DOTNET.finditer(stack.replace("\r", ""))])
    )
    lines = message.replace("\r", "").strip("\n").split("\n")
    problem = failure(tool, lines, frames, name, {})
    return replace(problem, text=f"{message.strip()}\n{stack.strip()}".strip())


def _failure(case: "Element", element: "Element") -> Diagnostic:
    text = (element.text or "").strip("\n")
    message = element.get("message", "").strip() or text.strip().partition("\n")[0]
    owner, name = case.get("classname", ""), case.get("name", "")
    problem = _explained(text.split("\n"), owner)
    rule = element.get("type") or problem.rule_id
    place = {"path": case.get("file", ""), "line": case.get("line", "")}
    if problem.path is None and place["path"]:
        problem = replace(problem, path=place["path"], region=region_of(place))
    # the node id for pytest, else class and name
    path = problem.frames[0].path if problem.frames else ""
    module = path.removesuffix(".py").replace("/", ".")
    if path.endswith(".py") and owner.startswith(module):
        owner = path + owner.removeprefix(module).replace(".", "::")
    return replace(
        problem,
        rule_id=rule.rpartition(".")[2] if rule else None,
        # runners truncate or omit the attribute
        message=max(message, problem.message if text else "", key=len),
        test_id="::".join(filter(None, (owner, name))) or None,
        text=text or message,
    )


def _explained(lines: list[str], owner: str) -> Diagnostic:
    """Place and frames from the body, in any language."""
    if any(line.startswith(("E  ", "Traceback (most")) for line in lines):
        return replace(explain(lines), tool="junit")
    readers: tuple[Callable[[list[str]], tuple[Frame, ...]], ...] = (
        lambda body: java_frames(body, owner),
        javascript_frames,
        python_frames,
        go_frames,
    )
    frames = next(filter(None, (read(lines) for read in readers)), ())
    return failure("junit", above(lines, _STACK), frames, None, {})


_ROOTS: Mapping[str, tuple[str, Callable[["Element"], Report]]] = {
    "testsuites": ("junit", _junit),
    "testsuite": ("junit", _junit),
    "checkstyle": (
        "checkstyle",
        partial(_listed, tag="error", tool="checkstyle", line="line", column="column"),
    ),
    "pmd": (
        "pmd",
        partial(_listed, tag="violation", tool="pmd", line="beginline", column="begincolumn"),
    ),
    "test-run": ("nunit", _nunit),
    "test-results": ("nunit", _nunit),
    "test-suite": ("nunit", _nunit),
    "assemblies": ("xunit", _xunit),
    "assembly": ("xunit", _xunit),
    "TestRun": ("trx", _trx),
}
"""Format and reader by root element."""

XML_FORMATS = tuple(dict.fromkeys(name for name, _ in _ROOTS.values()))
