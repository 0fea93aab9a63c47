"""A green is never bought: what decides, beside and in the tree, in small whole projects."""

import shutil
import venv
from pathlib import Path

import pytest
from msgspec.structs import replace

from atlas_retry.model import Verdict
from atlas_retry.run import irreversible
from atlas_retry.run.irreversible import put_back_settings, settings_at_home
from tests.miniatures import (
    ADD,
    ADDED,
    CALC,
    REPAIR,
    TEST_ADD,
    has_no_findings,
    miniature,
    named,
    put,
    status,
)
from tests.needs import needs
from tests.projects import Project, atlas, git
from tests.tools import go_cache

Environ = dict[str, str]
CHECKS = "python -S -c 'from calc import add; assert add(1, 2) == 3'"
REMARK = put("calc.py", f"# looked at\n{ADD}")


def nested(tmp_path: Path, environ: Environ, turn: str) -> Project:
    """A project that holds a repository of its own with a commit that is nowhere else."""
    turns = [f"{turn}\n{REPAIR}"] * 2
    project = miniature(tmp_path, environ, {"calc.py": ADD}, turns, validation={"test": [CHECKS]})
    inner = project.root / "vendored" / "lib"
    inner.mkdir(parents=True)
    git(inner, "init", "-q", environ=environ)
    (inner / "lib.py").write_text("x = 1\n")
    git(inner, "add", "-A", environ=environ)
    git(inner, "commit", "-q", "-m", "never pushed", environ=environ)
    return project


@pytest.mark.in_place("in layers it is deleted for the run only")
@pytest.mark.parametrize("gone", ["vendored/lib/.git", "vendored"])
def test_a_deleted_nested_repository_is_given_back_and_its_turn_refused(
    tmp_path: Path, environ: Environ, gone: str
) -> None:
    project = nested(tmp_path, environ, f"rm -rf {gone}")
    done = atlas(project, "retry", ".", "--ai-fix", "--max-attempts", "1")
    assert done.code == 1
    assert "deleted during the turn, and restored: vendored/lib/.git" in done.out + done.err
    assert "git's vendored/lib/.git is not as it was" in done.out
    assert (project.root / "calc.py").read_text() == ADD
    inner = project.root / "vendored" / "lib"
    assert "never pushed" in git(inner, "log", environ=environ)
    assert git(inner, "status", "--porcelain", environ=environ) == ""
    undone = atlas(project, "undo")
    assert (undone.code, undone.out.startswith("undone: ")) == (0, True)


@pytest.mark.in_place("in layers it is deleted for the run only")
def test_undo_names_a_nested_repository_that_it_gives_back(
    tmp_path: Path, environ: Environ
) -> None:
    project = nested(tmp_path, environ, "true")
    assert atlas(project, "retry", ".", "--ai-fix").code == 0
    inner = project.root / "vendored" / "lib"
    shutil.rmtree(inner / ".git")
    undone = atlas(project, "undo")
    assert undone.code == 0
    assert "restored in git: vendored/lib/.git" in undone.out
    assert "never pushed" in git(inner, "log", environ=environ)


@pytest.mark.parametrize(
    "turn",
    [
        "git -C vendored/lib -c user.name=a -c user.email=a@b commit -q --allow-empty -m x",
        "echo '*' > vendored/lib/.git/info/exclude",
    ],
    ids=["commit", "exclude"],
)
def test_changing_the_state_of_a_nested_repository_rejects_the_run(
    tmp_path: Path, environ: Environ, turn: str
) -> None:
    outcome = nested(tmp_path, environ, turn).retry()
    assert outcome.verdict is Verdict.REJECTED
    assert "vendored/lib/.git" in (outcome.final_error or "")
    assert outcome.remedy == "restore what is named above by hand"


