"""The guard's case as it is built from folders, revisions and snapshots, and what comes of it."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from atlas_retry.errors import ConfigError, UsageError
from atlas_retry.guard import Judgement, judge
from atlas_retry.guard.judge import ChangeAsked, JudgedTurn, folders, seals, with_base_configuration
from atlas_retry.guard.judge.replay import replayed
from atlas_retry.model import Content, Gate, Held, Kind, Verdict
from atlas_retry.settings import GuardSettings, Settings
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.snapshot import snapshots
from tests.guardcases import MemoryTree, answers, failed
from tests.repositories import commit, git, opened, repository, write

TEST = "from src.a import a\n\n\ndef test_a():\n    assert a == 41713\n"
WEAK = "def test_a():\n    assert True\n"
Environ = dict[str, str]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once: the processes of git are what these tests spend their time on."""
    root = repository(tmp_path_factory.mktemp("template") / "repo")
    write(root, "tests/test_a.py", TEST)
    write(root, ".gitignore", "node_modules/\n.env\nlocal/\n")
    commit(root)
    return root


@pytest.fixture
def root(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "repo"))


def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Two folders with the same files."""
    both = tmp_path / "before", tmp_path / "after"
    for folder in both:
        write(folder, "tests/test_a.py", TEST)
        write(folder, "src/a.py", "a = 1\n")
    return both


# --- two folders, or a revision -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "content", "given"),
    [
        ("tests/test_a.py", WEAK, {"held": {"test-changed"}}),
        ("tests/conftest.py", "x = 1\n", {"held": {"test-changed"}}),
        ("src/a.py", "a = 2\n", {}),
        ("src/a.py", 'x = "PYTEST_CURRENT_TEST"\n', {"refused": {"test-aware"}}),
        ("node_modules/a.js", "1\n", {"refused": {"dependency-changed"}}),
        ("vendor/a.js", "let x = 1\n", {}),
    ],
)
def test_all_files_of_two_folders_are_compared(
    tmp_path: Path, environ: Environ, path: str, content: str, given: object
) -> None:
    before, after = pair(tmp_path)
    write(after, path, content)
    asked = ChangeAsked(workspace=after, base=str(before), failing=(failed("pytest"),))
    if path.startswith(("node_modules", "vendor")):
        for folder in (before, after):
            git(folder, "init", "-q")
            write(folder, ".git/info/exclude", "node_modules/\n")
    assert answers(judge.judge_change(asked, environ)) == given


def test_a_lost_execute_bit_counts_as_a_change(tmp_path: Path, environ: Environ) -> None:
    before, after = pair(tmp_path)
    write(before, "check.sh", "true\n", 0o755)
    write(after, "check.sh", "true\n", 0o644)
    judgement = judge.judge_change(ChangeAsked(workspace=after, base=str(before)), environ)
    assert answers(judgement) == {"held": {"mode-changed"}}


def test_the_git_state_of_two_folders_is_compared(tmp_path: Path, environ: Environ) -> None:
    before, after = pair(tmp_path)
    for folder in (before, after):
        git(folder, "init", "-q")
    asked = ChangeAsked(workspace=after, base=str(before))
    assert answers(judge.judge_change(asked, environ)) == {}
    git(after, "config", "core.hooksPath", "/elsewhere")
    assert answers(judge.judge_change(asked, environ)) == {"refused": {"git-state"}}


@pytest.mark.parametrize("gone", ["before", "after"])
def test_a_folder_without_git_has_no_git_state(tmp_path: Path, environ: Environ, gone: str) -> None:
    before, after = pair(tmp_path)
    git(after if gone == "before" else before, "init", "-q")
    judgement = judge.judge_change(ChangeAsked(workspace=after, base=str(before)), environ)
    assert answers(judgement) == {}


@pytest.mark.parametrize("link", [False, True])
def test_outside_folders_are_compared_except_caches(
    tmp_path: Path, environ: Environ, link: bool
) -> None:
    before, after = pair(tmp_path)
    old, new = tmp_path / "old", tmp_path / "new"
    write(old, ".bashrc", "1\n")
    write(new, ".cache/x", "2\n")
    write(new, ".bashrc", "1\n" if link else "2\n")
    if link:
        (new / "linked").symlink_to(tmp_path)
    asked = ChangeAsked(workspace=after, base=str(before), outside=((old, new),))
    refused = judge.judge_change(asked, environ).refused
    assert [(v.rule, v.path) for v in refused] == [
        ("outside-workspace", str(new / ("linked" if link else ".bashrc")))
    ]


def test_a_revision_can_be_the_base_and_all_options_apply(root: Path, environ: Environ) -> None:
    write(root, "tests/test_a.py", WEAK)
    write(root, "src/a.py", "import os\n\n\ndef f():\n    os._exit(0)\n")
    write(root, "src/b.py", "b = 3\n")
    asked = ChangeAsked(workspace=root, base="HEAD", failing=(failed("pytest"),))
    assert answers(judge.judge_change(asked, environ)) == {
        "held": {"test-changed"},
        "review": {"run-ended"},
    }
    eased = replace(asked, allow=("tests/",), protect=("src/b.py",), notes_reviews=True)
    assert answers(judge.judge_change(eased, environ)) == {
        "noted": {"run-ended"},
        "refused": {"protected-path"},
    }


def test_known_gates_name_the_files_they_run(root: Path, environ: Environ) -> None:
    write(root, "run.sh", "exit 0\n", 0o755)
    gate = Gate(name="run", kind=Kind.CUSTOM, run="sh run.sh")
    asked = ChangeAsked(workspace=root, base="HEAD", gates=(gate,))
    assert answers(judge.judge_change(asked, environ)) == {"held": {"gate-script-changed"}}


def test_a_literal_is_searched_in_the_tests_of_the_base(root: Path, environ: Environ) -> None:
    write(root, "src/b.py", "def f(x):\n    if x == 41713:\n        return 1\n    return 0\n")
    asked = ChangeAsked(workspace=root, base="HEAD", failing=(failed("pytest"),))
    assert answers(judge.judge_change(asked, environ)) == {"review": {"special-cased"}}


def test_explain_reports_one_path_only(root: Path, environ: Environ) -> None:
    write(root, "tests/test_a.py", WEAK)
    write(root, "src/a.py", "a = 2\n")
    asked = ChangeAsked(workspace=root, base="HEAD")
    rulings = judge.explain(asked, "src/a.py", environ)
    assert [(r.path, r.mechanism) for r in rulings] == [("src/a.py", "a source, kept")]


@pytest.mark.parametrize(
    ("folder", "base", "words"),
    [
        (".", "", "--base is empty"),
        (".", "  ", "--base is empty"),
        ("x", "HEAD", "is not a folder"),
    ],
)
def test_an_unknown_base_or_folder_is_a_usage_error(
    root: Path, environ: Environ, folder: str, base: str, words: str
) -> None:
    with pytest.raises(UsageError, match=words) as raised:
        judge.judge_change(ChangeAsked(workspace=root / folder, base=base), environ)
    assert raised.value.remedy


# --- an attempt of a run --------------------------------------------------------------------------


class Attempt:
    """A workspace whose turn is between two snapshots."""

    def __init__(self, ws: Workspace, environ: Environ, *lines: str, **guard: object) -> None:
        gates = tuple(Gate(name=line, kind=Kind.TEST, run=line) for line in lines)
        self.ws = ws
        self.settings = Settings(gates=gates, guard=GuardSettings(**guard))  # type: ignore[arg-type]
        self.origin = self.before = snapshots.snapshot(ws).id
        self.taken = seals.seal(ws.root, self.settings, environ, held=ws.installed)

    def judged(self, **turn: object) -> Judgement:
        after = snapshots.snapshot(self.ws).id
        asked = JudgedTurn(origin=self.origin, before=self.before, after=after, **turn)  # type: ignore[arg-type]
        return judge.judge_attempt(self.ws, asked, self.taken)


@pytest.mark.parametrize(
    ("path", "content", "given"),
    [
        ("tests/test_a.py", WEAK, {"held": {"test-changed"}}),
        ("src/a.py", "a = 2\n", {}),
        (".atlas/config.yaml", "version: 1\n", {"refused": {"atlas-touched"}}),
        ("kept.txt", "2\n", {"refused": {"protected-path"}}),
        ("allowed/test_a.py", WEAK, {}),
        ("run.sh", "exit 0\n", {"held": {"gate-script-changed"}}),
        ("src/b.py", "if x == 41713:\n    y = 1\n", {"review": {"special-cased"}}),
        ("node_modules/a.js", "1\n", {"refused": {"dependency-changed"}}),
        ("new/node_modules/a.js", "1\n", {}),
        ("src/vendor/a.py", "a = 1\n", {}),
        ("local/tests/conftest.py", "x = 1\n", {}),
        (".git/hooks/pre-commit", "#!/bin/sh\n", {"refused": {"git-state"}}),
        ("../home/.bashrc", "x\n", {"refused": {"outside-workspace"}}),
        ("../tools/checker", "#!/bin/sh\nexit 0\n", {"refused": {"tool-replaced"}}),
        ("src/.git/HEAD", "ref: refs/heads/x\n", {"refused": {"nested-git"}}),
        ("new/.git/HEAD", "ref: refs/heads/x\n", {}),
    ],
)
def test_a_turn_is_judged_by_what_it_changed(
    root: Path, environ: Environ, path: str, content: str, given: object
) -> None:
    environ["PATH"] = f"{root.parent / 'tools'}:{environ['PATH']}"
    write(root, "../tools/checker", "#!/bin/sh\n", 0o755)
    write(root, "allowed/test_a.py", TEST)
    write(root, "src/vendor/a.py", "a = 0\n")
    write(root, "node_modules/b.js", "1\n")
    attempt = Attempt(
        opened(root), environ, "sh run.sh", "checker", allow=("allowed/",), protect=("kept.txt",)
    )
    write(root, path, content, 0o755)
    assert answers(attempt.judged(failing=(failed("pytest"),))) == given


def test_files_written_where_git_does_not_look_are_reported(root: Path, environ: Environ) -> None:
    attempt = Attempt(opened(root), environ)
    write(root, ".env", "1\n")
    write(root, ".mypy_cache/x", "1\n")
    assert attempt.judged().unseen == (".mypy_cache/x", ".env")


def test_changed_folder_permissions_are_noted(root: Path, environ: Environ) -> None:
    attempt = Attempt(opened(root), environ)
    (root / "src").chmod(0o700)
    assert answers(attempt.judged()) == {"noted": {"folder-mode"}}


def test_changing_a_configuration_file_that_was_read_is_refused(
    root: Path, environ: Environ
) -> None:
    attempt = Attempt(opened(root), environ)
    read = replace(attempt.settings, sources=(str(root / "gates.yaml"),))
    attempt.taken = seals.seal(attempt.ws.root, read, environ, held=attempt.ws.installed)
    write(root, "gates.yaml", "x\n")
    assert answers(attempt.judged()) == {"refused": {"atlas-touched"}}


def test_reviews_can_be_configured_to_be_only_noted(root: Path, environ: Environ) -> None:
    attempts = [Attempt(opened(root), environ, review=review) for review in ("note", "hold")]
    write(root, "src/a.py", "import os\n\n\ndef f():\n    os._exit(0)\n")
    noted, held = (answers(attempt.judged()) for attempt in attempts)
    assert (noted, held) == ({"noted": {"run-ended"}}, {"review": {"run-ended"}})


def test_files_written_by_gates_before_the_turn_are_not_charged(
    root: Path, environ: Environ
) -> None:
    attempt = Attempt(opened(root), environ)
    write(root, "tests/test_a.py", WEAK)
    write(root, "tests/run.log", "1\n")
    attempt.before = snapshots.snapshot(attempt.ws).id
    assert answers(attempt.judged()) == {}
    write(root, "tests/run.log", "2\n")
    assert answers(attempt.judged(outputs=frozenset({"tests/run.log"}))) == {}


@pytest.mark.parametrize(
    ("turn", "given"),
    [
        ({}, {}),
        ({"earlier": frozenset({"tests/test_a.py"})}, {"held": {"test-changed"}}),
        (
            {"earlier": frozenset({"tests/test_a.py"}), "theirs": frozenset({"tests/test_a.py"})},
            {},
        ),
    ],
    ids=["before", "earlier", "theirs"],
)
def test_earlier_attempts_are_judged_again_but_not_the_users_edits(
    root: Path, environ: Environ, turn: dict[str, Any], given: object
) -> None:
    attempt = Attempt(opened(root), environ)
    write(root, "tests/test_a.py", WEAK)
    attempt.before = snapshots.snapshot(attempt.ws).id
    assert answers(attempt.judged(**turn)) == given


def test_a_change_of_the_users_edit_is_compared_with_that_edit(
    root: Path, environ: Environ
) -> None:
    attempt = Attempt(opened(root), environ)
    write(root, "tests/test_a.py", WEAK)
    attempt.before = snapshots.snapshot(attempt.ws).id
    write(root, "tests/test_a.py", TEST)
    assert answers(attempt.judged(theirs=frozenset({"tests/test_a.py"}))) == {
        "held": {"test-changed"}
    }


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_vendored_file_tracked_by_git_belongs_to_the_project(
    root: Path, environ: Environ, is_deleted: bool
) -> None:
    write(root, "vendor/ours.py", "a = 1\n")
    write(root, ".git/info/exclude", "vendor/theirs.py\n")
    attempt = Attempt(opened(root), environ)
    write(root, "vendor/ours.py", "a = 2\n")
    if is_deleted:
        (root / "vendor/ours.py").unlink()
    write(root, "vendor/theirs.py", "a = 2\n")
    judgement = attempt.judged()
    assert [v.path for v in judgement.refused] == ["vendor/theirs.py"]
    assert judgement.ends is Verdict.REJECTED


# --- code of the attempt that writes while gates run ----------------------------------------------


@pytest.mark.parametrize(
    ("path", "by_checkers", "is_reported"),
    [
        ("tests/test_a.py", (), True),
        ("tests/test_a.py", ("tests/test_a.py",), False),
        ("tests/data.json", (), False),
        ("src/a.py", (), False),
        (".gitignore", (), False),
        ("pytest.ini", (), True),
    ],
)
def test_a_deciding_file_rewritten_by_a_gate_is_refused(
    root: Path, path: str, by_checkers: tuple[str, ...], is_reported: bool
) -> None:
    ws = opened(root)
    before = snapshots.snapshot(ws).id
    write(root, path, "def test_a():\n    assert True\n")
    violations = judge.rewritten(ws, before, snapshots.snapshot(ws).id, by_checkers)
    seen = [(v.rule, v.path, v.detail) for v in violations]
    rule = "rewritten-by-a-gate"
    assert seen == ([(rule, path, "was changed while the gates ran")] if is_reported else [])


# --- folders --------------------------------------------------------------------------------------


def test_texts_are_searched_in_files_from_before_the_change(root: Path) -> None:
    write(root, "src/big.py", b"needle" + b" " * (1 << 20))
    write(root, "src/limit.py", b"needle" + b" " * ((1 << 20) - 6))
    (root / "src/link.py").symlink_to("limit.py")
    there = {"src/a.py": "needle()\n", "src/b.py": "other\n", "src/link.py": "->limit.py"}
    tree = MemoryTree(there | dict.fromkeys(("src/big.py", "src/limit.py", "src/gone.py"), ""))
    write(root, "src/b.py", "needle needles\n")
    write(root, "src/a.py", "nothing\n")
    mentions = folders.searching(root, tree, ("src/a.py",))
    assert mentions(["needle", "needles", "absent"]) == {
        "needle": {"src/a.py", "src/b.py", "src/limit.py"},
        "needles": {"src/b.py"},
        "absent": frozenset(),
    }
    assert mentions([""]) == mentions([]) == {}


def test_two_folder_states_differ_by_content_mode_and_kind(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for root in (old, new):
        write(root, "same", "1")
        write(root, "deep/content", "1")
        write(root, "mode", "1")
        write(root, "kind", "same")
        write(root, ".git/x", "1")
    write(new, "deep/content", "2")
    write(new, ".git/x", "2")
    (new / "mode").chmod(0o755)
    (new / "kind").unlink()
    (new / "kind").symlink_to("same")
    write(new, "added", "1")
    write(old, "removed", "1")
    seen = [(change.place, change.path) for change in folders.differences(old, new)]
    paths = ["added", "deep/content", "kind", "mode", "removed"]
    assert seen == [(str(new), path) for path in paths]


def test_an_outside_place_may_be_a_file_or_missing(tmp_path: Path) -> None:
    old, new = write(tmp_path, "old/f", "1"), write(tmp_path, "new/f", "2")
    assert [c.path for c in folders.differences(old, new)] == ["f"]
    assert [c.path for c in folders.differences(tmp_path / "absent", new)] == ["f"]
    assert [*folders.differences(old, old)] == []


# --- the configuration of the base ----------------------------------------------------------------

CONFIG = "version: 1\nvalidation:\n  test: [pytest]\nguard:\n  allow: [a]\n  protect: [b]\n"


@pytest.mark.parametrize("name", [".atlas/config.yaml", "atlas.yaml"])
def test_gates_and_guard_come_from_the_base(root: Path, environ: Environ, name: str) -> None:
    write(root, name, CONFIG)
    commit(root)
    write(root, name, "version: 1\n")
    asked = with_base_configuration(ChangeAsked(workspace=root, base="HEAD", allow=("c",)), environ)
    assert [gate.run for gate in asked.gates] == ["pytest"]
    assert (asked.allow, asked.protect) == (("a", "c"), ("b",))


def test_what_the_configuration_of_the_base_extends_comes_from_the_base(
    root: Path, environ: Environ
) -> None:
    write(root, ".atlas/config.yml", "extends: ../ci/shared.yaml\n")
    write(root, "ci/shared.yaml", CONFIG)
    commit(root)
    write(root, "ci/shared.yaml", CONFIG.replace("pytest", "'true'"))
    asked = with_base_configuration(ChangeAsked(workspace=root, base="HEAD"), environ)
    assert [gate.run for gate in asked.gates] == ["pytest"]
    judgement = judge.judge_change(asked, environ)
    assert [(one.path, one.rule) for one in judgement.held] == [("ci/shared.yaml", "atlas-touched")]


def test_changing_a_configuration_outside_the_workspace_is_refused(
    root: Path, environ: Environ, tmp_path: Path
) -> None:
    shared = tmp_path / "shared.yaml"
    shared.write_text("guard: {mode: block}")
    attempt = Attempt(opened(root), environ)
    read = replace(attempt.settings, sources=(str(shared),))
    attempt.taken = seals.seal(attempt.ws.root, read, environ, held=attempt.ws.installed)
    shared.write_text("guard: {mode: 'off'}")
    assert answers(attempt.judged()) == {"refused": {"outside-workspace"}}


def test_given_gates_replace_those_of_the_base(root: Path, environ: Environ) -> None:
    write(root, "atlas.yaml", CONFIG)
    commit(root)
    asked = ChangeAsked(workspace=root, base="HEAD", failing=(failed("x"),))
    assert with_base_configuration(asked, environ) is asked
    known = replace(asked, failing=(), gates=(Gate(name="x", kind=Kind.TEST),))
    assert with_base_configuration(known, environ) is known


def test_a_base_without_a_configuration_adds_no_gates(root: Path, environ: Environ) -> None:
    asked = ChangeAsked(workspace=root, base="HEAD")
    assert with_base_configuration(asked, environ) is asked


def test_an_error_in_the_base_configuration_names_the_base(root: Path, environ: Environ) -> None:
    write(root, "atlas.yaml", "version: [\n")
    commit(root)
    with pytest.raises(ConfigError) as raised:
        with_base_configuration(ChangeAsked(workspace=root, base="HEAD"), environ)
    assert "HEAD:atlas.yaml" in str(raised.value)


# --- the sealed replay ----------------------------------------------------------------------------


HELD = Judgement(answers=(Held(rule="test-changed", path="check.txt"),
                       Held(rule="special-cased", path="src/a.py", in_place=True)))  # fmt: skip


def needed(
    root: Path, environ: Environ, judgement: Judgement, *lines: str, base: str = "HEAD"
) -> list[bool | None]:
    asked = ChangeAsked(workspace=root, base=base, failing=tuple(failed(line) for line in lines))
    return [held.needed for held in replayed(asked, judgement, environ).held]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("grep -q strict check.txt",), [False, None]),
        (("grep -q weak check.txt",), [True, None]),
        (("true", "grep -q weak check.txt"), [True, None]),
        (("grep -q weak check.txt", "true"), [True, None]),
        ((), [None, None]),
        (("",), [None, None]),
    ],
)
def test_replay_runs_gates_with_held_files_restored(
    root: Path, environ: Environ, lines: tuple[str, ...], expected: list[bool | None]
) -> None:
    write(root, "check.txt", "strict\n")
    commit(root)
    write(root, "check.txt", "weak\n")
    assert needed(root, environ, HELD, *lines) == expected
    assert (root / "check.txt").read_text() == "weak\n"


def test_replay_removes_a_held_file_that_is_new(root: Path, environ: Environ) -> None:
    write(root, "check.txt", "new\n")
    assert needed(root, environ, HELD, "test ! -e check.txt") == [False, None]


@pytest.mark.parametrize("field", ["as_before", "rewrite"])
def test_replay_restores_kept_and_rewritten_files(root: Path, environ: Environ, field: str) -> None:
    write(root, "more.txt", "weak\n")
    there: dict[str, Content | None] = {"more.txt": ("100644", b"strict\n")}
    judgement = replace(HELD, **{field: there})
    assert needed(root, environ, judgement, "grep -q strict more.txt") == [False, None]


def test_replay_runs_nothing_if_nothing_is_held(root: Path, environ: Environ) -> None:
    assert needed(root, environ, Judgement(), "touch ran") == []
    assert not (root / "ran").exists()


def test_a_replay_needs_git(tmp_path: Path, environ: Environ) -> None:
    before, after = pair(tmp_path)
    with pytest.raises(UsageError, match="--replay needs a workspace under git") as raised:
        needed(after, environ, HELD, "true", base=str(before))
    assert raised.value.remedy == "git init && git add -A && git commit -m start"
