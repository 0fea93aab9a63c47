"""Splits what pre-commit and prek print into the output of each failed hook."""

import re
from collections.abc import Iterator, Sequence
from itertools import filterfalse, islice, pairwise

from atlas_retry.diagnostics.failures import shortened
from atlas_retry.diagnostics.values import Log, Parser, Reading, Section
from atlas_retry.model import Diagnostic

# https://pre-commit.com/#pre-commit-run; pre_commit/commands/run.py: _run_single_hook
_HOOK = re.compile(r"^- hook id: (\S+)$")
_FACT = re.compile(r"^- (?:hook id|exit code|duration|files were modified by this hook)\b")
_MODIFIED = "- files were modified by this hook"
_MAX_SECTIONS = 500
_OUTCOMES = ("Passed", "Failed", "Skipped")


def _read(log: Log) -> Reading:
    lines = log.lines
    titles = [i for i, line in enumerate(lines) if _is_title(line)]
    return Reading(
        sections=tuple(islice(_sections(lines, [*titles, len(lines)]), _MAX_SECTIONS)),
    )


def _is_title(line: str) -> bool:
    return line.endswith(_OUTCOMES) and "..." in line


def _sections(lines: Sequence[str], titles: Sequence[int]) -> Iterator[Section]:
    for title, after in pairwise(titles):
        hook = _HOOK.match(lines[title + 1]) if title + 1 < after else None
        if hook and lines[title].endswith("Failed"):
            yield Section(hook[1], title + 1, after - 1, _hook(hook[1], lines[title + 1 : after]))


def _hook(name: str, lines: Sequence[str]) -> Diagnostic:
    """Stands for a hook whose output says nothing that can be read."""
    printed = [line for line in filterfalse(_FACT.match, lines) if line.strip()]
    modified = "files were modified by this hook" if _MODIFIED in lines else "the hook failed"
    return Diagnostic(tool=name, rule_id="hook", message=shortened([modified, *printed]))


PRE_COMMIT = Parser(
    name="pre-commit",
    commands=("pre-commit", "prek"),
    marks=("\n- hook id: ",),
    divides=True,
    read=_read,
)
