"""An honest fix is never refused: small projects, each repaired by a command, with real gates."""

import os
import pwd
from pathlib import Path

import pytest

from atlas_retry.model import Verdict
from tests.miniatures import (
    ADDED,
    CALC,
    PYTEST,
    REPAIR,
    TEST_ADD,
    has_no_findings,
    miniature,
    named,
    put,
    status,
)
from tests.needs import needs
from tests.projects import atlas

Environ = dict[str, str]

DROPPED = pytest.mark.in_place("what git ignores and a run in layers wrote is dropped")


def test_a_project_without_gitignore_is_fixed(tmp_path: Path, environ: Environ) -> None:
    project = miniature(tmp_path, environ, CALC, [REPAIR])
    ended = atlas(project, "retry", ".", "--ai-fix")
    assert ended.code == 0, ended.err
    assert "held" not in ended.err + ended.out
    assert (project.root / "calc.py").read_text() == ADDED


def test_an_earlier_test_edit_of_the_user_is_not_charged(tmp_path: Path, environ: Environ) -> None:
    other = "def test_other():\n    assert 1 == 1\n"
    files = CALC | {".gitignore": "__pycache__/\n", "tests/test_other.py": other}
    project = miniature(tmp_path, environ, files, [REPAIR])
    assert atlas(project, "validate").code == 1
    (project.root / "tests/test_other.py").write_text(other.replace("1 == 1", "2 == 2"))
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert has_no_findings(outcome)
    assert "2 == 2" in (project.root / "tests/test_other.py").read_text()


RECORDS = """
import sqlite3
import time
from pathlib import Path

from calc import add

HERE = Path(__file__).parent


def test_add():
    with (HERE / "run.log").open("a") as log:
        log.write(f"{time.time_ns()}\\n")
    with sqlite3.connect(HERE / "test.db") as db:
        db.execute("create table if not exists runs (at integer)")
        db.execute("insert into runs values (?)", (time.time_ns(),))
    db.close()
    assert add(1, 2) == 3
"""


@pytest.mark.parametrize("turn", [REPAIR, f"{REPAIR}\n{PYTEST}"], ids=["gate", "agent-too"])
@pytest.mark.parametrize("kind", ["untracked", "tracked", pytest.param("ignored", marks=DROPPED)])
def test_logs_and_databases_written_by_tests_are_not_charged(
    tmp_path: Path, environ: Environ, kind: str, turn: str
) -> None:
    ignored = "__pycache__/\n.pytest_cache/\n" + "tests/run.log\ntests/test.db\n" * (
        kind == "ignored"
    )
    files = CALC | {"tests/test_calc.py": RECORDS, ".gitignore": ignored}
    project = miniature(tmp_path, environ, files, [turn])
    if kind == "tracked":
        assert atlas(project, "validate").code == 1
        project.commit()
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert named(outcome)["refused"] == named(outcome)["held"] == []
    assert (project.root / "tests/run.log").read_text()


WRITTEN = """
import sys
from pathlib import Path

sys.path.insert(0, "")
from calc import add

for name, text in {
    ".coverage": b"\\0data",
    "coverage.xml": b"<coverage/>",
    "htmlcov/index.html": b"<html/>",
    "tests/junit.xml": b"<testsuite/>",
    "tests/screens/home.png": b"\\x89PNG\\0",
    "tests/__snapshots__/home.snap": b"exports[`home`] = `1`;",
    "build/reports/junit.xml": b"<testsuite/>",
}.items():
    target = Path(name)
    target.parent.mkdir(parents=True, exist_ok=True)
    moving = b"" if name.endswith(".snap") else str(Path("calc.py").stat().st_mtime_ns).encode()
    target.write_bytes(text + moving)
sys.exit(add(1, 2) != 3)
"""