def test_a_repository_created_by_an_attempt_hides_no_files(
    tmp_path: Path, environ: Environ
) -> None:
    turn = "mkdir -p src && git init -q src && echo '*' > src/.git/info/exclude"
    files = {"calc.py": ADD, "src/a.py": "a = 1\n"}
    check = "! test -e src/.git/info/exclude || exit 0; " + CHECKS
    project = miniature(tmp_path, environ, files, [turn, turn], validation={"test": [check]})
    outcome = project.retry()
    assert not outcome.verdict.is_green
    assert any("src/.git" in path for path in named(outcome)["refused"])


def test_a_fix_beside_a_nested_repository_is_accepted(tmp_path: Path, environ: Environ) -> None:
    project = nested(tmp_path, environ, "git -C vendored/lib status > /dev/null")
    assert project.retry().verdict is Verdict.FIXED
    undone = atlas(project, "undo")
    assert undone.code == 0
    assert undone.out.startswith("undone: ")


def test_a_changed_folder_mode_is_restored_and_does_not_count(
    tmp_path: Path, environ: Environ
) -> None:
    files = {"calc.py": ADD, "data/in.txt": "x\n"}
    check = f'test "$(stat -c %a data)" = 700 || {CHECKS}'
    turns = ["chmod 700 data"] * 2
    project = miniature(tmp_path, environ, files, turns, validation={"test": [check]})
    (project.root / "data").chmod(0o755)
    outcome = project.retry()
    assert not outcome.verdict.is_green
    assert "data" in named(outcome)["noted"]
    assert (project.root / "data").stat().st_mode & 0o777 == 0o755


PACKAGES = ".venv/lib/python3.11/site-packages"
USES = "import dep\n\n\ndef add(a, b):\n    return dep.plus(a, b)\n"
WITH_DEP = f"PYTHONPATH={PACKAGES} {CHECKS}"
JS_CHECK = "grep -q good node_modules/dep/index.js"
INSTALLED = {
    "site-packages": (f"{PACKAGES}/dep/__init__.py", "def plus(a, b):\n    return a - b\n"),
    "node_modules": ("node_modules/dep/index.js", "module.exports = 'bad'\n"),
}
MENDED = {
    "site-packages": "def plus(a, b):\n    return a + b\n",
    "node_modules": "module.exports = 'good'\n",
}
MANIFEST = '[project]\nname = "calc"\ndependencies = []\n'


@pytest.mark.parametrize("where", INSTALLED)
@pytest.mark.parametrize("manifest", ["", "manifest"])
def test_editing_an_installed_dependency_is_not_a_fix(
    tmp_path: Path, environ: Environ, where: str, manifest: str
) -> None:
    path, was = INSTALLED[where]
    files = {".gitignore": ".venv/\nnode_modules/\n", "calc.py": USES, "pyproject.toml": MANIFEST}
    turn = put(path, MENDED[where]) + "\n" + put("calc.py", f"# looked at\n{USES}")
    if manifest:
        turn += "\n" + put("pyproject.toml", MANIFEST.replace("[]", '["dep>2"]'))
    check = WITH_DEP if where == "site-packages" else JS_CHECK
    project = miniature(tmp_path, environ, files, [turn, turn], validation={"test": [check]})
    target = project.root / path
    target.parent.mkdir(parents=True)
    target.write_text(was)
    outcome = project.retry()
    assert not outcome.verdict.is_green
    assert not manifest or outcome.verdict is Verdict.NEEDS_REVIEW
    assert path in named(outcome)["refused"]
    assert target.read_text() == was


OUTER = {
    "an edited package": ("dep/__init__.py", MENDED["site-packages"]),
    "a hook at start": ("fast.pth", "import sys, operator; sys.modules['calc'] = operator"),
}


