"""Faults of the machine as a person meets them: a process, its streams and its exit code."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import MOUNTING, require
from tests.processes import PYTHON
from tests.projects import CALC, FIXED, LIMIT_S, Ended, Project, atlas, gates, git, shell


def test_no_attempt_is_mentioned_if_no_agent_is_available(project: Project) -> None:
    project.configure(agent={"backend": "claude-code", "path": "/nonexistent/claude"})
    ended = atlas(project, "retry", ".", "--ai-fix")
    assert ended.code == 3
    assert "attempt 1" not in ended.out
    assert "no program at /nonexistent/claude" in ended.out
    assert "0 attempts" in atlas(project, "log").out


def test_an_agent_lost_during_its_turn_counts_no_attempt(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED}, status="unavailable", error="529 for too long")
    ended = atlas(project, "retry", ".", "--ai-fix")
    assert ended.code == 3
    assert "the agent is not available: this does not count as an attempt" in ended.out
    assert "0 attempts" in atlas(project, "log").out


def test_atlas_started_by_an_agent_starts_no_agent(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED})
    ended = atlas(project, "retry", ".", "--ai-fix", ATLAS_INSIDE_AGENT="1")
    assert ended.code == 3
    assert "an agent of atlas started this command" in ended.out
    assert (project.root / "calc.py").read_text() == CALC


@pytest.mark.parametrize(
    ("deed", "message"),
    [
        ("rm -rf ../project", "project was deleted or replaced while it ran"),
        ("mv ../project ../moved", "project was deleted or replaced while it ran"),
        ("cp -r . ../copy; rm -rf ../project; mv ../copy ../project", "deleted or replaced"),
        ("rm -rf .git", ".git was deleted while it ran"),
        ("rm -rf *", "all files of"),
    ],
)
@pytest.mark.parametrize("command", ["validate", "retry"])
def test_gates_that_delete_the_workspace_do_not_pass(
    command: str, deed: str, message: str, project: Project, tmp_path: Path
) -> None:
    deeds = ["sleep 0.3", {"name": "deed", "run": deed, "required": False}]
    project.configure(validation={"lint": deeds, "jobs": 2})
    ended = atlas(project, command, str(project.root), cwd=tmp_path)
    assert ended.code == 3
    assert message in ended.out
    assert "clean" not in ended.out
    assert "Traceback" not in ended.err


def test_files_deleted_by_a_gate_are_restored_by_the_suggested_undo(project: Project) -> None:
    gates(project, "rm -f *; false")
    ended = atlas(project, "retry", ".")
    assert ended.code == 3
    assert "next:\n  atlas undo\n" in ended.out
    assert atlas(project, "undo").code == 0
    assert (project.root / "calc.py").read_text() == CALC


def wrapped_git(folder: Path, before: str) -> str:
    """A PATH on which `git` says something before git does."""
    real = shutil.which("git")
    folder.mkdir()
    wrapper = folder / "git"
    wrapper.write_text(f'#!/bin/sh\n{before}\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def test_a_git_wrapper_that_prints_more_is_refused_by_name(
    project: Project, tmp_path: Path
) -> None:
    path = wrapped_git(tmp_path / "bin", "echo 'corporate git, version 9'")
    ended = atlas(project, "retry", ".", "--ai-fix", PATH=path)
    assert ended.code == 3
    assert f"{tmp_path}/bin/git is not plain git" in ended.err
    assert "corporate git" in ended.err
    assert "Traceback" not in ended.err


def test_stderr_of_a_git_wrapper_does_not_hide_errors(project: Project, tmp_path: Path) -> None:
    path = wrapped_git(tmp_path / "bin", "echo 'error is logged' >&2")
    project.attempt(1, {"calc.py": FIXED})
    assert atlas(project, "retry", ".", "--ai-fix", PATH=path).code == 0
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(project.root / ".atlas", elsewhere / ".atlas")
    ended = atlas(project, "retry", str(elsewhere), PATH=path)
    assert ended.code == 3


def test_output_without_disk_space_is_reported(project: Project) -> None:
    gates(project, "true")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            (sys.executable, "-m", "atlas_retry", "validate", "--json"),
            cwd=project.root,
            env=project.environ,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=LIMIT_S,
        )
    assert done.returncode == 3
    assert "standard output cannot be written" in done.stderr
    assert "No space left on device" in done.stderr


def test_an_unwritable_report_path_is_refused_before_any_gate(project: Project) -> None:
    gates(project, "touch ran")
    ended = atlas(project, "validate", "--report", "json=calc.py/report.json")
    assert (ended.code, ended.out) == (2, "")
    assert not (project.root / "ran").exists()


def test_an_unwritable_step_summary_does_not_change_the_exit_code(project: Project) -> None:
    gates(project, "exit 1")
    full = "/dev/full"
    ended = atlas(project, "validate", GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=full)
    assert ended.code == 1
    assert "no step summary in /dev/full: No space left on device" in ended.err


@pytest.mark.parametrize(("line", "code"), [("echo x > made.txt", 1), ("mkdir -p .cache/x", 0)])
def test_without_git_changed_files_are_detected(line: str, code: int, project: Project) -> None:
    shutil.rmtree(project.root / ".git")
    project.configure(
        validation={"format": [f"{line}; touch calc.py; test ! -d .cache/x || touch .cache/x/y"]}
    )
    ended = atlas(project, "validate", "--check")
    assert ended.code == code
    assert ("it changed 1 file: made.txt" in ended.out) is (code == 1)


def test_an_unfinished_rebase_is_reported_with_the_remedy(project: Project) -> None:
    git(project.root, "checkout", "-q", "-b", "side", environ=project.environ)
    for branch, line in (("side", "# side\n"), ("main", "# main\n")):
        git(project.root, "checkout", "-q", branch, environ=project.environ)
        (project.root / "calc.py").write_text(line + CALC)
        project.commit()
    with pytest.raises(subprocess.CalledProcessError):
        git(project.root, "rebase", "side", environ=project.environ)
    ended = atlas(project, "retry", ".", "--ai-fix")
    assert (ended.code, ended.out) == (3, "")
    assert "git is in the middle of a rebase" in ended.err
    assert atlas(project, "retry", ".", "--force").code == 1
    assert "rebase in progress" in git(project.root, "status", environ=project.environ)


def test_old_logs_are_deleted_when_they_grow_too_large(project: Project) -> None:
    gates(project, "echo no; exit 1")
    kept = Path(project.environ["ATLAS_HOME"]) / "validations"
    for _ in range(3):
        atlas(project, "validate")
        for log in kept.glob("*/*/*/stdout.log"):
            os.truncate(log, 1 << 30)  # sparse: it takes no room
    assert len([*kept.glob("*/*")]) == 3
    for log in kept.glob("*/*/*/stdout.log"):
        os.truncate(log, 3 << 29)
    atlas(project, "validate")
    assert len([*kept.glob("*/*")]) == 2


@pytest.mark.parametrize("command", ["status", "validate", "retry"])
def test_a_relative_home_of_atlas_is_refused(command: str, project: Project) -> None:
    ended = atlas(project, command, ATLAS_HOME="my state")
    assert (ended.code, ended.out) == (3, "")
    assert f"next:\n  export ATLAS_HOME='{project.root}/my state'\n" in ended.err
    assert not (project.root / "my state").exists()


def test_a_gate_that_prints_endlessly_is_stopped_and_reported(project: Project) -> None:
    gates(project, "yes")
    ended = atlas(project, "validate")
    assert ended.code == 1
    assert "it printed more than 1073741824 bytes and was stopped" in ended.out
    logs = [*Path(project.environ["ATLAS_HOME"]).rglob("*.log")]
    kept = sum(log.stat().st_size for log in logs)
    for log in logs:
        log.unlink()  # pytest keeps its folders
    assert 1 << 29 < kept <= 1 << 30


def in_a_small_place(project: Project, size: str, lines: str) -> Ended:
    """Run lines of shell in a copy of the project on a file system of that size."""
    require("mounts")
    small = project.root.parent / "small"
    small.mkdir()
    script = f"""set -e
    mount -t tmpfs -o size={size} tmpfs {small}
    cp -a {project.root} {small}/project
    cd {small}/project
    atlas() {{ {PYTHON} -m atlas_retry "$@"; }}
    {lines}"""
    done = subprocess.run(
        (*MOUNTING, "/bin/sh", "-c", script),
        env=project.environ,
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=LIMIT_S,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def test_a_workspace_on_a_full_disk_is_restored_completely(project: Project) -> None:
    (project.root / "big.bin").write_bytes(os.urandom(900_000))
    (project.root / "grows.bin").write_bytes(b"")
    line = "rm big.bin; head -c 900k /dev/zero >fill; dd if=/dev/zero of=grows.bin bs=1k; true"
    agent = {"backend": "command", "command": line}
    project.configure(agent=agent, retry={"max_ai_retry_attempts": 1})
    project.commit()
    lines = """
    atlas retry . --ai-fix --plain || test $? = 1
    cmp big.bin ../../project/big.bin
    cmp grows.bin ../../project/grows.bin
    test ! -e fill
    """
    ended = in_a_small_place(project, "4m", lines)
    assert ended.code == 0, ended
    assert "exhausted" in ended.out


@pytest.mark.parametrize("arguments", [("validate",), ("retry", "."), ("log",), ("config", "show")])
def test_a_deleted_working_directory_is_reported(
    arguments: tuple[str, ...], project: Project
) -> None:
    line = f"mkdir gone; cd gone; rmdir ../gone; {PYTHON} -m atlas_retry {' '.join(arguments)}"
    ended = shell(project, line)
    assert (ended.code, ended.out) == (3, "")
    assert "the working directory cannot be used: No such file" in ended.err


def test_a_batch_works_without_the_temporary_folder(project: Project, tmp_path: Path) -> None:
    gates(project, "true")
    shutil.copytree(project.root, tmp_path / "other")
    ended = atlas(project, "retry", ".", str(tmp_path / "other"), TMPDIR="/nonexistent")
    assert ended.code == 0


@pytest.mark.parametrize("arguments", ["log", "status", "stats", "config show", "undo", "validate"])
def test_closed_standard_streams_do_not_change_the_exit_code(
    arguments: str, project: Project
) -> None:
    gates(project, "true")
    project.attempt(1, {"calc.py": FIXED})
    assert atlas(project, "retry", ".").code == 0
    line = f"{PYTHON} -m atlas_retry {arguments} <&- >&- 2>&-"
    done = subprocess.run(
        ("/bin/sh", "-c", line),
        cwd=project.root,
        env=project.environ,
        check=False,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0


@pytest.mark.parametrize("end", ["true", "kill -INT $PPID; sleep 9"])
def test_no_undo_is_promised_after_the_state_was_deleted(project: Project, end: str) -> None:
    line = f"echo half > calc.py; rm -rf {project.environ['ATLAS_HOME']}; {end}"
    project.configure(agent={"backend": "command", "command": line})
    ended = atlas(project, "retry", ".", "--ai-fix")
    said = ended.out + ended.err
    assert ended.code in (3, 130)
    assert "atlas undo" not in said
    assert "this run cannot be undone" in said
    assert "Traceback" not in said
    assert "was deleted while atlas used it" in said


def test_junk_in_place_of_the_names_of_snapshots_is_no_bug(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED})
    assert atlas(project, "retry", ".", "--ai-fix").code == 0
    home = Path(project.environ["ATLAS_HOME"])
    for ref in home.glob("workspaces/*/shadow.git/refs/**/start"):
        ref.write_bytes(b"junk\n\n\xff\0\n")
    undone = atlas(project, "undo")
    assert (undone.code, undone.out) == (3, "")
    assert "has no snapshot 'start': it was pruned or deleted" in undone.err


def killed(project: Project) -> Path:
    """A run that was killed in the agent's turn; returns the repository of its snapshots."""
    line = "echo half > calc.py; kill -KILL $PPID; sleep 5"
    project.configure(agent={"backend": "command", "command": line})
    project.commit()
    atlas(project, "retry", ".", "--ai-fix")
    (shadow,) = Path(project.environ["ATLAS_HOME"]).glob("workspaces/*/shadow.git")
    return shadow