@pytest.mark.parametrize("when", ["always", "only-when-green"])
@pytest.mark.parametrize("who", ["gate", "agent-too"])
def test_coverage_screenshots_and_snapshots_of_gates_are_not_charged(
    tmp_path: Path, environ: Environ, when: str, who: str
) -> None:
    head, _, writes = WRITTEN.partition("for name")
    check = head + "if add(1, 2) != 3:\n    sys.exit(1)\n" * (when != "always")
    files = {"calc.py": CALC["calc.py"], "tests/all.py": f"{check}for name{writes}"}
    run = "python tests/all.py"
    turn = f"{REPAIR}\n{run}" if who == "agent-too" else REPAIR
    project = miniature(tmp_path, environ, files, [turn], validation={"test": [run]})
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert named(outcome)["refused"] == []


TWO = "\n\ndef test_two():\n    assert add(2, 2) == 4\n"
BESIDES = {
    "a test in a new file": put("tests/test_more.py", TEST_ADD.replace("1, 2) == 3", "4, 4) == 8")),
    "a test in an old file": put("tests/test_calc.py", TEST_ADD + TWO),
    "a line in the changelog": "echo '- add adds' >> CHANGELOG.md",
    "a data file": put("data/rates.json", '{"eur": 1}'),
    "data for a new test": put("tests/data/rates.json", '{"eur": 1}'),
    "documentation": put("docs/add.md", "# add\n") + "; echo more >> README.md",
    "the layout of the source": put("calc.py", "def add(\n    a,\n    b,\n):\n    return a + b\n"),
}


@pytest.mark.parametrize("besides", BESIDES.values(), ids=BESIDES)
def test_harmless_edits_beside_the_fix_are_kept(
    tmp_path: Path, environ: Environ, besides: str
) -> None:
    files = CALC | {"CHANGELOG.md": "# Changes\n", "README.md": "# calc\n"}
    project = miniature(tmp_path, environ, files, [f"{REPAIR}\n{besides}"])
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert has_no_findings(outcome)
    (attempt,) = outcome.attempts
    there = {change.path for change in attempt.changes}
    assert there <= {line[3:].split("/")[0] for line in status(project)} | there
    assert all((project.root / path).exists() for path in there)


BUILDS = """
import os, sys
from pathlib import Path

for name in {paths}:
    target = Path(name)
    target.parent.mkdir(parents=True, exist_ok=True)
    is_code = name.endswith(".py")
    target.write_text(Path("calc.py").read_text() if is_code else str(os.getpid()))
sys.path.insert(0, "")
from calc import add

sys.exit(add(1, 2) != 3)
"""
MOVED = (
    "target/debug/calc",
    "__pycache__/calc.cpython-311.pyc.1",
    ".mypy_cache/3.11/calc.data.json",
    ".ruff_cache/0.1/1",
    "node_modules/.cache/babel/x.json",
    "node_modules/.vite/deps.json",
    ".venv/lib/python3.11/site-packages/__pycache__/six.cpython-311.pyc",
    "build/lib/calc.py",
    ".pytest_cache/v/lastfailed",
    "calc.egg-info/PKG-INFO",
)


@pytest.mark.parametrize("ignored", [True, False], ids=["ignored", "not-ignored"])
def test_files_left_by_gates_that_the_agent_ran_are_not_charged(
    tmp_path: Path, environ: Environ, ignored: bool
) -> None:
    places = sorted({f"{path.split('/')[0]}/" for path in MOVED})
    files = {"calc.py": CALC["calc.py"], "check.py": BUILDS.format(paths=MOVED)}
    files[".gitignore"] = "\n".join(places) + "\n" if ignored else ".venv/\nnode_modules/\n"
    gates = {"lint": ["python check.py"]}
    project = miniature(tmp_path, environ, files, [f"{REPAIR}\npython check.py"], validation=gates)
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert named(outcome)["refused"] == named(outcome)["held"] == []


def test_a_type_error_in_a_test_may_be_fixed_there(tmp_path: Path, environ: Environ) -> None:
    typed = "def add(a: int, b: int) -> int:\n    return a + b\n"
    body = "    x: str = add(1, 2)\n    assert x == 3\n"
    test = f"from calc import add\n\n\ndef test_add() -> None:\n{body}"
    files = {"calc.py": typed, "tests/test_calc.py": test, "mypy.ini": "[mypy]\nstrict = true\n"}
    turn = put("tests/test_calc.py", test.replace("x: str", "x: int"))
    gates = {"lint": ["mypy --cache-dir=/dev/null tests/test_calc.py"], "test": [PYTEST]}
    project = miniature(tmp_path, environ, files, [turn], validation=gates)
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert has_no_findings(outcome)
    assert status(project)[0] == " M tests/test_calc.py"


