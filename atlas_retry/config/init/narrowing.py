"""Narrower lines of a gate, for after an attempt and for `validate --changed`.

`run` decides and stays as it is. A line with `{files}` is proposed only for a tool that judges a
named file as it does one that it found itself; `run/trying.py` tries that. Starts nothing.
"""

import re
import shlex
from itertools import chain, pairwise
from posixpath import normpath

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.config.init.dependencies import manager_of, python_packages
from atlas_retry.config.init.values import Proposed
from atlas_retry.config.project import ProjectFiles, table
from atlas_retry.diagnostics.tools import bare
from atlas_retry.patterns import regex
from atlas_retry.text.file_names import PLACEHOLDER


class FileForm(Struct, frozen=True):
    """How a tool takes files."""

    start: str
    """How its lines begin."""
    options: str
    """Those by which it leaves out named files as it leaves out found ones."""
    files: str
    """What it finds itself."""
    unless: str = ""
    """A setting or option that it does not follow for named files."""
    needs: str = ""
    """A file without which it has no such option."""


SCRIPTS = "*.[jt]s *.[jt]sx *.[cm][jt]s *.vue *.svelte *.astro"
TEXTS = "*.css *.scss *.less *.html *.json *.json[c5] *.md *.mdx *.y*ml *.graphql"
PYTHON = "*.py *.pyi *.ipynb"
FORMS = (
    FileForm("ruff format", "--force-exclude", PYTHON, "include"),
    FileForm("ruff", "--force-exclude", PYTHON, "include"),
    FileForm("black", "", f"{PYTHON} !_build/ !buck-out/ !build/ !dist/ !venv/", "clude"),
    FileForm("isort", "--filter-files", "*.py *.pyi"),
    FileForm("flake8", "", "*.py", "exclude|filename"),
    FileForm("eslint", "--no-warn-ignored", SCRIPTS, needs="eslint.config.*"),
    FileForm("prettier", "--ignore-unknown", f"{SCRIPTS} {TEXTS} !package*.json"),
    FileForm(
        "biome",
        "--no-errors-on-unmatched --files-ignore-unknown=true",
        f"{SCRIPTS} {TEXTS} !package*.json",
    ),
    FileForm("shellcheck", "", "*.sh *.bash"),
)
_SETTINGS = ("!.*", "!*.config.*")
"""Not files that are settings: if one changed, all files are checked."""
_MAY_MATTER = (".*", "*.toml", "*.cfg", "*.ini", "*.json", "*.y*ml", "*.lock", "*.txt")
"""All that may be settings or versions of any of these tools."""
_ALONE = regex(r"""(?x) --[\w-]+=.* | -[ciqvw]
    | --(?:check|check-only|diff|fix|write|list-different|quiet|verbose|cache|no-[\w-]+) """)
"""Options after which no value of theirs follows."""
_SHELL = regex(r"[|&;<>$`(){}\n]|(?:^|\s)--(?:\s|$)")


def narrowed(project: ProjectFiles, proposed: Proposed) -> Proposed:
    """The proposal with a narrower line, if its tool has one. `project` is its folder."""
    if proposed.task:
        return proposed
    line = _typed(project, proposed)
    if line and (by_files := _by_files(project, line)):
        recheck, files = by_files
        taken = tuple(glob for glob in files if not glob.startswith("!"))
        inputs = dict.fromkeys((*taken, *_MAY_MATTER))
        return replace(proposed, recheck=recheck, files=files, inputs=tuple(inputs))
    tests = _of_tests(project, proposed, line)
    if not tests or PLACEHOLDER not in tests:
        return replace(proposed, recheck=tests)
    suffixes = "*.go" if tests.startswith("go ") else SCRIPTS
    return replace(proposed, recheck=tests, files=_globs(project, ["."], suffixes))


def _typed(project: ProjectFiles, proposed: Proposed) -> str | None:
    """The line that starts its tool; None for a script that does more."""
    if not proposed.body:
        return proposed.run
    is_plain = bare(proposed.body) == proposed.body and not _SHELL.search(proposed.body)
    return f"{manager_of(project).program}{proposed.body}" if is_plain else None


def without_files(proposed: Proposed) -> Proposed:
    """The proposal without a line for files that was not tried."""
    is_linter = bool(proposed.inputs)
    return replace(proposed, recheck=None, files=(), inputs=()) if is_linter else proposed


def _by_files(project: ProjectFiles, line: str) -> tuple[str, tuple[str, ...]] | None:
    """The line of a linter or formatter with `{files}`, and their globs."""
    rest = bare(line)
    if rest.startswith("test -z") and "gofmt -l" in rest:
        return f"! gofmt -l {PLACEHOLDER} 2>&1 | grep .", _globs(project, ["."], "*.go")
    form = next((one for one in FORMS if re.match(rf"{one.start}(?![\w.-])", rest)), None)
    if form is None or _SHELL.search(line) or not _holds(project, form, rest):
        return None
    start = f"{form.start} check" if rest.startswith(f"{form.start} check") else form.start
    options, places = _words(rest.removeprefix(start))
    globs = _globs(project, places, form.files)
    parts = (line.removesuffix(rest) + start, shlex.join(options), form.options, PLACEHOLDER)
    return (" ".join(filter(None, parts)), globs) if globs else None


