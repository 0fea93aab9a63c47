"""Python: which runner starts a tool, and which tools the project configures or asks for."""

import re
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.config.init.dependencies import EXTRA, GROUP, Where, dependencies
from atlas_retry.config.init.project import ProjectFiles, dig, table
from atlas_retry.config.init.values import Need, Proposed, Slot

MARKS = ("pyproject.toml", "setup.py", "setup.cfg", "requirements*.txt", "Pipfile", "tox.ini")
TEST_TIMEOUT = "10m"
TEST_FILES = ("tests/*.py", "test/*.py", "*/test_*.py", "test_*.py", "*/tests/*.py", "*_test.py")


class PythonTool(Struct, frozen=True, kw_only=True):
    """One tool: where it is configured and how it is called."""

    name: str
    slot: Slot
    run: str
    tables: tuple[str, ...] = ()
    """Keys under `tool` of pyproject.toml."""
    files: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    """`file:section` of INI files."""
    fix: str | None = None
    recheck: str | None = None
    package: str | None = None
    """On PyPI, where it is not the name."""
    timeout: str | None = None


TOOLS = (
    PythonTool(
        name="isort", slot=Slot.FORMAT, run="isort .", tables=("isort",), files=(".isort.cfg",)
    ),
    PythonTool(name="black", slot=Slot.FORMAT, run="black .", tables=("black",)),
    PythonTool(
        name="yapf", slot=Slot.FORMAT, run="yapf -ir .", tables=("yapf",), files=(".style.yapf",)
    ),
    PythonTool(
        name="ruff",
        slot=Slot.LINT,
        run="ruff check .",
        fix="ruff check --fix .",
        tables=("ruff",),
        files=("ruff.toml", ".ruff.toml"),
    ),
    PythonTool(
        name="flake8",
        slot=Slot.LINT,
        run="flake8",
        files=(".flake8",),
        sections=("setup.cfg:flake8", "tox.ini:flake8"),
    ),
    PythonTool(
        name="pylint",
        slot=Slot.LINT,
        run="pylint",
        tables=("pylint",),
        files=(".pylintrc", "pylintrc"),
    ),
    PythonTool(
        name="codespell",
        slot=Slot.LINT,
        run="codespell",
        fix="codespell -w",
        tables=("codespell",),
        files=(".codespellrc",),
        sections=("setup.cfg:codespell",),
    ),
    PythonTool(
        name="mypy",
        slot=Slot.TYPES,
        run="mypy",
        tables=("mypy",),
        files=("mypy.ini", ".mypy.ini"),
        sections=("setup.cfg:mypy",),
    ),
    PythonTool(
        name="pyright",
        slot=Slot.TYPES,
        run="pyright",
        tables=("pyright",),
        files=("pyrightconfig.json",),
    ),
    PythonTool(name="basedpyright", slot=Slot.TYPES, run="basedpyright", tables=("basedpyright",)),
    PythonTool(name="ty", slot=Slot.TYPES, run="ty check", tables=("ty",), files=("ty.toml",)),
    PythonTool(
        name="pyrefly",
        slot=Slot.TYPES,
        run="pyrefly check",
        tables=("pyrefly",),
        files=("pyrefly.toml",),
    ),
    PythonTool(
        name="pytest",
        slot=Slot.TEST,
        run="pytest",
        recheck="pytest --lf",
        tables=("pytest",),
        files=("pytest.ini", ".pytest.ini", "pytest.toml", "conftest.py"),
        sections=("setup.cfg:tool:pytest", "tox.ini:pytest"),
        timeout=TEST_TIMEOUT,
    ),
)


class PythonRunner(Struct, frozen=True, kw_only=True):
    """How the project starts a program in its environment."""

    prefix: str
    need: Need | None = None
    evidence: str = ""


def is_python(project: ProjectFiles) -> bool:
    """Whether anything at the top says so."""
    return project.first(*MARKS) is not None


def runner_of(project: ProjectFiles) -> PythonRunner:
    """The environment's manager by its lock file or table; none: programs are on PATH."""
    tool = table(project.pyproject, "tool")
    rows = (
        ("uv", project.has("uv.lock") or "uv" in tool or project.runs("uv run")),
        ("poetry", project.has("poetry.lock") or "poetry" in tool),
        ("pdm", project.has("pdm.lock") or ("pdm" in tool and "build" not in table(tool, "pdm"))),
        ("pipenv", project.has("Pipfile")),
    )
    for name, present in rows:
        if present:
            need = Need(program=name, remedy=f"install {name}")
            return PythonRunner(prefix=f"{name} run ", need=need, evidence=name)
    return PythonRunner(prefix="")


def propose(project: ProjectFiles) -> Iterator[Proposed]:
    """Formatters, linters, type checkers and tests of a Python project."""
    if not is_python(project):
        return
    runner = runner_of(project)
    asked = dependencies(project)
    for tool in TOOLS:
        why = _evidence(project, tool, asked)
        if why:
            where = asked.get(tool.package or tool.name)
            yield _proposed(project, runner, tool, where, why)
    yield from _ruff_format(project, runner, asked)
    yield from _without_pytest(project, runner, asked)


def prefix_for(project: ProjectFiles, package: str) -> str:
    """What starts a program of that package, if the project itself asks for it; else nothing."""
    where = dependencies(project).get(package) if is_python(project) else None
    return _prefix(runner_of(project), where) if where else ""


def _evidence(project: ProjectFiles, tool: PythonTool, asked: dict[str, Where]) -> str | None:
    """Why we believe that the tool is used. A configuration that nobody runs is no reason."""
    configured = _configured(project, tool)
    if (tool.package or tool.name) in asked:
        where, group = asked[tool.package or tool.name]
        return configured or f"{tool.name} is asked for in {group or 'the dependencies'} ({where})"
    if configured and (not asked or project.runs(tool.name) or tool.slot is Slot.TEST):
        return configured
    return None