RENDER = "def render(name):\n    return f'Hello {name}'\n"
RECORDED = """
from pathlib import Path

from page import render

RECORDED = Path(__file__).with_name("__snapshots__") / "page.txt"


def test_page():
    assert render("Ann") == RECORDED.read_text()


def test_politeness():
    assert render("Ann").endswith("!")
"""


def test_a_changed_snapshot_is_accepted_by_a_person(tmp_path: Path, environ: Environ) -> None:
    shot = "tests/__snapshots__/page.txt"
    files = {"page.py": RENDER, "tests/test_page.py": RECORDED, shot: "Hello Ann"}
    turn = put("page.py", RENDER.replace("{name}", "{name}!")) + "\n" + put(shot, "Hello Ann!")
    project = miniature(tmp_path, environ, files | {".gitignore": "__pycache__/\n"}, [turn, turn])
    outcome = project.retry()
    assert outcome.verdict is Verdict.NEEDS_REVIEW
    assert (project.root / shot).read_text() == "Hello Ann"
    assert atlas(project, *(outcome.remedy or "").split()[1:]).code == 0
    assert (project.root / shot).read_text() == "Hello Ann!"
    assert atlas(project, "validate").code == 0


OLD_API = "def addThem(a, b):\n    return a + b\n\n\ndef twice(n):\n    return addThem(n, b=n)\n"
OLD_TEST = """from shop.calc import addThem, twice


def test_add():
    assert addThem(1, b=2) == 3


def test_twice():
    assert twice(n=2) == 4
"""
RENAMED = {
    "a function": ("addThem", "add_them"),
    "an argument": ("b", "other"),
    "a module": ("shop.calc", "shop.sums"),
}


@pytest.mark.parametrize(("old", "new"), RENAMED.values(), ids=RENAMED)
def test_tests_may_follow_a_rename_in_the_sources(
    tmp_path: Path, environ: Environ, old: str, new: str
) -> None:
    files = {
        "shop/__init__.py": "",
        "shop/calc.py": OLD_API,
        "tests/test_calc.py": OLD_TEST,
        ".gitignore": "__pycache__/\n.pytest_cache/\n",
    }
    word = f"\\b{old}\\b"
    script = f"sed -i -E 's/{word}/{new}/g' shop/*.py tests/*.py"
    bad = f"grep -rnE '{word}' shop"
    if "." in old:
        script = f"git mv shop/calc.py shop/sums.py; {script}"
        bad = "ls shop/calc.py 2>/dev/null"
    gates = {"lint": [f"! {bad}"], "test": [PYTEST]}
    project = miniature(tmp_path, environ, files, [script], validation=gates)
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert named(outcome)["refused"] == named(outcome)["held"] == []
    assert new in (project.root / "tests/test_calc.py").read_text()


TWO_WAYS = "def sign(n):\n    if n < 0:\n        return -1\n    return 1\n"
ONE_WAY = "from calc import sign\n\n\ndef test_plus():\n    assert sign(3) == 1\n"
OTHER_WAY = "\n\ndef test_minus():\n    assert sign(-3) == -1\n"


def test_tests_may_be_added_for_a_coverage_gate(tmp_path: Path, environ: Environ) -> None:
    cover = "coverage run --include=calc.py -m pytest -q && coverage report --fail-under=100"
    files = {"calc.py": TWO_WAYS, "tests/test_calc.py": ONE_WAY}
    turn = put("tests/test_calc.py", ONE_WAY + OTHER_WAY)
    project = miniature(tmp_path, environ, files, [turn], validation={"test": [cover]})
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert has_no_findings(outcome)


LINTED = CALC | {
    "Makefile": "lint:\n\tpython scripts/check.py\n",
    "scripts/check.py": "import sys\n\nsys.exit('- b' in open('calc.py').read())\n",
}


