"""Python: which runner starts a tool, and which tools the project configures or asks for."""

import re
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.config.init.commands import bare
from atlas_retry.config.init.dependencies import EXTRA, GROUP, Where, dependencies
from atlas_retry.config.init.project import ProjectFiles, dig, table
from atlas_retry.config.init.values import Need, Proposed, Slot

MARKS = ("pyproject.toml", "setup.py", "setup.cfg", "requirements*.txt", "Pipfile", "tox.ini")
TEST_TIMEOUT = "10m"
DEEPEST = 2
TEST_FILES = ("tests/*.py", "test/*.py", "*/test_*.py", "test_*.py", "*/tests/*.py", "*_test.py")


class PythonTool(Struct, frozen=True):
    """One tool: where it is configured and how it is called."""

    name: str
    slot: Slot
    run: str
    tables: str = ""
    """Key under `tool` of pyproject.toml."""
    files: str = ""
    sections: str = ""
    """`file:section` of INI files."""
    fix: str | None = None
    recheck: str | None = None
    timeout: str | None = None


TOOLS = (
    PythonTool("isort", Slot.FORMAT, "isort .", "isort", ".isort.cfg"),
    PythonTool("black", Slot.FORMAT, "black .", "black"),
    PythonTool("yapf", Slot.FORMAT, "yapf -ir .", "yapf", ".style.yapf"),
    PythonTool("ruff", Slot.LINT, "ruff check .", "ruff", "ruff.toml .ruff.toml",
        fix="ruff check --fix ."),
    PythonTool("flake8", Slot.LINT, "flake8", "", ".flake8", "setup.cfg:flake8 tox.ini:flake8"),
    PythonTool("pylint", Slot.LINT, "pylint", "pylint", ".pylintrc pylintrc"),
    PythonTool("codespell", Slot.LINT, "codespell", "codespell", ".codespellrc",
        "setup.cfg:codespell", fix="codespell -w"),
    PythonTool("mypy", Slot.TYPES, "mypy", "mypy", "mypy.ini .mypy.ini", "setup.cfg:mypy"),
    PythonTool("pyright", Slot.TYPES, "pyright", "pyright", "pyrightconfig.json"),
    PythonTool("basedpyright", Slot.TYPES, "basedpyright", "basedpyright"),
    PythonTool("ty", Slot.TYPES, "ty check", "ty", "ty.toml"),
    PythonTool("pyrefly", Slot.TYPES, "pyrefly check", "pyrefly", "pyrefly.toml"),
    PythonTool("pytest", Slot.TEST, "pytest", "pytest",
        "pytest.ini .pytest.ini pytest.toml conftest.py", "setup.cfg:tool:pytest tox.ini:pytest",
        recheck="pytest --lf", timeout=TEST_TIMEOUT),
    PythonTool("nbmake", Slot.TEST, "pytest --nbmake", timeout=TEST_TIMEOUT),
)  # fmt: skip


class PythonRunner(Struct, frozen=True, kw_only=True):
    """How the project starts a program in its environment."""

    prefix: str
    need: Need | None = None
    evidence: str = ""


def is_python(project: ProjectFiles) -> bool:
    """Whether anything at the top says so, or tests lie there."""
    return bool(project.first(*MARKS) or _tests(project))


def _tests(project: ProjectFiles) -> str | None:
    ours = (path for path in project.below(*TEST_FILES) if path.count("/") <= DEEPEST)
    return next((path for path in ours if not path.endswith("__init__.py")), None)


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
            where = asked.get(tool.name)
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
    if (tool.name) in asked:
        where, group = asked[tool.name]
        return configured or f"{tool.name} is asked for in {group or 'the dependencies'} ({where})"
    if not configured:
        return None
    is_run = not asked or project.runs(tool.name) or tool.slot is Slot.TEST
    return configured if is_run else None


def _configured(project: ProjectFiles, tool: PythonTool) -> str | None:
    if tool.tables in table(project.pyproject, "tool"):
        return f"pyproject.toml has [tool.{tool.tables}]"
    for place in tool.sections.split():
        path, _, section = place.partition(":")
        if section in project.ini(path):
            return f"{path} has [{section}]"
    found = project.first(*tool.files.split())
    return f"{found} is there" if found else None


def _proposed(
    project: ProjectFiles, runner: PythonRunner, tool: PythonTool, where: Where | None, why: str
) -> Proposed:
    prefix = _prefix(runner, where)
    if runner.evidence == "uv" and where is None and tool.slot in (Slot.FORMAT, Slot.LINT):
        prefix = "uvx "
    run = _with_target(project, tool)
    program = tool.run.partition(" ")[0]
    own = Need(program=program, remedy=f"pip install {tool.name}")
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
        # a formatter that is only installed may be there for something else: documentation
        weak=tool.slot is Slot.FORMAT
        and " is asked for in " in why
        and not project.runs(tool.name),
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
    ini = project.ini("mypy.ini").get("mypy", {}) or project.ini("setup.cfg").get("mypy", {})
    is_said = any(key in mypy for key in ("files", "packages", "modules")) or "files" in ini
    if tool.name not in ("mypy", "pylint") or (tool.name == "mypy" and is_said):
        return tool.run
    return f"{tool.run} {' '.join(_packages(project))}"


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
    """Django's own test command; plain tests of which nothing says how they are run."""
    if "pytest" in asked or project.runs("pytest") or _configured(project, TOOLS[-2]):
        return
    python = Need(program="python", remedy="activate the environment")
    tests = _tests(project)
    text = project.text(tests) if tests else ""
    if project.has("manage.py"):
        yield _default(runner, "python manage.py test", "manage.py is there", python)
    elif re.search(r"\bunittest\b", text + project.automation) and tests:
        run = f"python -m unittest discover{_start(project, tests)}"
        yield _default(runner, run, f"{tests} uses unittest", python)
    elif tests and re.search(r"^(?:async )?def test|^class Test", text, re.MULTILINE):
        pytest = Need(program="pytest", remedy="pip install pytest")
        yield _default(runner, "pytest", f"{tests} is there", pytest)


def _start(project: ProjectFiles, tests: str) -> str:
    """Unittest looks into packages only: into another folder it has to be sent."""
    folder = tests.rpartition("/")[0]
    return f" -s {folder}" if folder and not project.has(f"{folder}/__init__.py") else ""


def _default(runner: PythonRunner, run: str, why: str, need: Need) -> Proposed:
    return Proposed(
        slot=Slot.TEST,
        run=runner.prefix + run,
        reason=why,
        needs=(runner.need or need,),
        tool=bare(run).split()[0],
        language="python",
        timeout=TEST_TIMEOUT,
        weak="manage.py" not in run,
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
