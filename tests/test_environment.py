"""What is not installed is found before any money is spent; what an edit can fix is not."""

import socket
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from atlas_retry.gates.plan import Plan
from atlas_retry.gates.validation import run_gates
from atlas_retry.model import GateResult, Kind, Status, Verdict
from tests.needs import needs
from tests.processes import PYTHON
from tests.projects import FIXED, Project, atlas
from tests.values import gate

PYPROJECT = '[project]\nname = "shop"\nversion = "1"\n'
DECLARED = PYPROJECT + 'dependencies = ["Ask_Me>=2"]\n'


@pytest.fixture
def plan(tmp_path: Path, environ: dict[str, str]) -> Plan:
    root, logs = tmp_path / "work", tmp_path / "logs"
    root.mkdir()
    logs.mkdir()
    return Plan(root=root, logs=logs, environ=environ)


def ended(plan: Plan, run: str, files: Mapping[str, str]) -> GateResult:
    """The result of a test gate in a project of these files."""
    for name, text in files.items():
        path = plan.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return run_gates([gate("it", Kind.TEST, run)], plan).results[0]


def printed(stderr: str, exit_code: int) -> str:
    """A shell line that ends as a tool did that is not installed here."""
    return f"printf '%s' {_quoted(stderr)} >&2; exit {exit_code}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


IMPORTS = "import ask_me\n"
UNITTEST = f"{PYTHON} -S -m unittest test_it"


@pytest.mark.parametrize(
    "files",
    [
        {"pyproject.toml": DECLARED},
        {"pyproject.toml": PYPROJECT + "optional-dependencies.x = ['ask.me[y]']\n"},
        {"pyproject.toml": '[dependency-groups]\ndev = ["ask-me"]\n'},
        {"requirements-dev.txt": "ask_me==1  # why\n"},
        {"setup.cfg": "[options]\ninstall_requires =\n    Ask-Me\n"},
        {"setup.py": "from setuptools import setup\nsetup(install_requires=['ask-me>1'])\n"},
    ],
    ids=lambda files: next(iter(files)),
)
def test_a_declared_dependency_that_is_not_installed_is_broken(
    files: dict[str, str], plan: Plan
) -> None:
    result = ended(plan, UNITTEST, {"test_it.py": IMPORTS, **files})
    assert result.status is Status.BROKEN
    assert "python -m pip install ask-me" in (result.error or "")


def test_a_missing_dependency_is_recognised_behind_the_error_that_it_caused(plan: Plan) -> None:
    """As in the manage.py of Django."""
    script = (
        "try:\n    import ask_me\nexcept ImportError as error:\n"
        "    raise ImportError('Is it installed?') from error\n"
    )
    result = ended(plan, f"{PYTHON} -S run.py", {"run.py": script, "pyproject.toml": DECLARED})
    assert result.status is Status.BROKEN
    assert "ask-me is declared by the project, but not installed" in (result.error or "")


def test_a_module_named_differently_from_its_package_is_recognised(plan: Plan) -> None:
    files = {"test_it.py": "import yaml\n", "requirements.txt": "PyYAML\n"}
    assert "pyyaml" in (ended(plan, UNITTEST, files).error or "")


def test_the_lock_file_decides_the_install_command(plan: Plan) -> None:
    files = {"test_it.py": IMPORTS, "pyproject.toml": DECLARED, "poetry.lock": ""}
    assert (ended(plan, UNITTEST, files).error or "").endswith("poetry install")


def test_a_missing_declared_dependency_is_broken_despite_other_failures(
    plan: Plan,
) -> None:
    test = (
        "import unittest\n\n\nclass T(unittest.TestCase):\n"
        "    def test_it(self):\n        self.fail()\n"
    )
    files = {"test_it.py": IMPORTS, "test_no.py": test, "pyproject.toml": DECLARED}
    run = f"{PYTHON} -S -m unittest test_it test_no"
    assert ended(plan, run, files).status is Status.BROKEN


