"""Reads JUnit XML, which every test runner can write. Entities and DTDs are refused.

https://github.com/testmoapp/junitxml describes what runners put into it.
"""

import re
from collections.abc import Callable, Iterator
from itertools import chain
from xml.etree.ElementTree import Element

from msgspec.structs import replace

from atlas_retry.diagnostics import traceback
from atlas_retry.diagnostics.failures import (
    above,
    failure,
    go_frames,
    java_frames,
    javascript_frames,
)
from atlas_retry.diagnostics.pytest_log import explain
from atlas_retry.diagnostics.table import region_of
from atlas_retry.model import Diagnostic, Frame

_STACK = re.compile(r"^\s*(?:at |\u276f )")


def junit(content: bytes) -> tuple[tuple[Diagnostic, ...], bool]:
    """The failures, and whether any test ran. Raises ValueError for what is no such XML."""
    from defusedxml import ElementTree

    try:
        root = ElementTree.fromstring(content, forbid_dtd=True)
    except ElementTree.ParseError as error:
        raise ValueError(str(error)) from error
    cases = list(root.iter("testcase"))
    ran = any(case.find("skipped") is None for case in cases)
    return tuple(chain.from_iterable(map(_failures, cases))), ran


def _failures(case: Element) -> Iterator[Diagnostic]:
    for kind in ("failure", "error"):
        for element in case.findall(kind):
            yield _failure(case, element)


def _failure(case: Element, element: Element) -> Diagnostic:
    text = (element.text or "").strip("\n")
    message = element.get("message", "").strip() or text.strip().partition("\n")[0]
    owner, name = case.get("classname", ""), case.get("name", "")
    problem = _explained(text.split("\n"), owner)
    rule = element.get("type") or problem.rule_id
    place = {"path": case.get("file", ""), "line": case.get("line", "")}
    if problem.path is None and place["path"]:
        problem = replace(problem, path=place["path"], region=region_of(place))
    return replace(
        problem,
        rule_id=rule.rpartition(".")[2] if rule else None,
        # runners cut the attribute, or leave it out
        message=max(message, problem.message if text else "", key=len),
        test_id=_test_id(owner, name, problem.frames),
        text=text or message,
    )


def _explained(lines: list[str], owner: str) -> Diagnostic:
    """What the body says of place and frames, whatever language it is from."""
    if any(line.startswith(("E  ", "Traceback (most")) for line in lines):
        return replace(explain(lines), tool="junit")
    readers: tuple[Callable[[list[str]], tuple[Frame, ...]], ...] = (
        lambda body: java_frames(body, owner),
        javascript_frames,
        traceback.frames_of,
        go_frames,
    )
    frames = next(filter(None, (read(lines) for read in readers)), ())
    return failure("junit", above(lines, _STACK), frames, None, {})


def _test_id(owner: str, name: str, frames: tuple[Frame, ...]) -> str | None:
    """The node id where the case is pytest's, else class and name."""
    path = frames[0].path if frames else ""
    module = path.removesuffix(".py").replace("/", ".")
    if path.endswith(".py") and owner.startswith(module):
        owner = path + owner.removeprefix(module).replace(".", "::")
    return "::".join(filter(None, (owner, name))) or None
