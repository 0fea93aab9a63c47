"""Formats of the report files that gates can write; each JSON format is one row.

Entities and DTDs in JUnit's XML are refused; https://github.com/testmoapp/junitxml describes the
variants of runners.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
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
from atlas_retry.model import Diagnostic, Frame, Level, Region
from atlas_retry.patterns import regex

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_LEVELS = {**LEVELS, "1": Level.WARNING}
"""ESLint uses numbers as severities."""


class Report(Struct, frozen=True):
    """The content of a report file."""

    diagnostics: tuple[Diagnostic, ...]
    ran: bool | None = None
    """Whether any test ran; None if the format has no tests."""


class JsonFormat(Struct, frozen=True, kw_only=True):
    """Paths of a problem's fields: names joined by dots; of a list, the first item."""

    lists: tuple[str, ...]
    """The nested lists that contain the problems, which inherit the fields around them."""
    tool: str
    """The tool's name, or its path."""
    path: str
    message: str = "message"
    rule: str
    no_rule: str | None = None
    level: str = ""
    usual_level: Level = Level.ERROR
    region: tuple[str, str, str, str]
    """Paths of line, column, end line and end column."""


_FORMATS: Mapping[str, JsonFormat] = {
    # SARIF 2.1.0 §3.27
    "sarif": JsonFormat(
        lists=("runs", "results"),
        tool="tool.driver.name",
        path="locations.physicalLocation.artifactLocation.uri",
        message="message.text",
        rule="ruleId",
        level="level",
        usual_level=Level.WARNING,
        region=(
            "locations.physicalLocation.region.startLine",
            "locations.physicalLocation.region.startColumn",
            "locations.physicalLocation.region.endLine",
            "locations.physicalLocation.region.endColumn",
        ),
    ),
    # https://eslint.org/docs/latest/use/formatters/#json
    "eslint-json": JsonFormat(
        lists=("", "messages"),
        tool="eslint",
        path="filePath",
        rule="ruleId",
        level="severity",
        region=("line", "column", "endLine", "endColumn"),
    ),
    # https://docs.astral.sh/ruff/settings/#output-format
    "ruff-json": JsonFormat(
        lists=("",),
        tool="ruff",
        path="filename",
        rule="code",
        no_rule="invalid-syntax",
        region=("location.row", "location.column", "end_location.row", "end_location.column"),
    ),
}


def _json(row: JsonFormat, content: bytes) -> Report:
    document: object = msgspec.json.decode(content)
    whole = document if isinstance(document, dict) else {"": document}
    problems = (one for one in _problems(whole, row.lists) if _counts(one))
    return Report(tuple(_diagnostic(row, one) for one in problems))


def _problems(around: dict[str, object], lists: Sequence[str]) -> Iterator[dict[str, object]]:
    for one in msgspec.convert(around.get(lists[0]), list[dict[str, object]]):
        problem = around | one
        if not lists[1:]:
            yield problem
        elif problem.get(lists[1]):  # a SARIF run may have no results
            yield from _problems(problem, lists[1:])


def _counts(one: Mapping[str, object]) -> bool:
    """Whether it is a problem; in SARIF not if suppressed (§3.27.23) or not `fail` (§3.27.9)."""
    return one.get("kind", "fail") == "fail" and not one.get("suppressions")


def _diagnostic(row: JsonFormat, one: Mapping[str, object]) -> Diagnostic:
    message = value_at(one, row.message)
    if not isinstance(message, str):
        raise ValueError("a problem without a message")  # noqa: TRY004 - not such a report
    level = value_at(one, row.level)
    return Diagnostic(
        tool=(_text(one, row.tool) or row.tool).lower(),
        rule_id=_text(one, row.rule) or row.no_rule,
        level=row.usual_level if level is None else _LEVELS.get(f"{level}".lower(), Level.ERROR),
        message=message,
        path=_text(one, row.path),
        region=_region(row, one),
    )


def _region(row: JsonFormat, one: Mapping[str, object]) -> Region | None:
    line, column, end_line, end_column = (_number(one, path) for path in row.region)
    if line is None:
        return None
    return Region(start_line=line, start_column=column, end_line=end_line, end_column=end_column)


def value_at(value: object, path: str) -> object:
    """The value at a path of names joined by dots, for a list in its first item; else None."""
    for name in path.split(".") if path else ("",):
        first = value[0] if isinstance(value, list) and value else value
        value = first.get(name) if name and isinstance(first, dict) else None
    return value


def _text(one: Mapping[str, object], path: str) -> str | None:
    value = value_at(one, path)
    return value if isinstance(value, str) and value else None


def _number(one: Mapping[str, object], path: str) -> int | None:
    value = value_at(one, path)
    return value if isinstance(value, int) and value > 0 else None


_STACK = regex(r"^\s*(?:at |\u276f )")


def junit(content: bytes) -> Report:
    """The failures, and whether any test ran. Raises ValueError for other content."""
    from defusedxml import ElementTree

    try:
        root = ElementTree.fromstring(content, forbid_dtd=True)
    except ElementTree.ParseError as error:
        raise ValueError(str(error)) from error
    cases = list(root.iter("testcase"))
    ran = any(case.find("skipped") is None for case in cases)
    return Report(tuple(chain.from_iterable(map(_failures, cases))), ran)


def _failures(case: "Element") -> Iterator[Diagnostic]:
    for kind in ("failure", "error"):
        for element in case.findall(kind):
            yield _failure(case, element)


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


REPORT_FORMATS: Mapping[str, Callable[[bytes], Report]] = {
    "junit": junit,
    **{name: partial(_json, row) for name, row in _FORMATS.items()},
}
"""Readers of the formats, which raise ValueError for other content."""


def read_report(name: str, content: bytes) -> Report | None:
    """The report, or None if the format is unknown or the content does not match it."""
    read = REPORT_FORMATS.get(name)
    try:
        return read(content.removeprefix(b"\xef\xbb\xbf")) if read else None
    except (ValueError, msgspec.DecodeError, RecursionError):
        return None
