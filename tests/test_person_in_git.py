"""What a person does in git while an agent works stays; what the agent does there is undone."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from atlas_retry.model import Verdict
from tests.miniatures import ADD, ADDED, REPAIR, miniature, named, put
from tests.projects import IDENTITY, LIMIT_S, Ended, Project, atlas

Environ = dict[str, str]
CHECK = "python -S -c 'from calc import add; assert add(1, 2) == 3'"
ME = " ".join(("git", *IDENTITY))

STAYS: Mapping[str, tuple[str, str]] = {
    "commit": (f"echo mine > notes.txt; {ME} add notes.txt; {ME} commit -qm mine",
               "git log --format=%s -1"),
    "commit -a": (f"echo more >> other.txt; {ME} commit -qam mine", "git show HEAD:other.txt"),
    "commit --amend": (f"{ME} commit -q --amend -m better", "git log --format=%s -1"),
    "branch": ("git branch idea", "git rev-parse idea"),
    "branch -d": ("git branch -D side", "git branch --list side"),
    "branch -m": ("git branch -m side aside", "git rev-parse aside"),
    "tag": ("git tag v1", "git rev-parse v1"),
    "annotated tag": (f"{ME} tag -a -m one v1", "git rev-parse v1"),
    "stash": (f"{ME} stash -q", "git stash show -p stash@{0}"),
    "stash drop": ("git stash drop -q", "git stash list"),
    "switch": ("git switch -q side", "git symbolic-ref HEAD; cat side.txt"),
    "switch -c": ("git switch -qc idea", "git symbolic-ref HEAD"),
    "detach": ("git checkout -q --detach", "git rev-parse --abbrev-ref HEAD"),
    "merge": (f"{ME} merge -q --no-edit side", "git log --format=%s; cat side.txt"),
    "rebase": (f"{ME} rebase -q --autostash side", "git log --format=%s; cat side.txt"),
    "cherry-pick": (f"{ME} cherry-pick side", "git log --format=%s -1; cat side.txt"),
    "revert": (f"{ME} revert --no-edit HEAD", "git log --format=%s -1"),
    "fetch": ("git fetch -q", "git rev-parse origin/main"),
    "autofetch": ("git fetch --all --prune -q", "git rev-parse origin/main"),
    "gc": ("git gc -q; git pack-refs --all; git update-server-info", "git fsck; git show-ref"),
    "config": ("git config user.name 'Someone Else'", "git config user.name"),
    "config --global": ("git config --global user.name Someone", "git config --global user.name"),
    "remote": ("git remote add other ../elsewhere", "git remote"),
    "notes": (f"{ME} notes add -m remark", "git notes show"),
    "sparse-checkout": (
        "git sparse-checkout set --no-cone '/*'",
        "git config --list --local; git config --list --worktree",
    ),
    "worktree": ("git worktree add -q ../beside idle", "git -C ../beside symbolic-ref HEAD"),
}  # fmt: skip


def begun(tmp_path: Path, environ: Environ, **sections: object) -> Project:
    """A project with another branch, a stash, a remote that is ahead, and edits of the user."""
    files = {"calc.py": ADD, "other.txt": "one\n", "kept.txt": "old\n"}
    waits = "touch ../ready; while ! test -e ../go; do sleep 0.02; done"
    turns = [f"{waits}\n{REPAIR}"] * 2
    project = miniature(tmp_path, environ, files, turns, validation={"test": [CHECK]}, **sections)
    root = project.root
    script = f"""
    git branch idle
    git switch -qc side && echo side > side.txt && git add -A && {ME} commit -qm on-side
    git switch -q main && echo last >> kept.txt && {ME} commit -qam last
    git clone -q . ../ahead && cd ../ahead && {ME} commit -q --allow-empty -m ahead && cd ../mini
    git remote add origin ../ahead
    echo stashed >> other.txt && {ME} stash -q
    echo mine >> other.txt
    """
    shell(root, script, environ)
    return project


def shell(root: Path, script: str, environ: Environ) -> str:
    done = subprocess.run(
        ("sh", "-ec", script), cwd=root, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def beside(project: Project, script: str, *arguments: str) -> tuple[Ended, str]:
    """One `atlas retry`, and what the script prints that the person runs during its first turn."""
    printed: list[str] = []

    def person() -> None:
        until = time.monotonic() + LIMIT_S
        while not (project.root / "../ready").exists() and time.monotonic() < until:
            time.sleep(0.02)
        try:
            printed.append(shell(project.root, script, project.environ))
        finally:
            (project.root / "../go").touch()

    thread = threading.Thread(target=person)
    thread.start()
    try:
        ended = atlas(project, "retry", ".", "--ai-fix", "--plain", *arguments)
    finally:
        (project.root / "../ready").touch()
        thread.join(LIMIT_S)
    assert printed, ended.out
    return ended, printed[0]


@pytest.mark.parametrize("action", STAYS)
def test_what_a_person_does_in_git_during_a_turn_stays_and_costs_nothing(
    tmp_path: Path, environ: Environ, action: str
) -> None:
    script, look = STAYS[action]
    project = begun(tmp_path, environ)
    ended, seen = beside(project, f"{{ {script}; }} >&2\n{look}")
    assert shell(project.root, look, project.environ) == seen, ended.out
    assert ended.code == 0, ended.out
    assert "git-state" not in ended.out
    assert (project.root / "calc.py").read_text() == ADDED


OVERLAPS: Mapping[str, str] = {
    "switch": "git switch -q theirs",
    "merge": f"{ME} merge -q --no-edit theirs",
    "rebase": f"{ME} rebase -q --autostash theirs",
    "reset": "git reset -q --hard theirs",
    "cherry-pick": f"{ME} cherry-pick theirs",
    "pull": f"{ME} pull -q --no-rebase . theirs",
}
"""What changes calc.py, which the agent then writes as well."""


@pytest.mark.parametrize("action", OVERLAPS)
@pytest.mark.in_place("in layers the agent does not see it, and its change is not taken over")
def test_where_git_changed_the_attempts_files_it_becomes_a_patch_and_nothing_is_overwritten(
    tmp_path: Path, environ: Environ, action: str
) -> None:
    project = begun(tmp_path, environ)
    theirs = f"""
    git switch -qc theirs && printf 'def add(a, b):\\n    return a * b\\n' > calc.py
    {ME} commit -qm theirs calc.py && git switch -q main
    """
    shell(project.root, theirs, environ)
    was = shell(project.root, "git rev-parse HEAD", environ)
    ended, seen = beside(project, f"{{ {OVERLAPS[action]}; }} >&2\n git rev-parse HEAD")
    assert ended.code == 1, ended.out
    assert "calc.py" in ended.out
    assert shell(project.root, "git rev-parse HEAD", project.environ) == seen
    assert (project.root / "calc.py").read_text() == ADDED, "the attempt's edit is still there"
    (command,) = (line for line in ended.out.splitlines() if "git apply --3way" in line)
    shell(project.root, f"git checkout -q -- .; git checkout -q {was.strip()}", environ)
    shell(project.root, command, environ)


@pytest.mark.in_place("in layers a person's stash holds nothing of the attempt")
def test_an_attempt_that_a_person_stashed_is_named_with_its_stash(
    tmp_path: Path, environ: Environ
) -> None:
    project = begun(tmp_path, environ)
    waits = "touch ../ready; while ! test -e ../go; do sleep 0.02; done"
    (project.script / "1.sh").write_text(f"{REPAIR}\n{waits}\n")
    ended, _ = beside(project, f"{ME} stash -q")
    assert ended.code == 1
    assert "git stash pop" in ended.out
    assert "+    return sum((a, b))" in shell(project.root, "git stash show -p", project.environ)


UNTRACED = "env -u GIT_TRACE2_EVENT -u GIT_TRACE_REFS " + ME
BENT = put("test_calc.py", "import calc\n")
CHEATS: Mapping[str, str] = {
    "commit": f"{BENT}; {ME} commit -qam x",
    "amend": f"{BENT}; {ME} commit -qa --amend -m x",
    "stash": f"{BENT}; {ME} stash -q; {ME} stash pop -q",
    "stash that stays": f"{BENT}; {ME} stash -q; {ME} stash apply -q",
    "worktree": f"{ME} worktree add -q ../w -b w; (cd ../w; {BENT}; {ME} commit -qam x);"
    f" {ME} merge -q w",
    "branch": f"{ME} switch -qc w; {BENT}; {ME} commit -qam x",
    "reset": f"{BENT}; {ME} commit -qam x; {ME} reset -q --soft HEAD~",
    "checkout of an old test": f"{ME} checkout -q weak -- test_calc.py",
}
"""Ways to launder a bent test."""


@pytest.mark.parametrize("hides", ["", "hidden"])
@pytest.mark.parametrize("cheat", CHEATS)
def test_a_bent_test_is_no_fix_whichever_way_git_carries_it(
    tmp_path: Path, environ: Environ, cheat: str, hides: str
) -> None:
    test = "import calc\nassert calc.add(1, 2) == 3\n"
    files = {"calc.py": ADD, "test_calc.py": "import calc\n"}
    turn = CHEATS[cheat].replace(ME, UNTRACED) if hides else CHEATS[cheat]
    check = {"test": ["python -S test_calc.py"]}
    project = miniature(tmp_path, environ, files, [turn] * 3, validation=check)
    script = f"git branch weak; printf '{test}' > test_calc.py; {ME} commit -qam strict"
    shell(project.root, script.replace("\n", "\\n"), environ)
    outcome = project.retry()
    assert not outcome.verdict.is_green
    assert {*named(outcome)["refused"], *named(outcome)["held"]} & {".git", "test_calc.py"}


DOES: Mapping[str, tuple[str, str]] = {
    "commit": (f"{ME} commit -qam agents", "git log --format=%s"),
    "amend": (f"{ME} commit -q --amend -m agents", "git log --format=%s"),
    "branch": ("git branch agents", "git branch --list"),
    "delete": ("git branch -D side", "git branch --list"),
    "rename": ("git branch -m side agents", "git branch --list"),
    "tag": ("git tag agents", "git tag"),
    "delete a tag": ("git tag -d old", "git tag"),
    "stash": (f"{ME} stash -q", "git stash list --format=%H"),
    "drop": ("git stash drop -q", "git stash list --format=%H"),
    "clear": ("git stash clear", "git stash list --format=%H"),
    "switch": ("git switch -q side", "git symbolic-ref HEAD"),
    "detach": ("git checkout -q --detach", "git symbolic-ref HEAD"),
    "config": ("git config user.name agent", "git config --list --local"),
    "remote": ("git remote add agents ..", "git remote"),
    "notes": (f"{ME} notes add -m agents", "git show-ref"),
    "alias": ("git -c alias.c='commit -qam agents' -c user.name=a -c user.email=a@b c",
              "git log --format=%s"),
}  # fmt: skip


@pytest.mark.parametrize("deed", DOES)
def test_what_the_agent_does_in_git_is_undone(tmp_path: Path, environ: Environ, deed: str) -> None:
    script, look = DOES[deed]
    project = begun(tmp_path, environ)
    shell(project.root, "git tag old", environ)
    before = shell(project.root, look, environ)
    for number in (1, 2):
        (project.script / f"{number}.sh").write_text(f"{REPAIR}\n{script}\n")
    outcome = project.retry()
    assert outcome.verdict is Verdict.REJECTED
    assert named(outcome)["refused"]
    assert shell(project.root, look, environ) == before
    assert shell(project.root, "cat other.txt calc.py", environ) == f"one\nmine\n{ADD}"


def test_a_person_and_the_agent_on_one_branch_are_told_apart(
    tmp_path: Path, environ: Environ
) -> None:
    project = begun(tmp_path, environ)
    waits = "touch ../ready; while ! test -e ../go; do sleep 0.02; done"
    own = f"git stash list > /dev/null; {ME} commit -q --allow-empty -m agents; {ME} tag agents"
    turn = f"{waits}\n{REPAIR}\n{own}; {ME} stash -q\n"
    (project.script / "1.sh").write_text(turn)
    theirs = f"{ME} commit -q --allow-empty -m mine; git tag mine; {ME} stash -q"
    ended, _ = beside(project, theirs, "--max-attempts", "1")
    assert "git-state" in ended.out
    assert shell(project.root, "git log -1 --format=%s; git tag", environ) == "mine\nmine\n"
    assert len(shell(project.root, "git stash list", environ).splitlines()) == 2


def test_a_head_that_a_person_detached_stays_so_where_the_agent_commits(
    tmp_path: Path, environ: Environ
) -> None:
    project = begun(tmp_path, environ)
    waits = "touch ../ready; while ! test -e ../go; do sleep 0.02; done"
    (project.script / "1.sh").write_text(f"{waits}\n{REPAIR}\n{ME} commit -qam agents\n")
    look = "git rev-parse HEAD; git rev-parse --abbrev-ref HEAD; git rev-parse main"
    _, theirs = beside(project, f"git checkout -q --detach; {look}", "--max-attempts", "1")
    assert theirs.splitlines()[1] == "HEAD"
    assert shell(project.root, look, environ) == theirs


MINE = f"echo mine > notes.txt; {ME} add notes.txt; {ME} commit -qm mine"


def is_as_the_person_left_it(project: Project) -> bool:
    shown = shell(project.root, "git log -1 --format=%s; cat notes.txt other.txt", project.environ)
    status = shell(project.root, "git status --porcelain -uno", project.environ)
    return (shown, status) == ("mine\nmine\none\nmine\n", " M other.txt\n")


def test_a_commit_stays_whole_where_the_attempt_is_reverted(
    tmp_path: Path, environ: Environ
) -> None:
    project = begun(tmp_path, environ)
    for number in (1, 2):
        script = (project.script / f"{number}.sh").read_text().replace("sum((a, b))", "a % b")
        (project.script / f"{number}.sh").write_text(f"{script}\ngit tag agents")
    ended, _ = beside(project, MINE)
    assert ended.code == 1
    assert is_as_the_person_left_it(project), ended.out
    assert (project.root / "calc.py").read_text() == ADD


def test_undo_keeps_what_was_committed_during_the_run(tmp_path: Path, environ: Environ) -> None:
    project = begun(tmp_path, environ)
    ended, _ = beside(project, MINE)
    assert ended.code == 0
    undone = atlas(project, "undo")
    assert "branch main" in undone.out or "refs/heads/main" in undone.out
    assert is_as_the_person_left_it(project), undone.out
    assert (project.root / "calc.py").read_text() == ADD


@pytest.mark.in_place("in layers what the agent did in git never reaches the repository")
def test_after_a_kill_undo_tells_the_person_from_the_agent(
    tmp_path: Path, environ: Environ
) -> None:
    project = begun(tmp_path, environ)
    script = (project.script / "1.sh").read_text()
    does = f"{ME} tag agents; {ME} stash -q; git branch -D side"
    kill = "kill -KILL $(awk '/^PPid/ {print $2}' /proc/$PPID/status); sleep 5"
    (project.script / "1.sh").write_text(f"{script}\n{does}\n{kill}\n")
    beside(project, MINE)
    until = time.monotonic() + LIMIT_S
    while not [*Path(environ["ATLAS_HOME"]).glob("runs/*/all-ended")]:
        assert time.monotonic() < until
        time.sleep(0.05)
    undone = atlas(project, "undo")
    assert is_as_the_person_left_it(project), undone.out
    assert (project.root / "calc.py").read_text() == ADD
    refs = shell(project.root, "git tag; git branch --list side; git stash list", environ)
    assert refs.splitlines()[0].strip() == "side"
    assert len(refs.splitlines()) == 2


@pytest.mark.parametrize("scope", ["", "--global "])
def test_a_setting_that_git_would_run_is_restored_with_the_command_that_sets_it(
    tmp_path: Path, environ: Environ, scope: str
) -> None:
    project = begun(tmp_path, environ)
    ended, _ = beside(project, f"git config {scope}alias.co '!echo ran'; git config user.name me")
    assert ended.code == 0, ended.out
    look = "git config user.name; git config --get alias.co || echo unset"
    assert shell(project.root, look, environ) == "me\nunset\n"
    (line,) = (line for line in ended.out.splitlines() if "alias.co" in line)
    shell(project.root, line.partition("to set it again: ")[2], environ)
    assert shell(project.root, "git co", environ).strip() == "ran"


def test_the_agents_global_settings_end_the_run(tmp_path: Path, environ: Environ) -> None:
    project = begun(tmp_path, environ)
    turn = f"{REPAIR}\ngit config --global user.name agents\n"
    for number in (1, 2):
        (project.script / f"{number}.sh").write_text(turn)
    outcome = project.retry()
    assert outcome.verdict is Verdict.REJECTED
    assert not (Path(environ["HOME"]) / ".gitconfig").exists() or (
        "agents" not in (Path(environ["HOME"]) / ".gitconfig").read_text()
    )


def test_an_interruption_reverts_the_attempt_and_not_the_commit(
    tmp_path: Path, environ: Environ
) -> None:
    project = begun(tmp_path, environ)
    script = (project.script / "1.sh").read_text()
    (project.script / "1.sh").write_text(f"{REPAIR}\ngit tag agents\n{script}")
    argv = (sys.executable, "-m", "atlas_retry", "retry", ".", "--ai-fix", "--plain")
    child = subprocess.Popen(
        argv, cwd=project.root, env=project.environ, stdout=subprocess.PIPE, text=True
    )
    while not (project.root / "../ready").exists() and child.poll() is None:
        time.sleep(0.02)
    shell(project.root, MINE, environ)
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=LIMIT_S)
    assert child.returncode == 128 + signal.SIGINT, out
    assert is_as_the_person_left_it(project), out
    assert (project.root / "calc.py").read_text() == ADD
    assert shell(project.root, "git tag", environ) == ""
    undone = atlas(project, "undo")
    assert is_as_the_person_left_it(project), undone.out


@pytest.mark.in_place("in layers what the agent did in git never reaches the repository")
def test_undo_takes_back_the_agents_commit_where_the_guard_only_warned(
    tmp_path: Path, environ: Environ
) -> None:
    project = begun(tmp_path, environ, guard={"mode": "warn"})
    turn = f"{REPAIR}\n{ME} commit -qam agents; git tag agents\n"
    (project.script / "1.sh").write_text(turn)
    head = shell(project.root, "git rev-parse HEAD", environ)
    assert atlas(project, "retry", ".", "--ai-fix", "--plain").code == 0
    assert shell(project.root, "git log -1 --format=%s", environ) == "agents\n"
    undone = atlas(project, "undo")
    assert undone.code == 0, undone.out
    assert shell(project.root, "git rev-parse HEAD; git tag", environ) == head
    assert (project.root / "calc.py").read_text() == ADD
    assert shell(project.root, "git status --porcelain -uno", environ) == " M other.txt\n"


RUINED = {
    "config": "echo '[core' > .git/config",
    "HEAD": "echo junk > .git/HEAD",
    "both": "echo junk > .git/HEAD; echo '[' >> .git/config",
    "branch": "echo junk > .git/refs/heads/main",
    "no HEAD": "rm .git/HEAD",
}


@pytest.mark.parametrize("how", RUINED)
def test_what_an_agent_ruined_in_git_is_restored(
    tmp_path: Path, environ: Environ, how: str
) -> None:
    project = begun(tmp_path, environ)
    look = "git rev-parse HEAD; git symbolic-ref HEAD; git config --list --local; git diff --stat"
    before = shell(project.root, look, environ)
    for number in (1, 2):
        (project.script / f"{number}.sh").write_text(f"{REPAIR}\n{RUINED[how]}\n")
    outcome = project.retry()
    assert outcome.verdict is Verdict.REJECTED
    assert shell(project.root, look, environ) == before