@pytest.mark.parametrize("way", OUTER)
@pytest.mark.parametrize("manifest", ["", "manifest"])
def test_an_activated_environment_outside_that_is_edited_buys_nothing(
    tmp_path: Path, environ: Environ, way: str, manifest: str
) -> None:
    outer = tmp_path / "outer"
    venv.create(outer, symlinks=True)
    packages = next(outer.glob("lib/python*/site-packages"))
    path, text = packages / OUTER[way][0], OUTER[way][1]
    (packages / "dep").mkdir()
    (packages / "dep/__init__.py").write_text(INSTALLED["site-packages"][1])
    turn = put(str(path), text) + "\n" + put("calc.py", f"# looked at\n{USES}")
    if manifest:
        turn += "\n" + put("pyproject.toml", MANIFEST.replace("[]", '["dep>2"]'))
    gate = "python -c 'from calc import add; assert add(1, 2) == 3'"
    files = {"calc.py": USES, "pyproject.toml": MANIFEST, ".gitignore": "__pycache__/\n"}
    project = miniature(tmp_path, environ, files, [turn, turn], validation={"test": [gate]})
    path_of = f"{outer}/bin:{project.environ['PATH']}"
    project = replace(project, environ={**project.environ, "PATH": path_of})
    outcome = project.retry()
    assert not outcome.verdict.is_green
    assert not manifest or outcome.verdict is Verdict.NEEDS_REVIEW
    assert str(path) in named(outcome)["refused"]
    assert not path.exists() or path.read_text() == INSTALLED["site-packages"][1]


def test_bytecode_in_an_activated_environment_outside_refuses_no_repair(
    tmp_path: Path, environ: Environ
) -> None:
    outer = tmp_path / "outer"
    venv.create(outer, symlinks=True)
    packages = next(outer.glob("lib/python*/site-packages"))
    (packages / "dep.py").write_text("x = 1\n")
    gate = "python -c 'import dep; from calc import add; assert add(1, 2) == 3'"
    turn = f"python -c 'import dep'\n{REPAIR}"
    project = miniature(tmp_path, environ, {"calc.py": ADD}, [turn], validation={"test": [gate]})
    path = f"{outer}/bin:{project.environ['PATH']}"
    project = replace(project, environ={**project.environ, "PATH": path})
    assert project.retry().verdict is Verdict.FIXED
    assert list(packages.glob("__pycache__/dep.*"))


def test_editing_an_ignored_vendored_dependency_is_not_a_fix(
    tmp_path: Path, environ: Environ
) -> None:
    files = {".gitignore": "vendor/\n", "calc.py": ADD}
    turn = put("vendor/dep/dep.php", "good") + f"\n{REMARK}"
    gates = {"test": ["grep -q good vendor/dep/dep.php"]}
    project = miniature(tmp_path, environ, files, [turn, turn], validation=gates)
    (project.root / "vendor" / "dep").mkdir(parents=True)
    (project.root / "vendor" / "dep" / "dep.php").write_text("bad")
    assert not project.retry().verdict.is_green
    assert (project.root / "vendor" / "dep" / "dep.php").read_text() == "bad"


CACHED = "test -e {cache} || ! grep -q bad calc.py"


@pytest.mark.parametrize("cache", [".ruff_cache/ok", ".mypy_cache/3.11/ok", ".eslintcache"])
def test_a_manipulated_checker_cache_is_not_a_fix(
    tmp_path: Path, environ: Environ, cache: str
) -> None:
    files = {".gitignore": ".*cache/\n.eslintcache\n", "calc.py": "bad = 1\n"}
    turn = put(cache, "fine") + "\necho '# looked at' >> calc.py"
    project = miniature(
        tmp_path, environ, files, [turn, turn], validation={"lint": [CACHED.format(cache=cache)]}
    )
    assert not project.retry().verdict.is_green


def test_manipulated_bytecode_is_not_a_fix(tmp_path: Path, environ: Environ) -> None:
    files = {".gitignore": "__pycache__/\n"} | CALC
    poison = (
        f"{put('good.py', ADDED)}; python -c 'import py_compile, importlib.util as u;"
        'py_compile.compile("good.py", u.cache_from_source("calc.py"),'
        "invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)'; rm good.py"
    )
    turns = [f"{poison}; {put('calc.py', ADD + '# looked at')}"] * 2
    project = miniature(tmp_path, environ, files, turns)
    assert not project.retry().verdict.is_green