@pytest.mark.parametrize(
    "files",
    [
        {"test_it.py": "import ask_mee\n", "pyproject.toml": DECLARED},
        {"test_it.py": IMPORTS},
        {
            "test_it.py": IMPORTS,
            "pyproject.toml": DECLARED,
            "ask_me/__init__.py": "import ask_me.x",
        },
        {"test_it.py": "import shop\n", "pyproject.toml": PYPROJECT},
        {
            "test_it.py": IMPORTS,
            "pyproject.toml": DECLARED.replace("shop", "ask-me"),
        },
    ],
    ids=["a typo", "undeclared", "a module of its own", "the project", "asks for itself"],
)
def test_a_missing_module_that_an_edit_can_add_is_a_failure(
    files: dict[str, str], plan: Plan
) -> None:
    assert ended(plan, UNITTEST, files).status is Status.FAILED


@pytest.mark.parametrize("place", ["src/shop/__init__.py", "src/shop.py"])
def test_the_project_itself_that_is_not_installed_is_broken(place: str, plan: Plan) -> None:
    files = {"test_it.py": "import shop\n", "pyproject.toml": PYPROJECT, place: ""}
    result = ended(plan, UNITTEST, files)
    assert result.status is Status.BROKEN
    assert (result.error or "").endswith("is not installed: python -m pip install -e .")


@pytest.mark.parametrize(
    "files",
    [
        {"pyproject.toml": "[tool.x]\n"},
        {"pyproject.toml": PYPROJECT, "test_it.py": "import shop.cart\nimport shop\n"},
        {"pyproject.toml": PYPROJECT, "test_more.py": "import math\nmath.x\n"},
    ],
    ids=["nothing to install", "a part that is gone", "another failure"],
)
def test_an_import_of_the_project_that_an_edit_can_repair_is_a_failure(
    files: dict[str, str], plan: Plan
) -> None:
    run = f"{PYTHON} -S -m unittest discover"
    if "test_more.py" not in files:
        run = f"PYTHONPATH={'src' if 'test_it.py' in files else ''} {run}"
    here = {"test_it.py": "import shop\n", "src/shop/__init__.py": "", **files}
    assert ended(plan, run, here).status is Status.FAILED


RUST_TARGET = """\
error[E0463]: can't find crate for `std`
  |
  = note: the `thumbv6m-none-eabi` target may not be installed
  = help: consider downloading the target with `rustup target add thumbv6m-none-eabi`

error: could not compile `x` (lib) due to 1 previous error
"""
RUST_NIGHTLY = """\
error[E0554]: `#![feature]` may not be used on the stable release channel
 --> src/lib.rs:1:24
  |
1 | #![LINE
  |         ^^^^

error: could not compile `x` (lib) due to 1 previous error
"""


@pytest.mark.parametrize(
    ("output", "missing"),
    [
        (RUST_TARGET, "rustup target add thumbv6m-none-eabi"),
        (RUST_NIGHTLY.replace("LINE", 'cfg_attr(feature = "x", feature(test))]'), "nightly"),
        (RUST_NIGHTLY.replace("LINE", "feature(test)]"), ""),
    ],
)
def test_a_missing_target_or_toolchain_of_rust_is_broken(
    output: str, missing: str, plan: Plan
) -> None:
    result = ended(plan, f"cargo() {{ {printed(output, 101)}; }}; cargo build", {})
    assert result.status is (Status.BROKEN if missing else Status.FAILED)
    assert missing in (result.error or "")


@pytest.mark.parametrize("line", ["{0} -S -m pytest -q", "{0} -S -m nobody_knows"])
def test_a_missing_python_program_of_the_gate_is_broken(line: str, plan: Plan) -> None:
    result = ended(plan, line.format(PYTHON), {})
    assert result.status is Status.BROKEN
    assert " -m pip install " in (result.error or "")


def test_a_missing_program_is_found_missing_by_a_python_whose_path_has_a_space(
    plan: Plan, tmp_path: Path
) -> None:
    python = tmp_path / "a b" / "python3"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    result = ended(plan, f"'{python}' -S -m pytest -q", {})
    assert result.status is Status.BROKEN
    assert f"'{python}' -m pip install pytest" in (result.error or "")


