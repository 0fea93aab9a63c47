"""What a command installs on the way: by its own line, or in a target that it runs."""

import re
from collections.abc import Iterator

from atlas_retry.config.init.ci import PIECE
from atlas_retry.config.init.ci_gates import called
from atlas_retry.config.init.commands import installs
from atlas_retry.config.init.project import ProjectFiles
from atlas_retry.config.init.tasks import Task
from atlas_retry.diagnostics.tools import ASSIGNED

OWN_ENVIRONMENT = ("tox ", "nox ")
"""Runners that install into an environment of their own."""
WITH_NEEDS = ("make", "just")
"""Runners whose targets name other targets behind the colon, which run first."""
MARKS_OF_A_RECIPE = " \t@+-"


def line_of(project: ProjectFiles, line: str) -> str | None:
    """The first line that installs of all that a command runs; None if there is none."""
    return next(filter(installs, _lines(project, line, set())), None)


def _lines(project: ProjectFiles, line: str, known: set[str]) -> Iterator[str]:
    """The line, and those of each target that it calls, once."""
    if line in known:
        return
    known.add(line)
    yield line
    task = called(project, line) if line.split() else None
    if task and not task.run.startswith(OWN_ENVIRONMENT):
        for inner in _inside(task):
            yield from _lines(project, inner, known)


def _inside(task: Task) -> Iterator[str]:
    runner, body = task.run.partition(" ")[0], task.body
    if runner in WITH_NEEDS:
        needs, _, body = body.partition("\n")
        yield from (f"{runner} {name}" for name in needs.partition("#")[0].split())
    body = re.sub(r"\\\n\s*", " ", re.sub(r"(?m)^\s*#.*$", "", body))
    body = re.sub(r"\|\|?", "\n", body.replace("$(MAKE)", "make"))
    for piece in PIECE.findall(body):
        yield re.sub(rf"^{ASSIGNED}", "", " ".join(piece.strip(MARKS_OF_A_RECIPE).split()))