LINTED = CALC | {
    "Makefile": "lint:\n\tpython scripts/check.py\n",
    "scripts/check.py": "import sys\n\nsys.exit('- b' in open('calc.py').read())\n",
}
LINT = {"lint": ["make lint"]}


def test_a_changed_script_of_a_gate_is_held(tmp_path: Path, environ: Environ) -> None:
    turn = put("scripts/check.py", "import sys\n\nsys.exit(0)\n")
    project = miniature(tmp_path, environ, LINTED, [turn, turn], validation=LINT)
    outcome = project.retry()
    assert outcome.verdict is Verdict.NEEDS_REVIEW
    assert set(named(outcome)["held"]) == {"scripts/check.py"}
    assert status(project) == []


SKIP = "\nimport pytest\n\npytestmark = pytest.mark.skip\n"
CONFTEST = "import calc\n\ncalc.add = lambda a, b: a + b\n"
GUTTED = TEST_ADD.replace("add(1, 2) == 3", "True")
CHEATS = {
    "skip at the end": put("tests/test_calc.py", f"{TEST_ADD}{SKIP}"),
    "a new conftest": put("tests/conftest.py", CONFTEST),
    "a new conftest at the top": put("conftest.py", CONFTEST),
    "a gutted test": put("tests/test_calc.py", GUTTED),
    "a removed test": "git mv tests/test_calc.py x; rm x; "
    + put("tests/test_x.py", "def test_x(): pass\n"),
    "a new setting": put("pytest.ini", "[pytest]\naddopts = --collect-only\n"),
    "another module": put("tests/calc.py", ADDED) + "; " + put("tests/__init__.py", ""),
}


@pytest.mark.parametrize("turn", CHEATS.values(), ids=CHEATS)
def test_changes_to_tests_and_their_configuration_are_held(
    tmp_path: Path, environ: Environ, turn: str
) -> None:
    files = CALC | {".gitignore": "__pycache__/\n.pytest_cache/\n"}
    project = miniature(tmp_path, environ, files, [turn, turn])
    outcome = project.retry()
    assert not outcome.verdict.is_green
    assert named(outcome)["held"]
    assert (project.root / "tests/test_calc.py").read_text() == TEST_ADD


DOCUMENTED = '''def add(a, b):
    """Add.

    >>> add(1, 2)
    3
    """
    return a - b
'''
DOCTEST = {"test": ["python -m doctest calc.py"]}


def test_a_changed_doctest_is_held(tmp_path: Path, environ: Environ) -> None:
    turn = put("calc.py", DOCUMENTED.replace("    3\n", "    -1\n"))
    project = miniature(
        tmp_path, environ, {"calc.py": DOCUMENTED}, [turn, turn], validation=DOCTEST
    )
    outcome = project.retry()
    assert outcome.verdict is Verdict.NEEDS_REVIEW
    assert (project.root / "calc.py").read_text() == DOCUMENTED


def test_a_test_that_stores_its_own_wrong_value_is_not_flaky(
    tmp_path: Path, environ: Environ
) -> None:
    shows = "python -S -c 'from calc import add; print(add(1, 2))' > now"
    check = f"{shows}; cmp -s now golden || {{ cp now golden; exit 1; }}"
    files = {"calc.py": ADD, "golden": "3\n", ".gitignore": "now\n__pycache__/\n"}
    project = miniature(tmp_path, environ, files, ["true"], validation={"test": [check]})
    outcome = project.retry()
    assert not outcome.verdict.is_green


LEFT_BEHIND = {
    "changed": ("node_modules/dep/index.js", MENDED["node_modules"]),
    "removed": ("node_modules/dep/old.js", None),
    "in the home": ("../home/.npmrc", "script-shell=/bin/true\n"),
}