def test_a_missing_module_of_the_project_is_a_failure(plan: Plan) -> None:
    run = f"{PYTHON} -S -m shop"
    assert ended(plan, run, {"pyproject.toml": PYPROJECT}).status is Status.FAILED


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ("no-such-tool -q", "no-such-tool: No such file or directory"),
        ("@cd . && no-such-tool -q", "no-such-tool: not found"),
        ("{python} -S -m pytest", "pytest is not installed"),
    ],
)
def test_a_tool_missing_in_a_make_recipe_is_broken(recipe: str, message: str, plan: Plan) -> None:
    makefile = f"all:\n\t$(MAKE) inner\ninner:\n\t{recipe.format(python=PYTHON)}\n"
    result = ended(plan, "make", {"Makefile": makefile})
    assert result.status is Status.BROKEN
    assert message in (result.error or "")


def test_a_missing_tool_that_make_ignores_is_not_broken(plan: Plan) -> None:
    result = ended(plan, "make", {"Makefile": "all:\n\t-no-such-tool\n\tfalse\n"})
    assert result.status is Status.FAILED


@needs("node", "npm")
def test_a_missing_tool_of_a_package_script_is_broken(plan: Plan) -> None:
    package = '{"scripts": {"test": "no-such-tool"}, "devDependencies": {"no-such-tool": "1"}}'
    result = ended(plan, "npm test", {"package.json": package})
    assert result.status is Status.BROKEN
    assert "no-such-tool: not found" in (result.error or "")


NO_FILE = "[Errno 2] No such file or directory"
GEMS = "Install missing gem executables with `bundle install`"
PNPM = "ERR_PNPM_RECURSIVE_EXEC_FIRST_FAIL"
CANCELED = "npx canceled due to"
E404 = "The requested resource 'nosuch@*'"


@pytest.mark.parametrize(
    ("run", "output", "exit_code"),
    [
        # tox 4, uv and nox were run for this test's sake. The others, none of which is here, are
        # as their sources have it: bundler in rubygems/rubygems bundler/lib/bundler/cli/exec.rb,
        # poetry in python-poetry/poetry src/poetry/console/commands/run.py, just in casey/just
        # src/error.rs. Those of yarn 1 and pnpm 6 to 12 are as people reported them:
        # ghostery/adblocker 2859, pnpm/pnpm 10890 and 14226, Shopify/cli 1474.
        ("tox", f"py: Exception running subprocess {NO_FILE}: 'nosuch'\n  py: FAIL code 2\n", 2),
        ("uv", "error: Failed to spawn: nosuch\n  cause: No such file or directory\n", 2),
        ("uv", "error: Failed to spawn: `nosuch`\n  Caused by: No such file or directory\n", 2),
        ("nox", "nox > Running session t\nnox > Program nosuch not found.\n", 1),
        ("bundle exec", f"bundler: command not found: nosuch\n{GEMS}\n", 127),
        ("npx", f'npm error {CANCELED} missing packages and no YES option: ["nosuch"]\n', 1),
        ("npx", f"npm error code E404\nnpm error 404  {E404} could not be found or you do\n", 1),
        ("pre-commit", "lint.....Failed\n- exit code: 1\n\nExecutable `nosuch` not found\n", 1),
        ("poetry", "Command not found: nosuch\n", 1),
        ("yarn", 'yarn run v1.22.22\nerror Command "nosuch" not found.\n', 1),
        ("pnpm", f' {PNPM}  Command "nosuch" not found\n', 1),
        ("pnpm", f'Error: {PNPM}\n\n  \u00d7 Command "nosuch" not found\n', 1),
        ("pnpm", f" {PNPM}  Command failed with ENOENT: nosuch\nspawn nosuch ENOENT\n", 1),
        (
            "just",
            "sh: 1: nosuch: not found\nerror: Recipe `t` failed on line 2 with exit code 127\n",
            127,
        ),
        ("just", "sh: 1: nosuch: not found\nerror: Recipe `test` failed with exit code 127\n", 1),
        ("npm", "sh: 1: nosuch: not found\nnpm error code 127\n", 127),
        ("tox", "sh: 1: nosuch: not found\npy: exit 127 (0.01 seconds) /w> nosuch\n", 1),
        ("yarn", "sh: 1: nosuch: not found\nerror Command failed with exit code 127.\n", 1),
        ("pnpm", "sh: 1: nosuch: not found\n ELIFECYCLE  Command failed with exit code 127.\n", 1),
        (
            "task",
            'sh: 1: nosuch: not found\ntask: Failed to run task "t": exit status 127\n',
            1,
        ),
    ],
)
def test_a_program_missing_for_a_runner_is_broken(
    run: str, output: str, exit_code: int, plan: Plan
) -> None:
    result = ended(plan, f": {run}; {printed(output, exit_code)}", {})
    assert result.status is Status.BROKEN
    assert "nosuch" in (result.error or "")
    assert "install" in (result.error or "")