def _words(line: str) -> tuple[list[str], list[str]]:
    """The options of a command with their values, and the files and folders."""
    try:
        words = shlex.split(line)
    except ValueError:  # an open quote: the place has no glob
        return [], [".."]
    options: list[str] = []
    places: list[str] = []
    for before, word in pairwise(["", *words]):
        is_value = before.startswith("-") and not _ALONE.fullmatch(before)
        (options if word.startswith("-") or is_value else places).append(word)
    return options, places or ["."]


def _holds(project: ProjectFiles, form: FileForm, line: str) -> bool:
    """Whether the project's own settings let the tool take files."""
    tool = form.start.partition(" ")[0]
    tables = (
        table(project.pyproject, "tool", tool),
        *(project.toml(name) for name in (f"{tool}.toml", f".{tool}.toml")),
        *(project.ini(name).get(tool, {}) for name in ("setup.cfg", "tox.ini", f".{tool}")),
    )
    said = " ".join((line, *chain.from_iterable(tables)))
    is_told = form.unless and re.search(form.unless, said)
    return not is_told and (not form.needs or project.first(form.needs) is not None)


def _globs(project: ProjectFiles, places: list[str], files: str) -> tuple[str, ...]:
    """Globs from the root of these files in these places of a folder; empty if there are none."""
    wanted = [glob for glob in files.split() if not glob.startswith("!")]
    of_places = [_of_place(project, place, wanted) for place in places]
    if not all(of_places):
        return ()
    return (*chain.from_iterable(of_places), *files.split()[len(wanted) :], *_SETTINGS)


def _of_place(project: ProjectFiles, place: str, wanted: list[str]) -> list[str]:
    at = normpath(f"{project.base}{place}")
    if "*" in place or project.has(normpath(place)):
        return [at] if "/" in at else []  # a glob without it would hold at any depth
    if at == ".":
        return wanted
    return [] if at.startswith(("..", "/")) else [f"{at}/**/{glob}" for glob in wanted]


AFFECTED = {
    "jest": " {}--findRelatedTests {{files}} --passWithNoTests --coverage=false",
    "vitest": " {}--changed --coverage.enabled=false",
}
"""What to add to a line to run the tests that a change affects, without coverage thresholds, which
are for all tests."""
_VITEST = regex(r"(.*\bvitest)(?: run)?((?: --?[\w.-]+(?:=\S+)?)*)")
PYTEST_FILES = ("pyproject.toml", "pytest.ini", "tox.ini", "setup.cfg")


def _of_tests(project: ProjectFiles, proposed: Proposed, typed: str | None) -> str | None:
    """The line that runs fewer tests after an attempt, if the runner can."""
    line, body = proposed.run, proposed.body
    last = re.split(r"&&|;", body)[-1].strip() or line
    program, _, rest = bare(last).partition(" ")
    if program == "pytest":
        return None if body else _of_pytest(project, line)
    own = _VITEST.fullmatch(typed or "")
    if program == "vitest" and own:
        return f"{own[1]} related --run{own[2]} --coverage.enabled=false {PLACEHOLDER}"
    is_run = program != "vitest" or re.match(r"run\b|-|$", rest)
    if program in AFFECTED and is_run and "|" not in last:
        return line + AFFECTED[program].format("-- " if line.startswith("npm ") else "")
    return _of_rspec(project, line) if program == "rspec" else _of_go(project, line)


def _of_rspec(project: ProjectFiles, line: str) -> str | None:
    helpers = project.text("spec/spec_helper.rb") + project.text("spec/rails_helper.rb")
    remembers = "example_status_persistence_file_path" in helpers
    return f"{line} --only-failures" if remembers else None


def _of_go(project: ProjectFiles, line: str) -> str | None:
    """The tests of the packages of these files, and of those below them.

    A pattern with `...` passes over folders that have no package on this system.
    """
    is_whole = re.fullmatch(r"go test(?: -[\w=.]+)* \./\.\.\.", line) and "-cover" not in line
    if not is_whole or any(project.below("*/go.mod")):  # another module's packages are an error
        return None
    packages = f"$(printf './%s\\n' {PLACEHOLDER} | sed 's|/[^/]*$|/...|' | sort -u)"
    return line.removesuffix("./...") + packages


def _of_pytest(project: ProjectFiles, line: str) -> str | None:
    if re.search(r"[|<>&;]|--(?:collect|co\b|lf)|no:cacheprovider|--testmon", line):
        return None
    # without git ignoring its database, each run would leave a new file
    has_testmon = "pytest-testmon" in python_packages(project)
    is_affected = has_testmon and "testmondata" in project.text(".gitignore")
    has_coverage = any("--cov" in text for text in (line, *map(project.text, PYTEST_FILES)))
    fewer = "--testmon" if is_affected else "--lf"
    return f"{line} {fewer} --no-cov" if has_coverage else f"{line} {fewer}"
