"""What a line calls: the target, script or module of the project, and the lines that it runs."""

import re
from collections.abc import Iterator

from atlas_retry.config.ci.script import commands_of
from atlas_retry.config.init import tasks
from atlas_retry.config.init.commands import installs
from atlas_retry.config.init.dependencies import NODE
from atlas_retry.config.init.tasks import Task
from atlas_retry.config.project import ProjectFiles
from atlas_retry.diagnostics.tools import ASSIGNED, bare
from atlas_retry.patterns import regex, words

RUNNERS = words("make gmake just task rake composer poe pdm hatch mage") | NODE.keys()
WHOLE = {"tox", "nox", "rake"}
"""Runners that run tests unless a target is given."""
INTERPRETERS = {"sh", "bash", "bun", "node", "ruby", "python", "python3"}
MODULE = regex(r"python[\d.]* (?:-\w+ )*?-m (?P<module>[\w.]+)(?: |$)")
OWN_ENVIRONMENT = ("tox ", "nox ")
"""Runners that install into their own environment."""
DEFAULT_GOALS = {
    "mvn": (r"<defaultGoal>([^<]+)</defaultGoal>", "pom.xml"),
    "gradle": (r"(?m)^\s*defaultTasks\W+([\w:]+)", "build.gradle", "build.gradle.kts"),
}
"""What a build file says of its default goals, and where it may be."""
WITH_NEEDS = ("make", "just")
"""Runners whose targets list prerequisites after the colon."""
MARKS_OF_A_RECIPE = " \t@+-"
PIECE = regex(r"(?:\"[^\"]*\"|'[^']*'|\$\([^)]*\)|\\.|[^;&\n'\"\\]|(?<!&)&(?!&)|['\"\\])+")
CHAINS = regex(r"(?:run-s|run-p|npm-run-all2?)\s+(.*)")


def called(project: ProjectFiles, line: str) -> Task | None:
    """The target, script or session that a line calls, if the project has it.

    Maven and Gradle run what the build file says, if the line has no goal.
    """
    plain = re.sub(rf"^{ASSIGNED}", "", line)
    calls = (_target(project, line) for line in dict.fromkeys((plain, bare(line))))
    start = re.match(r"(?:\./)?(mvn|gradle)w?(?: -\S+)*$", plain)
    if (found := next(filter(None, calls), None)) or not start:
        return found
    pattern, *files = DEFAULT_GOALS[start[1]]
    texts = (project.text(path) for path in files)
    goals = re.search(pattern, next(filter(None, texts), ""))
    return Task("default", start[0], f"{start[1]} {goals[1]}") if goals else None


def _target(project: ProjectFiles, line: str) -> Task | None:
    runner, *words = line.split() or [""]
    names = [word.strip("\"'") for word in words if not re.search(r"^-|=", word)]
    named = _named(project, runner, names) if runner in RUNNERS | WHOLE else None
    if named:
        return named
    path = (names[0] if runner in INTERPRETERS and names else runner).removeprefix("./")
    if "/" in f"{path}{runner}" and project.has(path):
        return Task(path, line, project.text(path))
    run = MODULE.match(line)
    folder = run["module"].replace(".", "/") if run else "-"
    is_own = project.has(f"{folder}/__main__.py") or project.has(f"{folder}.py")
    return Task(folder, line) if is_own else None


def _named(project: ProjectFiles, runner: str, names: list[str]) -> Task | None:
    """The task with one of these names; a script of package.json must exist."""
    task = tasks.find(project, runner, names)
    if task or runner in NODE:
        return task
    if not names and (task := tasks.default(project, runner)):
        return task
    if runner in WHOLE:
        names = names or ["test"]
    return Task(names[-1], runner) if names else None


def installing_line(project: ProjectFiles, line: str) -> str | None:
    """The first line among all that a command runs which installs; None if none does."""
    if installs(line):
        return line
    task = called(project, line) if line.split() else None
    every = lines_run(project, task, set()) if task else iter(())
    return next(filter(installs, every), None)


def lines_run(project: ProjectFiles, task: Task, known: set[str]) -> Iterator[str]:
    """The lines of a target and of those that it calls, each once."""
    if task.run.startswith(OWN_ENVIRONMENT):
        return
    for line in _lines_in(task):
        if line not in known:
            known.add(line)
            yield line
            inner = called(project, line) if line.split() else None
            if inner:
                yield from lines_run(project, inner, known)


def _lines_in(task: Task) -> Iterator[str]:
    if task.name.endswith(".sh"):
        for command in commands_of(task.body, ".", {}):
            yield from command.inner
        return
    runner, body = task.run.partition(" ")[0], task.body
    if runner in WITH_NEEDS:
        needs, _, body = body.partition("\n")
        yield from (f"{runner} {name}" for name in needs.partition("#")[0].split())
    body = re.sub(r"\\\n\s*", " ", re.sub(r"(?m)^\s*#.*$", "", body))
    body = re.sub(r"\|\|?", "\n", body.replace("$(MAKE)", "make"))
    for piece in PIECE.findall(body):
        line = re.sub(rf"^{ASSIGNED}", "", " ".join(piece.strip(MARKS_OF_A_RECIPE).split()))
        chain = CHAINS.match(bare(line))
        names = chain[1].split() if chain else []
        yield from (f"npm run {name}" for name in names if not name.startswith("-"))
        if not chain:
            yield line