def test_a_test_that_prints_a_missing_command_is_a_failure(plan: Plan) -> None:
    test = (
        "import os, unittest\n\n\nclass ATest(unittest.TestCase):\n    def test_it(self):\n"
        "        print('make: *** [Makefile:2: x] Error 127')\n        self.assertEqual(1, 2)\n"
    )
    assert ended(plan, UNITTEST, {"test_it.py": test}).status is Status.FAILED


STUBS = """\
a.py:1: error: Library stubs not installed for "requests"  [import-untyped]
a.py:1: note: Hint: "python3 -m pip install types-requests"
a.py:3: error: Incompatible return value type (got "str", expected "int")  [return-value]
Found 2 errors in 1 file (checked 1 source file)
"""


def test_missing_type_stubs_are_broken_with_the_install_command(plan: Plan) -> None:
    result = ended(plan, f": mypy .; {printed(STUBS, 1)}", {})
    assert result.status is Status.BROKEN
    assert "python3 -m pip install types-requests" in (result.error or "")


NO_STUB = "Cannot find implementation or library stub for"


@pytest.mark.parametrize(
    ("run", "output"),
    [
        ("mypy", f'a.py:1: error: {NO_STUB} module named "ask_me"  [import-not-found]\n'),
        ("pylint", "a.py:1:0: E0401: Unable to import 'ask_me' (import-error)\n"),
        ("pyright", '/w/a.py:1:8 - error: Import "ask_me.x" could not be resolved (rule)\n'),
    ],
)
@pytest.mark.parametrize("declared", [True, False])
def test_a_package_missing_for_a_linter_is_broken_if_declared(
    run: str, output: str, declared: bool, plan: Plan
) -> None:
    files = {"pyproject.toml": DECLARED if declared else PYPROJECT}
    status = ended(plan, f": {run} .; {printed(output, 1)}", files).status
    assert status is (Status.BROKEN if declared else Status.FAILED)


NODE = "node test.js"
PACKAGE = '{"devDependencies": {"@shop/tool": "1", "lodash": "4"}}'


@needs("node")
@pytest.mark.parametrize(
    ("module", "files", "status"),
    [
        ("lodash", {"package.json": PACKAGE}, Status.BROKEN),
        ("lodash/fp", {"package.json": PACKAGE}, Status.BROKEN),
        ("@shop/tool", {"package.json": PACKAGE, "yarn.lock": ""}, Status.BROKEN),
        ("lodahs", {"package.json": PACKAGE}, Status.FAILED),
        ("./lodash", {"package.json": PACKAGE}, Status.FAILED),
        (
            "lodash/nowhere",
            {"package.json": PACKAGE, "node_modules/lodash/index.js": ""},
            Status.FAILED,
        ),
    ],
)
def test_a_missing_node_package_is_broken_if_declared(
    module: str, files: dict[str, str], status: Status, plan: Plan
) -> None:
    result = ended(plan, NODE, {"test.js": f"require('{module}')\n", **files})
    assert result.status is status
    if status is Status.BROKEN:
        how = "yarn install" if "yarn.lock" in files else "npm install"
        assert how in (result.error or "")


def test_a_missing_gem_of_the_gemfile_is_broken(plan: Plan) -> None:
    output = "<internal:x>:38:in 'require': cannot load such file -- rspec (LoadError)\n"
    result = ended(
        plan, printed(output, 1), {"Gemfile": "source 'https://x'\ngem 'rspec', '~> 3'\n"}
    )
    assert "bundle install" in (result.error or "")