def _configured(project: ProjectFiles, tool: PythonTool) -> str | None:
    for key in tool.tables:
        if key in table(project.pyproject, "tool"):
            return f"pyproject.toml has [tool.{key}]"
    for place in tool.sections:
        path, _, section = place.partition(":")
        if section in project.ini(path):
            return f"{path} has [{section}]"
    found = project.first(*tool.files) if tool.files else None
    return f"{found} is there" if found else None


def _proposed(
    project: ProjectFiles, runner: PythonRunner, tool: PythonTool, where: Where | None, why: str
) -> Proposed:
    prefix = _prefix(runner, where)
    if runner.evidence == "uv" and where is None and tool.slot in (Slot.FORMAT, Slot.LINT):
        prefix = "uvx "
    run = _with_target(project, tool)
    program = tool.run.partition(" ")[0]
    own = Need(program=program, remedy=f"pip install {tool.package or tool.name}")
    return Proposed(
        slot=tool.slot,
        run=prefix + run,
        reason=why,
        needs=(runner.need or own,),
        tool=tool.name,
        language="python",
        fix=prefix + tool.fix if tool.fix else None,
        recheck=prefix + tool.recheck if tool.recheck else None,
        timeout=tool.timeout,
    )


def _prefix(runner: PythonRunner, where: Where | None) -> str:
    """Uv installs the `dev` group alone by itself; another one or an extra has to be named."""
    if runner.evidence != "uv" or where is None:
        return runner.prefix
    place, name = where
    if place == GROUP and name != "dev":
        return f"uv run --group {name} "
    return f"uv run --extra {name} " if place == EXTRA else runner.prefix


def _with_target(project: ProjectFiles, tool: PythonTool) -> str:
    """Mypy and pylint want to be told what to look at, unless their configuration says it."""
    mypy = table(project.pyproject, "tool", "mypy")
    said = any(key in mypy for key in ("files", "packages", "modules"))
    ini = project.ini("mypy.ini").get("mypy", {}) or project.ini("setup.cfg").get("mypy", {})
    if tool.name not in ("mypy", "pylint") or (tool.name == "mypy" and (said or "files" in ini)):
        return tool.run
    line = project.ci_line(tool.run)
    return line if line and line != tool.run else f"{tool.run} {' '.join(_packages(project))}"


def _packages(project: ProjectFiles) -> list[str]:
    """`src`, else the folders at the top that are packages, else everything."""
    if any(path.startswith("src/") for path in project.paths):
        return ["src"]
    inits = [path.split("/") for path in project.below("*/__init__.py")]
    names = {parts[0] for parts in inits if len(parts) == 2}  # noqa: PLR2004 - folder and file
    return sorted(names - {"tests", "test", "docs", "examples"}) or ["."]


def _ruff_format(
    project: ProjectFiles, runner: PythonRunner, asked: dict[str, Where]
) -> Iterator[Proposed]:
    ruff = next(tool for tool in TOOLS if tool.name == "ruff")
    configured = dig(project.pyproject, "tool", "ruff", "format") is not None
    if configured or project.runs("ruff format"):
        tool = replace(ruff, slot=Slot.FORMAT, run="ruff format .", fix=None)
        why = "pyproject.toml has [tool.ruff.format]" if configured else "CI or a task runs it"
        yield replace(_proposed(project, runner, tool, asked.get("ruff"), why), tool="ruff-format")


def _without_pytest(
    project: ProjectFiles, runner: PythonRunner, asked: dict[str, Where]
) -> Iterator[Proposed]:
    """Django's own test command; unittest where there are tests and nobody speaks of pytest."""
    if "pytest" in asked or project.runs("pytest"):
        return
    needs = (runner.need or Need(program="python", remedy="activate the environment"),)
    tests = next(iter(project.below(*TEST_FILES)), None)
    if project.has("manage.py"):
        yield Proposed(
            slot=Slot.TEST,
            run=f"{runner.prefix}python manage.py test",
            reason="manage.py is there",
            needs=needs,
            tool="django",
            language="python",
            timeout=TEST_TIMEOUT,
        )
    elif tests and re.search(r"\bunittest\b", project.text(tests) + project.automation):
        yield Proposed(
            slot=Slot.TEST,
            run=f"{runner.prefix}python -m unittest discover",
            reason=f"{tests} uses unittest",
            needs=needs,
            tool="unittest",
            language="python",
            timeout=TEST_TIMEOUT,
            weak=True,
        )


def scripts(project: ProjectFiles) -> Iterator[tuple[str, str, Need]]:
    """Named commands in pyproject.toml: name, how to run it, what it needs."""
    tool = table(project.pyproject, "tool")
    runner = runner_of(project)
    inside = runner.need is not None and "poethepoet" in dependencies(project)
    poe = Need(program="poe", remedy="pip install poethepoet")
    for name in table(tool, "poe", "tasks"):
        prefix = runner.prefix if inside else ""
        yield name, f"{prefix}poe {name}", (runner.need or poe) if inside else poe
    for name in table(tool, "pdm", "scripts"):
        yield name, f"pdm run {name}", Need(program="pdm", remedy="install pdm")
    hatch = Need(program="hatch", remedy="pip install hatch")
    for environment, settings in table(tool, "hatch", "envs").items():
        for name in table(settings, "scripts"):
            label = name if environment == "default" else f"{environment}:{name}"
            yield name, f"hatch run {label}", hatch