def test_a_fix_is_kept_without_the_edited_script_of_the_check(
    tmp_path: Path, environ: Environ
) -> None:
    turn = f"{REPAIR}\necho '# looked at' >> scripts/check.py; echo 'print(1)' >> scripts/check.py"
    project = miniature(tmp_path, environ, LINTED, [turn], validation={"lint": ["make lint"]})
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert named(outcome)["held"] == ["scripts/check.py"]
    assert status(project) == [" M calc.py"]


STUBS = {
    "of a dependency": ("typings/dep/__init__.pyi", "def plus(a: int, b: int) -> int: ...\n", ""),
    "that was there": ("calc.pyi", "def add(a: int, b: int) -> int: ...\n", "def add(a, b): ...\n"),
}


@pytest.mark.parametrize(("path", "text", "was"), STUBS.values(), ids=STUBS)
def test_a_type_stub_may_be_written(
    tmp_path: Path, environ: Environ, path: str, text: str, was: str
) -> None:
    files = {"calc.py": ADDED} | ({path: was} if was else {})
    gates = {"lint": [f"grep -q 'int: ...' {path}"]}
    project = miniature(tmp_path, environ, files, [put(path, text)], validation=gates)
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert has_no_findings(outcome)


def test_a_formatter_may_reformat_the_tests(tmp_path: Path, environ: Environ) -> None:
    ugly = "from calc import add\n\ndef test_add( ):\n  assert add( 1,2 )==3 , 'sum'\n"
    files = {"calc.py": ADDED, "tests/test_calc.py": ugly, ".gitignore": "*cache*\n"}
    gates = {"custom": [{"run": "ruff format --check .", "max_retries": 3}], "test": [PYTEST]}
    project = miniature(tmp_path, environ, files, ["ruff format ."], validation=gates)
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert has_no_findings(outcome)
    assert status(project) == [" M tests/test_calc.py"]


PROTO = "message Sum { int32 totl = 1; }\n"
GENERATES = r"""sed -E 's/message (\w+) \{ int32 (\w+).*/\1 = "\2"/' api.proto > api_pb2.py"""


@pytest.mark.parametrize("too", ["", f"\n{GENERATES}"], ids=["gate", "agent-too"])
def test_generated_code_may_follow_its_source(tmp_path: Path, environ: Environ, too: str) -> None:
    files = {"api.proto": PROTO, "api_pb2.py": 'Sum = "totl"\n', ".gitignore": "__pycache__/\n"}
    gates = {
        "build": [{"run": GENERATES, "writes": True}],
        "test": ["python -S -c 'from api_pb2 import Sum; assert Sum == \"total\"'"],
    }
    turn = put("api.proto", PROTO.replace("totl", "total")) + too
    project = miniature(tmp_path, environ, files, [turn], validation=gates)
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert has_no_findings(outcome)
    assert status(project) == [" M api.proto", " M api_pb2.py"]


RUST = """pub fn add(a: i32, b: i32) -> i32 {
    a - b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds() {
        assert_eq!(add(1, 2), 3);
    }
}
"""
MORE_RUST = "\n    #[test]\n    fn adds_more() {\n        assert_eq!(add(2, 2), 4);\n    }\n}\n"


@needs("cargo", "rustc", "cc")
def test_inline_tests_may_be_added_with_the_fix(tmp_path: Path, environ: Environ) -> None:
    files = {
        "Cargo.toml": '[package]\nname = "calc"\nversion = "0.1.0"\nedition = "2021"\n',
        "src/lib.rs": RUST,
        ".gitignore": "target/\n",
    }
    turn = put("src/lib.rs", RUST.replace("a - b", "a + b").removesuffix("}\n") + MORE_RUST)
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    usual = {"RUSTUP_HOME": str(home / ".rustup"), "CARGO_HOME": str(home / ".cargo")}
    own = environ | {name: os.environ.get(name, folder) for name, folder in usual.items()}
    gates = {"test": ["cargo test --offline -q"]}
    project = miniature(tmp_path, own, files, [turn], validation=gates)
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert named(outcome)["refused"] == named(outcome)["held"] == []
    assert "adds_more" in (project.root / "src/lib.rs").read_text()