def test_a_gem_that_bundler_misses_is_broken(plan: Plan) -> None:
    output = (
        "bundler: failed to load command: rspec (/usr/bin/rspec)\n"
        "/x/lib/bundler/resolver.rb:271:in `block in verify!': Could not find gem 'pry' in locally "
        "installed gems. (Bundler::GemNotFound)\n\tfrom /x/lib/bundler/resolver.rb:254:in `map!'\n"
    )
    result = ended(plan, printed(output, 1), {"Gemfile": "source 'https://x'\ngem 'pry'\n"})
    assert (result.status, result.remedy) == (Status.BROKEN, "bundle install")


def test_no_agent_is_started_if_a_dependency_is_missing(project: Project) -> None:
    (project.root / "pyproject.toml").write_text(DECLARED)
    (project.root / "test_it.py").write_text(IMPORTS)
    project.attempt(1, {"calc.py": FIXED})
    outcome = project.retry()
    assert outcome.verdict is Verdict.BROKEN
    assert outcome.attempts == ()
    assert "pip install ask-me" in (outcome.final_error or "")
    assert "undo" not in (outcome.remedy or "")


def test_a_missing_dependency_exits_3(project: Project) -> None:
    project.configure(validation={"test": [f"{PYTHON} -S -m pytest -q"]})
    done = atlas(project, "validate", "--plain")
    assert done.code == 3
    assert "pytest is not installed" in done.out


@pytest.mark.parametrize(
    ("output", "files", "command"),
    [
        (
            "ModuleNotFoundError: No module named 'ask_me'\n",
            {"pyproject.toml": DECLARED, "poetry.lock": ""},
            "poetry install",
        ),
        (
            'error Command "eslint" not found.\n',
            {"package.json": '{"devDependencies": {"eslint": "9"}}', "package-lock.json": ""},
            "npm ci",
        ),
        (
            "/a b/python: No module named pytest\n",
            {"pyproject.toml": PYPROJECT},
            "'/a b/python' -m pip install pytest",
        ),
        (STUBS, {}, "python3 -m pip install types-requests"),
        (
            (
                "php vendor/bin/phpunit\nCould not open input file: vendor/bin/phpunit\n"
                "make: *** [Makefile:13: tests] Error 1\n"
            ),
            {},
            "composer install",
        ),
        ("Could not open input file: bin/console\n", {}, None),
        (
            (
                "ERROR: usage: pytest [options] [file_or_dir] [file_or_dir] [...]\n"
                "pytest: error: unrecognized arguments: --cov=./ --cov-report=xml\n"
            ),
            {"pyproject.toml": PYPROJECT},
            "python -m pip install pytest-cov",
        ),
        ("pytest: error: unrecognized arguments: --colour=no\n", {}, None),
        ("sh: 1: npm install: not found\nnpm error code 127\n", {}, None),
        ('error Command "jest" not found.\n', {}, None),
        ("exit code 1\n", {}, None),
    ],
)
def test_the_command_that_installs_what_is_missing(
    output: str, files: dict[str, str], command: str | None, plan: Plan
) -> None:
    result = ended(plan, f": mypy pytest; {printed(output, 1)}", files)
    assert result.remedy == command
    assert command is None or command in (result.error or "")


