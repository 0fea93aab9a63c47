"""What git does not see buys no green: neither what turns wrote there, nor what gates recorded."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from atlas_retry.model import Status, Verdict
from tests.miniatures import ADD, ADDED, REPAIR, TEST_ADD, has_no_findings, miniature, named, put
from tests.projects import Project, atlas

Environ = dict[str, str]
CHECK = "python -S -B -c 'from calc import add; assert add(1, 2) == 3'"
REMARK = "echo '# looked at' >> calc.py"
IGNORED = ".gitignore"
CACHES = [".memo/ok", ".mypy_cache/ok", "target/debug/ok", "dist/ok"]
RECORDS = (
    "python -S -B -c 'from calc import add; print(add(1, 2))' > now; "
    "test -e snap/v && cmp -s now snap/v || { mkdir -p snap; cp now snap/v; exit 1; }"
)


def believing(path: str) -> dict[str, list[str]]:
    """A gate that believes a file instead of looking."""
    return {"lint": [f"test -e {path} || {CHECK}"]}


def hiding(*paths: str) -> dict[str, str]:
    return {"calc.py": ADD, IGNORED: "".join(f"{path.split('/')[0]}\n" for path in paths)}


def test_a_value_recorded_by_a_failing_test_does_not_make_it_flaky(
    tmp_path: Path, environ: Environ
) -> None:
    project = miniature(
        tmp_path, environ, hiding("now", "snap/v"), ["true"], validation={"test": [RECORDS]}
    )
    outcome = project.retry()
    assert outcome.baseline.results[0].status is Status.FAILED
    assert not outcome.verdict.is_green


def test_a_value_recorded_by_a_failing_test_does_not_confirm_an_attempt(
    tmp_path: Path, environ: Environ
) -> None:
    files, gates = hiding("now", "snap/v"), {"test": [RECORDS]}
    project = miniature(
        tmp_path, environ, files, [REMARK] * 2, validation=gates, retry={"flake_reruns": 0}
    )
    outcome = project.retry()
    assert not outcome.verdict.is_green
    assert "snap/v" in named(outcome)["held"]


@pytest.mark.in_place("what git ignores and a run in layers wrote is dropped")
def test_a_flaky_test_that_writes_ignored_files_is_still_flaky(
    tmp_path: Path, environ: Environ
) -> None:
    shaky = "date +%N >> run.log; date > test.db; test -e ../seen || { touch ../seen; exit 1; }"
    files = {"calc.py": ADDED, IGNORED: "run.log\ntest.db\n"}
    project = miniature(tmp_path, environ, files, [], validation={"test": [shaky]})
    outcome = project.retry()
    assert outcome.baseline.results[0].status is Status.FLAKY
    assert (project.root / "run.log").read_text().count("\n") == 1


def test_outputs_of_gates_cause_no_further_run(tmp_path: Path, environ: Environ) -> None:
    check = f"echo ran >> ../runs; date +%N > out.db; {CHECK}"
    gates, once = {"lint": [check]}, {"flake_reruns": 0}
    project = miniature(tmp_path, environ, hiding("out.db"), [REPAIR], validation=gates, retry=once)
    assert project.retry().verdict is Verdict.FIXED
    assert (tmp_path / "runs").read_text() == "ran\n" * 2


@pytest.mark.parametrize("writes", ["true", "date +%N > out/my.log"], ids=["empty", "ignored file"])
def test_an_empty_folder_that_a_turn_makes_is_not_a_fix(
    tmp_path: Path, environ: Environ, writes: str
) -> None:
    gates = {"lint": [f"test -d out/ && {writes}"]}
    turn = f"mkdir -p out; {REMARK}"
    project = miniature(tmp_path, environ, hiding("*.log"), [turn] * 2, validation=gates)
    outcome = project.retry()
    assert outcome.verdict is Verdict.NEEDS_REVIEW
    assert {*named(outcome)["held"]} == {"out"}
    assert not (project.root / "out").exists()


def test_an_empty_folder_beside_a_fix_is_no_reason_to_hold_it(
    tmp_path: Path, environ: Environ
) -> None:
    turn = f"mkdir -p empty/inner full; {REPAIR}"
    gates = {"lint": [f"date > full/log; {CHECK}"]}
    project = miniature(tmp_path, environ, {"calc.py": ADD}, [turn], validation=gates)
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert has_no_findings(outcome)


@pytest.mark.parametrize("path", CACHES)
def test_ignored_files_of_a_refused_turn_do_not_confirm_a_later_one(
    tmp_path: Path, environ: Environ, path: str
) -> None:
    refused = f"{put(path, '')}; echo '# x' >> .atlas/config.yaml"
    project = miniature(
        tmp_path, environ, hiding(path), [refused, REMARK, REMARK], validation=believing(path)
    )
    assert not project.retry().verdict.is_green


@pytest.mark.parametrize("path", CACHES)
def test_ignored_files_of_a_failed_run_are_removed(
    tmp_path: Path, environ: Environ, path: str
) -> None:
    gates = {"lint": [f"test -e {path}"], "test": [CHECK]}
    turn = f"{put(path, '')}; {REMARK}"
    project = miniature(tmp_path, environ, hiding(path), [turn] * 3, validation=gates)
    assert not project.retry(retry__max_ai_retry_attempts=1).verdict.is_green
    assert not (project.root / path).exists()


@pytest.mark.in_place("what git ignores and a run in layers wrote is dropped")
def test_what_a_turn_built_is_built_again_after_a_failed_run(
    tmp_path: Path, environ: Environ
) -> None:
    """A product of other sources, or a memo beside it, would pass for one of what is left."""
    files = {"calc.py": ADD, IGNORED: "dist/\n"}
    build = "mkdir -p dist; test dist/calc.py -nt calc.py || cp calc.py dist/"
    test = "cd dist && python -S -B -c 'from calc import add; assert add(1, 2) == 3'"
    gates = {"build": [build], "test": [test], "lint": ["test -e never"]}
    turn = f"{REMARK}; {put('dist/calc.py', ADDED)}; touch -d tomorrow dist/calc.py"
    project = miniature(tmp_path, environ, files, [turn], validation=gates)
    (project.root / "dist").mkdir()
    (project.root / "dist/calc.py").write_text(ADD)
    outcome = project.retry(retry__max_ai_retry_attempts=1)
    assert not outcome.verdict.is_green
    assert (project.root / "dist/calc.py").read_text() == ADD
    again = atlas(project, "validate", "--only", "build", "--only", "test")
    assert again.code == 1, again.err + again.out
    assert "looked at" in (project.root / "dist/calc.py").read_text()


@pytest.mark.parametrize(
    "path", [".cache/ok", ".hypothesis/ok", "target/ok", ".next/ok", "dist/ok"]
)
def test_a_manipulated_cache_of_any_tool_is_not_a_fix(
    tmp_path: Path, environ: Environ, path: str
) -> None:
    turns = [f"{put(path, '')}; {REMARK}"] * 2
    project = miniature(tmp_path, environ, hiding(path), turns, validation=believing(path))
    assert not project.retry().verdict.is_green


def test_what_was_built_from_an_ignored_file_is_built_again_without_it(
    tmp_path: Path, environ: Environ
) -> None:
    makefile = (
        "WORD = bad\n-include config.mk\nall: build/out\n\tgrep -q good build/out\n"
        "build/out: calc.py\n\tmkdir -p build\n\techo $(WORD) > build/out\n"
    )
    files = {**hiding("build", "config.mk"), "Makefile": makefile}
    turns = [f"{put('config.mk', 'WORD = good')}; {REMARK}"] * 2
    project = miniature(
        tmp_path, environ, files, turns, validation={"test": ["sleep 0.3; make -s"]}
    )
    outcome = project.retry()
    assert not outcome.verdict.is_green
    assert "config.mk" in named(outcome)["held"]


PACKAGES = "lib/python3.11/site-packages"
ENVIRONMENTS = {
    "tox": (".tox/py/pyvenv.cfg", ".tox/py/bin/python", f".tox/py/{PACKAGES}/dep.py"),
    "venv": (".venv2/pyvenv.cfg", ".venv2/bin/python", f".venv2/{PACKAGES}/sitecustomize.py"),
    "npm": ("web/node_modules/dep/index.js", "web/node_modules/.bin/dep"),
    "composer": ("vendor/dep/dep.php",),
}
IGNORES_THEM = {IGNORED: ".tox/\n.venv*/\nnode_modules/\nvendor/\n"}
"""As `.tox` itself does."""


def making(*paths: str) -> str:
    return "; ".join(put(path, "made") for path in paths)


@pytest.mark.parametrize("paths", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_a_repair_that_also_makes_an_environment_ends_fixed(
    tmp_path: Path, environ: Environ, paths: tuple[str, ...]
) -> None:
    files, again = {"calc.py": ADD} | IGNORES_THEM, "echo more | tee -a"
    turns = [f"{REMARK}; {making(*paths)}", f"{REPAIR}; {again} {' '.join(paths)}"]
    project = miniature(tmp_path, environ, files, turns, validation={"test": [CHECK]})
    other = project.root / ".tox/other" / PACKAGES / "dep.py"
    other.parent.mkdir(parents=True)
    other.write_text("was there\n")
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED, outcome.final_error
    assert (len(outcome.attempts), has_no_findings(outcome)) == (2, True)
    assert all((project.root / path).exists() for path in paths)


@pytest.mark.parametrize("paths", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
@pytest.mark.parametrize("at", [0, -1], ids=["first", "last"])
def test_an_environment_that_a_turn_makes_buys_nothing(
    tmp_path: Path, environ: Environ, paths: tuple[str, ...], at: int
) -> None:
    files, gates = {"calc.py": ADD} | IGNORES_THEM, believing(paths[at])
    turns = [f"{making(*paths)}; {REMARK}"] * 2
    project = miniature(tmp_path, environ, files, turns, validation=gates)
    assert not project.retry().verdict.is_green
    assert not any((project.root / path).exists() for path in paths)


@pytest.mark.parametrize(
    "turns",
    [
        (making(".memo/pyvenv.cfg", ".memo/ok"), REMARK),
        (making(".memo/pyvenv.cfg"), making(".memo/ok")),
    ],
    ids=["at once", "one after the other"],
)
def test_no_folder_becomes_an_environment_by_a_turn_that_says_so(
    tmp_path: Path, environ: Environ, turns: tuple[str, ...]
) -> None:
    files, gates = hiding(".memo/ok"), believing(".memo/ok")
    scripts = [f"{turn}; {REMARK}" for turn in turns]
    project = miniature(tmp_path, environ, files, scripts, validation=gates)
    assert not project.retry().verdict.is_green


@pytest.mark.parametrize(
    "path",
    [
        *(f".venv/{PACKAGES}/{name}" for name in ("sitecustomize.py", "new.pth", "dep/new.py")),
        *("node_modules/new/index.js", "node_modules/dep/node_modules/new/index.js"),
    ],
)
def test_a_file_that_a_turn_adds_to_an_environment_is_refused_and_moved_away(
    tmp_path: Path, environ: Environ, path: str
) -> None:
    files = {"calc.py": ADD} | IGNORES_THEM
    turn = f"{REPAIR}; {making(path)}"
    project = miniature(tmp_path, environ, files, [turn], validation={"test": [CHECK]})
    for there in (f".venv/{PACKAGES}", "node_modules/dep"):
        (project.root / there).mkdir(parents=True)
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert path in named(outcome)["refused"]
    assert not (project.root / path).exists()


def cut_off(tmp_path: Path, environ: Environ, path: str, files: dict[str, str]) -> Project:
    """A run whose first turn writes a file and is killed with atlas; later turns only remark."""
    project = miniature(tmp_path, environ, files, [])
    turn = f"test -e ../once && {{ {REMARK}; exit; }}; touch ../once; {put(path, 'x')}"
    project.configure(
        validation=believing(path),
        agent={"backend": "command", "command": f"{turn}; kill -9 $PPID; sleep 9"},
    )
    project.commit()
    assert atlas(project, "retry", ".", "--ai-fix").code == -9
    assert (project.root / path).exists()
    return project


@pytest.mark.in_place("a kill inside leaves the atlas outside, which says so")
@pytest.mark.parametrize(("path", "command"), [*zip(CACHES, ["resume", "retry"] * 2, strict=True)])
def test_ignored_files_of_a_killed_turn_are_removed(
    tmp_path: Path, environ: Environ, path: str, command: str
) -> None:
    project = cut_off(tmp_path, environ, path, hiding(path))
    ended = atlas(project, command, ".", "--ai-fix")
    assert ended.code == 1, ended.err + ended.out
    assert not (project.root / path).exists()


@pytest.mark.in_place("a kill inside leaves the atlas outside, which says so")
def test_a_killed_turn_that_changed_a_dependency_cannot_resume(
    tmp_path: Path, environ: Environ
) -> None:
    path = "node_modules/dep/index.js"
    project = cut_off(tmp_path, environ, path, hiding(path))
    ended = atlas(project, "resume", ".", "--ai-fix")
    assert ended.code == 3
    assert path in ended.err + ended.out
    (project.root / path).unlink()
    assert atlas(project, "resume", ".", "--ai-fix").code == 1


@pytest.mark.in_place("a kill inside leaves the atlas outside, which says so")
def test_a_killed_turn_that_turned_the_guard_off_at_home_is_not_continued(
    tmp_path: Path, environ: Environ
) -> None:
    home = Path(environ["HOME"], ".config/atlas/config.yaml")
    project = miniature(tmp_path, environ, {"calc.py": ADD, "test_calc.py": TEST_ADD}, [])
    turn = f"mkdir -p {home.parent}; echo 'guard: {{mode: \"off\"}}' > {home}"
    agent = {"backend": "command", "command": f"{turn}; {REMARK}; kill -9 $PPID; sleep 9"}
    gate = "python -S -B -c 'from test_calc import test_add; test_add()'"
    project.configure(validation={"test": [gate]}, agent=agent)
    project.commit()
    assert atlas(project, "retry", ".", "--ai-fix").code == -9
    assert home.exists()
    for command, code in (("retry", 2), ("resume", 3)):
        refused = atlas(project, command, ".", "--ai-fix")
        assert refused.code == code, refused.err + refused.out
        assert str(home) in refused.err
        assert "touch FILE" in refused.err
    home.unlink()
    assert atlas(project, "retry", ".").code == 1


def test_a_run_says_that_no_change_is_reverted(tmp_path: Path, environ: Environ) -> None:
    project = miniature(tmp_path, environ, {"calc.py": ADD}, [REMARK])
    project.configure(
        validation={"test": ["false"]},
        guard={"mode": "warn"},
        agent={"backend": "command", "command": REMARK},
    )
    assert "guard.mode is warn" in atlas(project, "retry", ".", "--ai-fix").out


CONFIG = ".atlas/config.yaml"


@pytest.mark.in_place("a kill inside leaves the atlas outside, which says so")
@pytest.mark.parametrize(
    ("path", "ignored"), [("test_calc.py", ""), (CONFIG, ""), (CONFIG, ".atlas\n")]
)
def test_what_a_killed_turn_changed_of_what_decides_is_not_believed(
    tmp_path: Path, environ: Environ, path: str, ignored: str
) -> None:
    files = {"calc.py": ADD, "test_calc.py": TEST_ADD, IGNORED: ignored}
    project = miniature(tmp_path, environ, files, [])
    kill = f"sed -i -e s/==/!=/ -e s/calc/true/g {path}; kill -9 $PPID; sleep 9"
    gate = "python -S -B -c 'from test_calc import test_add; test_add()'"
    agent = {"backend": "command", "command": kill}
    project.configure(validation={"test": [gate]}, agent=agent)
    if not ignored:
        project.commit()
    assert atlas(project, "retry", ".", "--ai-fix").code == -9
    for _ in range(2):
        refused = atlas(project, "retry", ".")
        assert refused.code == 2, refused.err + refused.out
        assert path in refused.err
        assert "atlas resume" in refused.err
        assert "atlas undo" in refused.err
    run = re.search(r"atlas undo (\S+)", refused.err)
    assert run
    assert atlas(project, "undo", run[1]).code == 0
    assert atlas(project, "retry", ".").code == 1


@pytest.mark.in_place("what git ignores and a run in layers wrote is dropped")
@pytest.mark.parametrize(
    ("turn", "gate"),
    [
        ("echo small > big.db; echo made > made.db", "test -e never"),
        (f"{REPAIR}; echo more >> big.db", f"test -e big.db && {CHECK}"),
    ],
    ids=["of a red run", "needed by the gates"],
)
def test_an_ignored_file_too_big_for_a_snapshot_is_never_removed(
    turn: str, gate: str, tmp_path: Path, environ: Environ
) -> None:
    files = {"calc.py": ADD, IGNORED: "*.db\n"}
    project = miniature(tmp_path, environ, files, [turn], validation={"test": [gate]})
    (project.root / "big.db").write_bytes(b"x" * (2 << 20))
    project.retry()
    assert (project.root / "big.db").exists()
    assert not (project.root / "made.db").exists()
    undone = atlas(project, "undo")
    assert "in no snapshot: big.db (ignored, and more than 1 MiB)" in undone.out
    assert (project.root / "big.db").exists()


@pytest.mark.parametrize(("path", "is_held"), [(".memo/ok", True), ("target/debug/ok", False)])
def test_accepting_an_ignored_file_is_offered_only_if_a_snapshot_holds_it(
    tmp_path: Path, environ: Environ, path: str, *, is_held: bool
) -> None:
    turns = [f"{put(path, 'made')}; {REMARK}"] * 2
    project = miniature(tmp_path, environ, hiding(path), turns, validation=believing(path))
    outcome = project.retry()
    assert outcome.verdict is Verdict.NEEDS_REVIEW
    command = (outcome.remedy or "").rpartition("atlas ")[2].split()
    assert command[0] == ("pick" if is_held else "validate")
    assert {*named(outcome)["held"]} == {path if is_held else "target/"}
    assert atlas(project, *command).code == (0 if is_held else 1)
    if is_held:
        assert (project.root / path).read_text() == "made"
    else:
        assert "a fresh clone would fail" in (outcome.final_error or "")


def test_accepting_by_hand_what_a_build_makes_again_brings_nothing_back(
    tmp_path: Path, environ: Environ
) -> None:
    turns = [f"{put('target/debug/ok', 'made')}; {REMARK}"] * 2
    gates = believing("target/debug/ok")
    project = miniature(tmp_path, environ, hiding("target"), turns, validation=gates)
    outcome = project.retry()
    assert atlas(project, "pick", outcome.run_id, "1", "--held").code == 2
    assert not (project.root / "target/debug/ok").exists()


@pytest.mark.in_place("what git ignores and a run in layers wrote is dropped")
def test_accepting_leaves_out_what_a_build_makes_again(tmp_path: Path, environ: Environ) -> None:
    turns = [f"{put('.memo/ok', 'made')}; {put('dist/ok', 'made')}; {REMARK}"] * 2
    gates = {"lint": [f"test -e .memo/ok -a -e dist/ok || {CHECK}"]}
    project = miniature(tmp_path, environ, hiding(".memo", "dist"), turns, validation=gates)
    outcome = project.retry()
    assert {*named(outcome)["held"]} == {".memo/ok", "dist/"}
    assert atlas(project, "pick", outcome.run_id, "1", "--held").code == 0
    assert (project.root / ".memo/ok").exists()
    assert not (project.root / "dist/ok").exists()


NOT_RECORDED = {
    "skip-worktree": ("git update-index --skip-worktree flag", "echo yes > flag", "grep yes flag"),
    "assume-unchanged": (
        "git update-index --assume-unchanged flag",
        "echo yes > flag",
        "grep yes flag",
    ),
    "mode": ("git config core.fileMode false", "chmod +x flag", "test -x flag"),
    "name": ("true", "mkdir -p a/.GIT; echo yes > a/.GIT/flag", "test -e a/.GIT/flag"),
    "line ends": ("true", "printf 'a\\n' > page.tpl", "! grep -q \"$(printf '\\r')\" page.tpl"),
}


@pytest.mark.parametrize("how", NOT_RECORDED)
def test_a_change_that_git_does_not_record_is_no_fix(
    tmp_path: Path, environ: Environ, how: str
) -> None:
    setup, turn, gate = NOT_RECORDED[how]
    files = {
        "calc.py": ADD,
        "flag": "no\n",
        "page.tpl": "a\r\n",
        ".gitattributes": "*.tpl text eol=crlf\n",
    }
    turn = f"{turn}; {REMARK}"
    project = miniature(tmp_path, environ, files, [turn] * 2, validation={"lint": [gate]})
    subprocess.run(("sh", "-c", setup), cwd=project.root, env=project.environ, check=True)
    outcome = project.retry()
    assert outcome.verdict is Verdict.NEEDS_REVIEW
    rules = {held.rule for attempt in outcome.attempts for held in attempt.held}
    assert rules == {"not-under-git"}


@pytest.mark.parametrize("name", [r"caf\303\251", r"caf\351"])
def test_an_ignored_file_of_any_name_is_named_and_removed(
    tmp_path: Path, environ: Environ, name: str
) -> None:
    files = {"calc.py": ADD, IGNORED: "state/\n"}
    turn = f"mkdir -p state; touch state/$(printf '{name}'); {REMARK}"
    gate = {"test": ['test -n "$(ls state 2>/dev/null)"']}
    project = miniature(tmp_path, environ, files, [turn] * 2, validation=gate)
    ended = atlas(project, "retry", ".", "--ai-fix", "--json")
    assert ended.code == 1, ended.err
    assert json.loads(ended.out)["verdict"] == "needs_review"
    assert atlas(project, "log").code == 0


def test_line_ends_of_a_checkout_need_no_review_if_gates_accept_them(
    tmp_path: Path, environ: Environ
) -> None:
    files = {"calc.py": ADD, ".gitattributes": "*.py text eol=crlf\n"}
    project = miniature(tmp_path, environ, files, [REPAIR], validation={"lint": [CHECK]})
    assert project.retry().verdict is Verdict.FIXED
    assert b"\r" not in (project.root / "calc.py").read_bytes()