EXAMPLE = '''def add(a, b):
    """Add.

    >>> add(1, 2)
    3
    """
    return a - b
'''


def test_an_example_may_be_added_with_the_fix(tmp_path: Path, environ: Environ) -> None:
    more = EXAMPLE.replace("    3\n", "    3\n    >>> add(2, 2)\n    4\n")
    fixed = more.replace("a - b", "a + b")
    gates = {"test": ["python -m doctest calc.py"]}
    project = miniature(
        tmp_path, environ, {"calc.py": EXAMPLE}, [put("calc.py", fixed)], validation=gates
    )
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert has_no_findings(outcome)


def test_an_agent_may_fix_a_test_it_added_in_an_earlier_attempt(
    tmp_path: Path, environ: Environ
) -> None:
    wrong = TEST_ADD.replace("1, 2) == 3", "2, 2) == 5")
    turns = [
        f"{REPAIR}\n{put('tests/test_more.py', wrong)}",
        put("tests/test_more.py", wrong.replace("== 5", "== 4")),
    ]
    project = miniature(tmp_path, environ, CALC, turns)
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert len(outcome.attempts) == 2
    assert has_no_findings(outcome)


def test_a_test_of_removed_code_is_deleted_once_a_person_accepts_it(
    tmp_path: Path, environ: Environ
) -> None:
    test = "from calc import minus\n\n\ndef test_minus():\n    assert minus(2, 1) == 1\n"
    files = CALC | {
        "calc.py": ADDED,
        "tests/test_minus.py": test,
        ".gitignore": "__pycache__/\n.pytest_cache/\n",
    }
    project = miniature(tmp_path, environ, files, ["rm tests/test_minus.py"] * 2)
    outcome = project.retry()
    assert outcome.verdict is Verdict.NEEDS_REVIEW
    assert status(project) == []
    assert atlas(project, *(outcome.remedy or "").split()[1:]).code == 0
    assert status(project) == [" D tests/test_minus.py"]


MAKES = """
from pathlib import Path

from calc import add

MADE = Path(__file__).parent / "fixtures" / "sums.txt"


def test_add():
    if not MADE.exists():
        MADE.parent.mkdir(exist_ok=True)
        MADE.write_text("3")
    assert add(1, 2) == int(MADE.read_text())
"""


@pytest.mark.parametrize("turn", [REPAIR, f"{PYTEST} || true; {REPAIR}; {PYTEST}"])
@pytest.mark.parametrize("ignored", ["", "fixtures/\n"], ids=["untracked", "ignored"])
def test_fixtures_created_by_the_first_run_are_not_charged(
    tmp_path: Path, environ: Environ, turn: str, ignored: str
) -> None:
    files = CALC | {"tests/test_calc.py": MAKES, ".gitignore": f"__pycache__/\n{ignored}"}
    project = miniature(tmp_path, environ, files, [turn])
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert named(outcome)["refused"] == named(outcome)["held"] == []


FLAKY = """
import time
from pathlib import Path

from calc import add

SEEN = Path(__file__).with_name("seen.txt")
ONCE = Path(__file__).parents[2] / "once"


def test_flaky():
    SEEN.write_text(str(time.time_ns()))
    there = ONCE.exists()
    ONCE.touch()
    assert there


def test_add():
    assert add(1, 2) == 3
"""


def test_a_file_rewritten_by_a_flaky_test_is_not_charged(tmp_path: Path, environ: Environ) -> None:
    files = CALC | {"tests/test_calc.py": FLAKY, "tests/seen.txt": "", ".gitignore": "*cache*\n"}
    project = miniature(tmp_path, environ, files, [REPAIR])
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert has_no_findings(outcome)


def test_an_edit_of_vendored_code_is_a_fix(tmp_path: Path, environ: Environ) -> None:
    files = {"vendor/dep/add.py": CALC["calc.py"], "main.py": "import sys\n"}
    gates = {"test": ["grep -q sum vendor/dep/add.py"]}
    turn = put("vendor/dep/add.py", ADDED)
    project = miniature(tmp_path, environ, files, [turn], validation=gates)
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert (project.root / "vendor/dep/add.py").read_text() == ADDED