NPM_ENGINE = """\
npm error code EBADENGINE
npm error engine Unsupported engine
npm error notsup Required: {"node":">=99"}
npm error notsup Actual:   {"node":"v20.20.2","npm":"11.19.1"}
"""
RUSTC = """\
error: rustc 1.95.0 is not supported by the following package:
  a@0.1.0 requires rustc 1.999
"""
EDITION = """\
error: failed to parse manifest at `/w/Cargo.toml`

Caused by:
  failed to parse the `edition` key

Caused by:
  this version of Cargo is older than the `2027` edition, and only supports `2015`, `2018`.
"""
RUSTUP = """\
error: toolchain 'nightly-2020-01-01-x86_64-unknown-linux-gnu' is not installed
help: run `rustup toolchain install nightly-2020-01-01-x86_64-unknown-linux-gnu` to install it
"""
NO_COMMAND = """\
error: no such command: `deny`

help: find a package to install `deny` with `cargo search cargo-deny`
"""
GO = "go: go.mod requires go >= 1.99 (running go 1.26.8; GOTOOLCHAIN=local)\n"
TOX = "py27: failed with could not find python interpreter matching any of the specs python2.7\n"
UV = "error: No interpreter found for Python >=3.99 in managed installations or search path\n"
PIP = "ERROR: Package 'a' requires a different Python: 3.11.7 not in '>=3.99'\n"
TOOLCHAINS = {
    "go": (GO, "it needs Go 1.99, and Go 1.26.8 runs here: install it"),
    "go that cannot be downloaded": (
        "go: download go1.99.0 for linux/amd64: toolchain not available\n",
        "it needs Go 1.99.0, which is not installed and cannot be downloaded: install it",
    ),
    "rustup": (RUSTUP, "rustup toolchain install nightly-2020-01-01-x86_64-unknown-linux-gnu"),
    "rustc": (RUSTC, "rustup update"),
    "nightly": (
        "error: the `-Z` flag is only accepted on the nightly channel of Cargo, but this is ...\n",
        "it needs a nightly toolchain of Rust",
    ),
    "edition": (EDITION, "older than the edition 2027"),
    "a command of cargo": (NO_COMMAND, "cargo install cargo-deny"),
    "npm": (NPM_ENGINE, 'it needs other versions of Node.js or npm: {"node":">=99"}'),
    "javac": ("error: release version 99 not supported\n", "it needs a JDK of version 99"),
    "maven": (
        "[ERROR] Failed to execute goal x: error: release version 99 not supported -> [Help 1]\n",
        "it needs a JDK of version 99",
    ),
    "gradle": (
        "Gradle requires JVM 17 or later to run. Your build is currently configured to use JVM 11.",
        "Gradle needs a JDK of version 17 or later",
    ),
    "tox": (TOX, "tox found no interpreter for python2.7"),
    "an environment of tox": (
        "ROOT: HandledError| provided environments not found in configuration file:\nnosuch\n",
        "tox has no environment of that name",
    ),
    "uv": (UV, "no Python >=3.99 is installed"),
    "pip": (PIP, "it needs Python >=3.99, and 3.11.7 runs here"),
    "bundler": (
        "Run `bundle install` to install missing gems.\n",
        "bundle install",
    ),
}


@pytest.mark.parametrize(("text", "words"), TOOLCHAINS.values(), ids=TOOLCHAINS)
def test_a_toolchain_that_is_missing_or_too_old_is_broken(
    text: str, words: str, plan: Plan
) -> None:
    result = ended(plan, printed(text, 1), {})
    assert result.status is Status.BROKEN
    assert words in (result.error or "")


@pytest.mark.parametrize(("text", "words"), TOOLCHAINS.values(), ids=TOOLCHAINS)
def test_a_test_that_speaks_of_a_toolchain_is_code(text: str, words: str, plan: Plan) -> None:
    files = {
        "test_it.py": "import unittest\n\n\nclass T(unittest.TestCase):\n"
        "    def test_a(self):\n        self.fail('wrong total')\n"
    }
    line = f"{printed(text, 0).rpartition(';')[0]}; {PYTHON} -S -m unittest test_it"
    result = ended(plan, line, files)
    assert result.status is Status.FAILED
    assert words not in (result.error or "")


SERVICE = """\
on: push
jobs:
  a:
    services: {db: {image: "postgres:16", ports: ["%d:5432"]}}
    steps: [{run: pytest}]
"""


@pytest.fixture
def silent_port() -> int:
    """A port on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def test_a_service_of_ci_that_does_not_listen_is_broken(plan: Plan, silent_port: int) -> None:
    text = f"connect to 127.0.0.1:{silent_port} failed: Connection refused\n"
    files = {".github/workflows/ci.yml": SERVICE % silent_port}
    result = ended(plan, printed(text, 1), files)
    assert result.status is Status.BROKEN
    assert f"nothing listens on port {silent_port}, where CI starts postgres:16" in (
        result.error or ""
    )


def test_a_refused_connection_to_no_service_of_ci_is_code(plan: Plan, silent_port: int) -> None:
    text = f"connect to 127.0.0.1:{silent_port} failed: Connection refused\n"
    assert ended(plan, printed(text, 1), {}).status is Status.FAILED


def test_a_refused_connection_is_code_if_the_service_listens(plan: Plan) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        text = f"connect to 127.0.0.1:{port} failed: Connection refused\n"
        result = ended(plan, printed(text, 1), {".github/workflows/ci.yml": SERVICE % port})
    assert result.status is Status.FAILED