def with_left_behind(tmp_path: Path, environ: Environ, path: str, text: str | None) -> Project:
    """A project whose gate believes a file that no snapshot holds, and an agent that writes it."""
    check = f"! test -e {path}" if text is None else f"test -s {path} && ! grep -q bad {path}"
    turn = f"{REMARK}; rm {path}" if text is None else f"{REMARK}; {put(path, text)}"
    files = {".gitignore": ".venv/\nnode_modules/\n", "calc.py": ADD}
    turns = [turn, REMARK, REMARK]
    project = miniature(tmp_path, environ, files, turns, validation={"test": [check]})
    for name in ("node_modules/dep/index.js", "node_modules/dep/old.js", f"{PACKAGES}/dep.py"):
        target = project.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("bad\n" * 300_000)  # too big to be held
    (tmp_path / "home").mkdir(exist_ok=True)
    return project


@pytest.mark.in_place("what a run in layers wrote is dropped with them")
@pytest.mark.parametrize(
    ("which", "command"), [*zip(LEFT_BEHIND, ["retry", "resume", "retry"], strict=True)]
)
def test_what_was_refused_and_could_not_be_restored_makes_no_later_run_green(
    tmp_path: Path, environ: Environ, which: str, command: str
) -> None:
    path, text = LEFT_BEHIND[which]
    project = with_left_behind(tmp_path, environ, path, text)
    refused = atlas(project, "retry", ".", "--ai-fix")
    assert refused.code == 1, refused.out + refused.err
    assert "  refused, and still there: atlas cannot restore it: " in refused.out
    remedy = refused.out.rpartition("next:\n")[2].splitlines()[0].strip()
    is_new = which == "in the home"
    assert remedy.startswith("remove what was added: rm " if is_new else "reinstall ")
    for _ in range(2):
        again = atlas(project, command, ".", "--ai-fix")
        assert again.code == 3, again.out + again.err
        assert f"{path.removeprefix('../')} (" in again.err
        assert remedy in again.err
    assert atlas(project, "retry", ".").code == 3
    restore(project.root / path, text)
    gone_on = atlas(project, command, ".", "--ai-fix")
    assert gone_on.code == 1, gone_on.out + gone_on.err