def test_junk_in_the_objects_of_snapshots_is_named_with_what_to_type(project: Project) -> None:
    shadow = killed(project)
    for file in (path for path in (shadow / "objects").rglob("*") if path.is_file()):
        file.chmod(0o600)
        file.write_bytes(b"junk")
    for command in ("undo", "resume --ai-fix", "diff"):
        ended = atlas(project, *command.split())
        assert ended.code == 3
        assert f"the snapshots in {shadow} are damaged" in ended.err
        assert f"undo of the runs before: rm -rf {shadow}" in ended.err
    shutil.rmtree(shadow)
    assert atlas(project, "retry", ".").code == 1


def test_a_run_whose_snapshots_are_gone_is_not_offered_to_be_resumed(project: Project) -> None:
    shadow = killed(project)
    assert "atlas resume" in atlas(project, "status").out
    shutil.rmtree(shadow)
    status = atlas(project, "status").out
    assert "interrupted, its snapshots are gone" in status
    assert "atlas resume" not in status
    resumed = atlas(project, "resume", "--ai-fix")
    assert resumed.code == 3
    assert "does not hold its start any more" in resumed.err
    assert f"atlas retry {project.root}" in resumed.err
    assert atlas(project, "retry", ".").code == 1


@pytest.mark.parametrize("lost", ["workspaces", "workspaces/*/shadow.git/refs/atlas"])
def test_runs_whose_snapshots_are_lost_are_no_error_later(project: Project, lost: str) -> None:
    project.attempt(1, {"calc.py": FIXED})
    assert atlas(project, "retry", ".", "--ai-fix").code == 0
    home = Path(project.environ["ATLAS_HOME"])
    subprocess.run(("/bin/sh", "-c", f"rm -r {lost}"), cwd=home, check=True)
    undone = atlas(project, "undo")
    assert (undone.code, "Traceback" in undone.err) == (3, False)
    assert "it was pruned or deleted" in undone.err
    assert atlas(project, "retry", ".").code == 0
    later = atlas(project, "undo")
    assert (later.code, later.err) == (0, "")
    assert "an earlier run" not in later.out
