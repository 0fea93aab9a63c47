"""Reads which hooks failed from what pre-commit and prek print. What a hook runs has a reader."""

import re
from collections.abc import Iterator, Sequence
from itertools import filterfalse, pairwise

from atlas_retry.diagnostics.failures import shortened
from atlas_retry.diagnostics.values import Located, Log, Parser
from atlas_retry.model import Diagnostic

# https://pre-commit.com/#pre-commit-run; pre_commit/commands/run.py: _run_single_hook
_HOOK = re.compile(r"^- hook id: (\S+)$")
_FACT = re.compile(r"^- (?:hook id|exit code|duration|files were modified by this hook)\b")
_MODIFIED = "- files were modified by this hook"
_OUTCOMES = ("Passed", "Failed", "Skipped")


def hooks_of(lines: Sequence[str]) -> Iterator[str]:
    """The ids of the hooks that failed, which often are the names of the tools they run."""
    return (hook[1] for hook in map(_HOOK.match, lines) if hook)


def _read(log: Log) -> Iterator[Located]:
    lines = log.lines
    titles = [i for i, line in enumerate(lines) if _is_title(line)]
    for title, after in pairwise([*titles, len(lines)]):
        hook = _HOOK.match(lines[title + 1]) if title + 1 < after else None
        if hook and lines[title].endswith("Failed"):
            problem = _hook(hook[1], lines[title + 1 : after])
            yield Located(problem, title + 1, after - 1, otherwise=True)


def _is_title(line: str) -> bool:
    return line.endswith(_OUTCOMES) and "..." in line


def _hook(name: str, lines: Sequence[str]) -> Diagnostic:
    """Stands for a hook whose output says nothing that can be read."""
    printed = [line for line in filterfalse(_FACT.match, lines) if line.strip()]
    modified = "files were modified by this hook" if _MODIFIED in lines else "the hook failed"
    return Diagnostic(tool=name, rule_id="hook", message=shortened([modified, *printed]))


PRE_COMMIT = Parser(
    name="pre-commit",
    commands=("pre-commit", "prek"),
    marks=("\n- hook id: ",),
    read=_read,
)