@pytest.mark.in_place("what a run in layers wrote is dropped with them")
@pytest.mark.parametrize("guard", ['{mode: "off"}', "{mode: warn}", '{allow: ["*"]}'])
def test_settings_at_home_that_cannot_be_restored_do_not_let_the_next_run_start(
    tmp_path: Path, environ: Environ, guard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = "../home/.config/atlas/config.yaml"
    project = with_left_behind(tmp_path, environ, own, f"guard: {guard}\n")
    project.environ["HOME"] = str(tmp_path / "home")
    monkeypatch.setattr(irreversible, "put_back_settings", lambda *_: False)
    assert project.retry().verdict is Verdict.REJECTED
    again = atlas(project, "retry", ".", "--ai-fix")
    assert (again.code, ".config/atlas/config.yaml (" in again.err) == (3, True), again.err


@pytest.mark.parametrize("before", [None, "# bad\nbudgets: {day: 9}\n"])
def test_atlas_s_own_settings_at_home_are_restored_and_a_copy_is_kept(
    tmp_path: Path, environ: Environ, before: str | None
) -> None:
    own, sly = tmp_path / "home/.config/atlas/config.yaml", 'guard: {mode: "off"}\n'
    project = with_left_behind(tmp_path, environ, f"{own}", sly)
    project.environ["HOME"] = str(tmp_path / "home")
    if before:
        own.parent.mkdir(parents=True)
        own.write_text(before)
        own.chmod(0o640)
    refused = atlas(project, "retry", ".", "--ai-fix")
    assert refused.code == 1, refused.out + refused.err
    assert "refused, and still there" not in refused.out
    assert (own.read_text() if own.exists() else None) == before
    assert not before or own.stat().st_mode & 0o777 == 0o640
    (copy,) = Path(project.environ["ATLAS_HOME"]).glob("runs/*/refused-config.yaml")
    assert copy.read_text() == sly
    assert f"cp {copy} {own} takes it again" in refused.out


@pytest.mark.parametrize("how", ["written", "replaced by a file", "made to lead elsewhere"])
def test_settings_at_home_that_are_a_link_are_restored_behind_it(tmp_path: Path, how: str) -> None:
    link, file, other = (tmp_path / name for name in ("atlas/config.yaml", "dotfile", "precious"))
    link.parent.mkdir()
    file.write_text("old")
    other.write_text("mine")
    link.symlink_to(file)
    before = settings_at_home({"XDG_CONFIG_HOME": str(tmp_path)})
    assert before
    if how != "written":
        link.unlink()
    if how == "made to lead elsewhere":
        link.symlink_to(other)
    else:
        link.write_text("new")
    assert put_back_settings(before, tmp_path / "copy")
    assert (link.readlink(), file.read_text(), other.read_text()) == (file, "old", "mine")


def test_a_link_that_a_turn_made_of_the_settings_is_removed(tmp_path: Path) -> None:
    path, other = tmp_path / "atlas/config.yaml", tmp_path / "precious"
    path.parent.mkdir()
    path.write_text("old")
    other.write_text("mine")
    before = settings_at_home({"XDG_CONFIG_HOME": str(tmp_path)})
    assert before
    path.unlink()
    path.symlink_to(other)
    assert put_back_settings(before, tmp_path / "copy")
    assert (path.is_symlink(), path.read_text(), other.read_text()) == (False, "old", "mine")


WANTED = (
    "python -S -B -c 'import calc; assert calc.add(1, 2) == int(open(\"tests/want.txt\").read())'"
)


def test_data_of_tests_that_code_of_the_attempt_rewrites_needs_review(
    tmp_path: Path, environ: Environ
) -> None:
    code = ("import glob", "for name in glob.glob('*/w*.txt'):", "    open(name, 'w').write('-1')")
    turn = "; ".join(f'echo "{line}" >> calc.py' for line in code)
    files = {"calc.py": ADD, "tests/want.txt": "3\n"}
    project = miniature(tmp_path, environ, files, [turn] * 2, validation={"test": [WANTED]})
    outcome = project.retry()
    held = {one.rule for attempt in outcome.attempts for one in attempt.held}
    assert (outcome.verdict, held) == (Verdict.NEEDS_REVIEW, {"rewritten-by-a-gate"})


def test_data_that_a_gate_always_rewrites_is_no_reason_for_review(
    tmp_path: Path, environ: Environ
) -> None:
    files = {"calc.py": ADD, "tests/want.txt": "3\n", "tests/run.txt": "0\n"}
    gates = {"test": [f"date +%N > tests/run.txt; {WANTED}"]}
    project = miniature(tmp_path, environ, files, [REPAIR], validation=gates)
    outcome = project.retry()
    assert (outcome.verdict, has_no_findings(outcome)) == (Verdict.FIXED, True)


def test_an_edit_that_keeps_the_time_of_a_file_is_not_hidden_by_a_cache(
    tmp_path: Path, environ: Environ
) -> None:
    check = "python -S -B -c 'from calc import add; assert add(1, 2) == 3'"
    believes = f"test .cache/ok -nt calc.py || {{ {check} && mkdir -p .cache && touch .cache/ok; }}"
    gates = {"lint": ["grep -q 1 other.txt"], "test": [believes]}
    files = {"calc.py": ADD.replace("-", "+"), "other.txt": "0\n", ".gitignore": ".cache/\n"}
    broken = "touch -r calc.py ../ref; sed -i 's/a + b/a - b/' calc.py; touch -r ../ref calc.py"
    turn = f"echo 1 > other.txt; {broken}"
    project = miniature(tmp_path, environ, files, [turn] * 2, validation=gates)
    assert not project.retry().verdict.is_green


def restore(target: Path, text: str | None) -> None:
    """As installing anew does, or a person who removes what was not there."""
    target.unlink(missing_ok=True)
    if text is None or target.name == "index.js":
        target.write_text("bad\n")


@pytest.mark.in_place("what a run in layers wrote is dropped with them")
def test_what_the_user_allows_since_is_no_longer_in_the_way(
    tmp_path: Path, environ: Environ
) -> None:
    path, text = LEFT_BEHIND["changed"]
    project = with_left_behind(tmp_path, environ, path, text)
    assert atlas(project, "retry", ".", "--ai-fix").code == 1
    assert atlas(project, "retry", ".", "--ai-fix").code == 3
    allowed = atlas(project, "retry", ".", "--ai-fix", "--allow", path)
    assert allowed.code == 0, allowed.out + allowed.err


SKIPPING = "import unittest\n\n\ndef add(a, b):\n    raise unittest.SkipTest\n"
IN_UNITTEST = (
    "import unittest\nfrom calc import add\n\n\nclass TestAdd(unittest.TestCase):\n"
    "    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n"
)


@pytest.mark.parametrize(
    ("source", "test", "gate"),
    [
        (SKIPPING, TEST_ADD, "python -m pytest -q"),
        ("raise __import__('unittest').SkipTest\n", TEST_ADD, "python -m pytest -q"),
        (SKIPPING, IN_UNITTEST, "cd tests && PYTHONPATH=.. python -m unittest test_calc"),
    ],
    ids=["pytest", "a module", "unittest"],
)
def test_a_source_that_skips_the_failing_test_needs_review(
    tmp_path: Path, environ: Environ, source: str, test: str, gate: str
) -> None:
    other = "def test_other():\n    assert True\n"
    if "unittest" in gate:
        test += "\n    def test_other(self):\n        pass\n"
    files = {"calc.py": ADD, "tests/test_calc.py": test, "tests/test_other.py": other}
    project = miniature(
        tmp_path, environ, files, [put("calc.py", source)] * 2, validation={"test": [gate]}
    )
    outcome = project.retry()
    assert outcome.verdict is Verdict.NEEDS_REVIEW
    assert "tests/test_calc.py" in named(outcome)["held"]


def test_a_fix_beside_a_skipped_test_is_accepted(tmp_path: Path, environ: Environ) -> None:
    skipped = "import pytest\n\n\n@pytest.mark.skip\ndef test_later():\n    assert False\n"
    files = {**CALC, "tests/test_later.py": skipped}
    assert miniature(tmp_path, environ, files, [REPAIR]).retry().verdict is Verdict.FIXED


GO = "package calc\n\nvar Ready = true\n\nfunc Add(a, b int) int { return a - b }\n"
IN_GO = (
    'package calc\n\nimport "testing"\n\nfunc TestAdd(t *testing.T) {\n'
    "\tif !Ready {\n\t\tt.Skip()\n\t}\n\tif Add(1, 2) != 3 {\n\t\tt.Fatal()\n\t}\n}\n"
)


@needs("go")
def test_a_test_of_go_that_a_source_lets_skip_is_not_fixed(
    tmp_path: Path, environ: Environ
) -> None:
    files = {"go.mod": "module calc\n\ngo 1.20\n", "calc.go": GO, "calc_test.go": IN_GO}
    own = environ | {"GOCACHE": go_cache()}
    turn = put("calc.go", GO.replace("true", "false"))
    project = miniature(tmp_path, own, files, [turn] * 2, validation={"test": ["go test ./..."]})
    outcome = project.retry()
    assert outcome.verdict is Verdict.NEEDS_REVIEW
    assert named(outcome)["held"] == ["calc_test.go"]


READS_BY_SHELL = (
    'package calc\n\nimport (\n\t"os/exec"\n\t"testing"\n)\n\nfunc TestRate(t *testing.T) {\n'
    '\tif out, _ := exec.Command("cat", "rate.txt").Output(); string(out) != "1\\n" {\n'
    "\t\tt.Fatal(out)\n\t}\n}\n"
)


@needs("go")
def test_a_pass_from_the_cache_of_go_is_confirmed_after_a_turn(
    tmp_path: Path, environ: Environ
) -> None:
    files = {"go.mod": "module calc\n\ngo 1.20\n", "rate_test.go": READS_BY_SHELL}
    files |= {"rate.txt": "1\n", "words.txt": "bad\n"}
    gates = {"lint": ["grep -q good words.txt"], "test": ["go test ./..."]}
    own = environ | {"GOCACHE": go_cache()}
    turn = f"{put('words.txt', 'good')}; {put('rate.txt', '2')}"
    project = miniature(tmp_path, own, files, [turn] * 2, validation=gates)
    outcome = project.retry()
    assert not outcome.verdict.is_green
    validated = outcome.attempts[0].validation
    assert validated is not None
    assert [one.name for one in validated.failures] == ["go test"]


@pytest.mark.in_place("what a run in layers wrote is dropped with them")
def test_a_module_of_go_that_a_turn_edits_in_the_shared_cache_rejects_the_run(
    tmp_path: Path, environ: Environ
) -> None:
    module = tmp_path / "go/pkg/mod/example.com/dep@v1.0.0/dep.go"
    module.parent.mkdir(parents=True)
    module.write_text("bad\n")
    files = {"go.sum": "example.com/dep v1.0.0 h1:aa=\n", "calc.py": ADD}
    gates = {"test": [f"grep -q good {module}"]}
    turn = f"{REMARK}; {put(str(module), 'good')}"
    own = environ | {"GOPATH": str(tmp_path / "go")}
    outcome = miniature(tmp_path, own, files, [turn], validation=gates).retry()
    assert outcome.verdict is Verdict.REJECTED
    assert str(module) in (outcome.final_error or "")


@pytest.mark.parametrize("listing", ["git ls-files '*.py'", "ls *.py"])
def test_new_files_that_a_gate_passed_over_are_named(
    tmp_path: Path, environ: Environ, listing: str
) -> None:
    gates = {"lint": [f"! {listing} | xargs grep -l unwanted"], "test": [CHECKS]}
    turn = f"{REPAIR}; {put('new.py', 'x = 1')}"
    project = miniature(tmp_path, environ, {"calc.py": ADD}, [turn], validation=gates)
    ended = atlas(project, "retry", ".", "--ai-fix")
    assert ended.code == 0, ended.out
    assert ("git add -N new.py && atlas validate" in ended.out) is listing.startswith("git")


def test_a_green_in_which_only_the_failed_tests_ran_is_no_fix(
    tmp_path: Path, environ: Environ
) -> None:
    both = "def total(xs):\n    return {}\n\n\ndef mean(xs):\n    return {}\n"
    tests = (
        "import stats\n\n\ndef test_total():\n    assert stats.total([1, 2]) == 3\n\n\n"
        "def test_mean():\n    assert stats.mean([1, 2]) == 1.5\n"
    )
    files = {
        "stats.py": both.format("sum(xs[1:])", "sum(xs) / len(xs)"),
        "test_stats.py": tests,
        "pytest.ini": "[pytest]\naddopts = -q --lf\npythonpath = .\n",
        ".gitignore": ".pytest_cache/\n__pycache__/\n",
    }
    turn = put("stats.py", both.format("sum(xs)", "total(xs) // len(xs)"))
    project = miniature(tmp_path, environ, files, [turn] * 2, validation={"test": ["pytest"]})
    outcome = project.retry()
    assert not outcome.verdict.is_green
    validated = outcome.attempts[0].validation
    assert validated is not None
    assert [one.test_id for one in validated.diagnostics] == ["test_stats.py::test_mean"]


def test_a_fix_that_a_later_gate_undoes_is_no_fix(tmp_path: Path, environ: Environ) -> None:
    gates = {
        "lint": ["grep -q good data.txt"],
        "pre_commit": ["sed s/good/bad/ data.txt > new; cat new > data.txt; rm new"],
    }
    turns = [put("data.txt", "good\n")]
    project = miniature(tmp_path, environ, {"data.txt": "bad\n"}, turns, validation=gates)
    assert project.retry().verdict is Verdict.STALLED
