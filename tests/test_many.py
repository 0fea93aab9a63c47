"""Several workspaces: side by side, one budget, one screen; a failed one never stops the rest."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from msgspec import Struct

from atlas_retry.errors import ConfigError, UsageError
from atlas_retry.events import Event, Notice
from atlas_retry.history.values import Order
from atlas_retry.model import Verdict
from atlas_retry.reports.screen.console import Printer
from atlas_retry.run import folders, many
from atlas_retry.run.folders import left_to_do
from atlas_retry.run.one import BatchResult, RunOptions
from tests.commands import run_atlas
from tests.projects import git

GATE = "grep -q good state.txt || { echo 'state.txt:1:1: S001 it is bad'; exit 1; }"
V = Verdict


class Yard(Struct, frozen=True):
    """A folder of small repositories, each with one file and one gate."""

    folder: Path
    environ: dict[str, str]

    def make(self, *names: str, state: str = "bad", gate: str = GATE, **sections: object) -> None:
        for name in names:
            root = self.folder / name
            (root / ".atlas").mkdir(parents=True)
            (root / "state.txt").write_text(f"{state}\n")
            agent = {"backend": "scripted", "path": str(self.folder / "script")}
            settings = {"version": 1, "validation": {"lint": [gate]}, "agent": agent, **sections}
            (root / ".atlas" / "config.yaml").write_text(yaml.safe_dump(settings))
            git(root, "init", "-q", "-b", "main", environ=self.environ)
            git(root, "add", "-A", environ=self.environ)
            git(root, "commit", "-q", "-m", "start", environ=self.environ)

    def script(self, *texts: str, cost_usd: float = 0.0) -> None:
        for number, text in enumerate(texts, start=1):
            files = self.folder / "script" / str(number) / "files"
            files.mkdir(parents=True)
            (files / "state.txt").write_text(f"{text}\n")
            (files.parent / "reply.json").write_text(json.dumps({"cost_usd": cost_usd}))

    def run(
        self,
        *names: str,
        events: list[Event] | None = None,
        ai_fix: bool = False,
        jobs: int | None = None,
        **overrides: object,
    ) -> BatchResult:
        flags = {key.replace("__", "."): value for key, value in overrides.items()}
        emitted = [] if events is None else events
        asked = RunOptions(order=Order(ai_fix=ai_fix, overrides=flags))
        roots = folders.find([f"./{name}" for name in names], self.folder, self.environ)
        return many.run(roots, asked, self.environ, emitted.append, jobs=jobs)

    def atlas(self, *arguments: str, at: str = ".") -> subprocess.CompletedProcess[str]:
        return run_atlas(arguments, cwd=self.folder / at, environ=self.environ, limit_s=120.0)

    def waiting(self) -> list[str]:
        state = Path(self.environ["ATLAS_HOME"])
        return [Path(one.root).name for one in left_to_do(state)]


@pytest.fixture
def yard(tmp_path: Path, environ: dict[str, str]) -> Yard:
    folder = tmp_path / "yard"
    folder.mkdir()
    return Yard(folder, environ)


def verdicts(done: BatchResult) -> dict[str, Verdict]:
    return {one.root.name: one.outcome.verdict for one in done.finished}


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_failed_or_unreadable_workspace_does_not_stop_the_rest(yard: Yard, jobs: int) -> None:
    yard.make("a", "e", state="good")
    yard.make("b")
    yard.make("c", gate="no-such-tool-anywhere")
    yard.make("d", nope=1)
    done = yard.run("a", "b", "c", "d", "e", jobs=jobs, batch__cascade_detection__threshold=5)
    assert verdicts(done) == {
        "a": V.CLEAN,
        "b": V.FAILED,
        "c": V.BROKEN,
        "d": V.BROKEN,
        "e": V.CLEAN,
    }
    assert "unknown key nope" in str(done.finished[3].outcome.final_error)
    assert done.not_started == ()


def test_a_configuration_error_ends_a_batch_of_one(yard: Yard) -> None:
    yard.make("a", nope=1)
    with pytest.raises(ConfigError, match="nope"):
        yard.run("a")


@pytest.mark.parametrize(
    ("names", "code"), [("ga gb", 0), ("ga ba", 1), ("ga ba xa", 3), ("ga xa", 3)]
)
def test_the_worst_exit_code_wins(yard: Yard, names: str, code: int) -> None:
    yard.make("ga", "gb", state="good")
    yard.make("ba")
    yard.make("xa", gate="no-such-tool-anywhere")
    done = yard.atlas("retry", *(f"./{name}" for name in names.split()), "--json")
    assert done.returncode == code, done.stderr
    document = json.loads(done.stdout)
    assert document["schema"] == "atlas.batch/1"
    assert [run["workspace"]["name"] for run in document["runs"]] == names.split()
    assert document["not_started"] == []
    assert document["cascade"]["cascade_detected"] is False


# --- one budget ---------------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", [1, 2])
def test_all_runs_share_one_cost_limit(yard: Yard, jobs: int) -> None:
    yard.make("a", "b", "c", "d")
    yard.script("good", cost_usd=1.0)
    done = yard.run("a", "b", "c", "d", ai_fix=True, jobs=jobs, retry__max_cost_usd=2.5)
    assert sum(one.outcome.cost_usd for one in done.finished) == 2.0
    assert sorted(verdicts(done).values()) == [V.EXHAUSTED, V.EXHAUSTED, V.FIXED, V.FIXED]
    ended = [one.outcome for one in done.finished if one.outcome.verdict is V.EXHAUSTED]
    assert all("by all workspaces together" in str(outcome.final_error) for outcome in ended)


def test_all_runs_share_one_time_limit(yard: Yard) -> None:
    yard.make("a", gate="sleep 1.5; false")
    yard.make("b")
    yard.script("good")
    done = yard.run("a", "b", ai_fix=True, jobs=1, retry__max_minutes=1.2 / 60)
    assert verdicts(done) == {"a": V.EXHAUSTED, "b": V.EXHAUSTED}
    assert done.finished[1].outcome.attempts == ()


def test_without_ai_fix_nothing_is_spent(yard: Yard) -> None:
    yard.make("a", "b")
    yard.script("good", cost_usd=1.0)
    assert verdicts(yard.run("a", "b")) == {"a": V.FAILED, "b": V.FAILED}


# --- cascade ------------------------------------------------------------------------------------


def test_a_cascade_pauses_the_batch_and_resume_continues_it(yard: Yard) -> None:
    yard.make("a", state="good")
    yard.make("b", "c", "d", "e", "f")
    names = [f"./{name}" for name in "abcdef"]
    done = yard.atlas("retry", *names, "--jobs", "1", "--json")
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert [run["verdict"] for run in document["runs"]] == ["clean", "failed", "failed", "failed"]
    assert [Path(root).name for root in document["not_started"]] == ["e", "f"]
    cascade = document["cascade"]
    assert cascade["cascade_detected"] is True
    assert (cascade["failures_in_window"], cascade["threshold"]) == (3, 3)
    assert cascade["action"] == "pause_and_alert"
    assert "S001: it is bad (in b, c, d)" in cascade["diagnosis"]
    assert "not started: e, f\nto continue:\n  atlas resume --all" in done.stderr
    for name in "ef":
        (yard.folder / name / "state.txt").write_text("good\n")
    assert yard.waiting() == ["e", "f"]
    done = yard.atlas("resume", "--all")
    assert done.returncode == 0, done.stdout
    assert "2 workspaces: 2 clean" in done.stdout
    assert yard.waiting() == []


@pytest.mark.parametrize("left", ["ef", "e"])
def test_a_resumed_batch_has_only_the_rest_of_its_budget(yard: Yard, left: str) -> None:
    names = "bcd" + left
    yard.make(*names, retry={"max_ai_retry_attempts": 1})
    yard.script("worse", cost_usd=1.0)
    first = yard.run(*names, ai_fix=True, jobs=1, retry__max_cost_usd=3.5)
    assert sum(one.outcome.cost_usd for one in first.finished) == 3.0
    again = yard.atlas("resume", "--all", "--ai-fix", "--json")
    document = json.loads(again.stdout)
    runs = document.get("runs", [document])
    assert [run["cost_usd"] for run in runs] == [0.0] * len(left)


def test_resume_without_ai_fix_starts_no_waiting_workspace(yard: Yard) -> None:
    yard.make("b", "c", "d", "e", retry={"max_ai_retry_attempts": 1})
    yard.script("worse", cost_usd=1.0)
    first = yard.run("b", "c", "d", "e", ai_fix=True, jobs=1)
    assert len(first.not_started) == 1
    again = yard.atlas("resume", "--all", "--json")
    assert again.returncode == 1
    document = json.loads(again.stdout)
    assert (document["runs"], document["not_started"]) == ([], list(first.not_started))
    assert "not started: e\nto continue:\n  atlas resume --all --ai-fix" in again.stderr
    assert yard.waiting() == ["e"]


def test_a_waiting_workspace_with_an_error_does_not_stop_others(yard: Yard) -> None:
    yard.make(*"bcdef")
    yard.run("b", "c", "d", "e", jobs=1)
    yard.run("b", "c", "d", "f", jobs=1)
    (yard.folder / "e" / ".atlas" / "config.yaml").write_text("nope: 1\n")
    (yard.folder / "f" / "state.txt").write_text("good\n")
    again = yard.atlas("resume", "--all", "--json")
    assert again.returncode == 3
    runs = json.loads(again.stdout)["runs"]
    assert [run["verdict"] for run in runs] == ["broken", "clean"]
    assert yard.waiting() == []


def test_started_runs_are_completed_when_the_batch_pauses(yard: Yard) -> None:
    yard.make("slow", gate="sleep 3; true")
    yard.make("b", "c", "d", "e", "f", "g")
    done = yard.run("slow", "b", "c", "d", "e", "f", "g", jobs=2)
    assert verdicts(done) == {"slow": V.CLEAN, "b": V.FAILED, "c": V.FAILED, "d": V.FAILED}
    assert [Path(root).name for root in done.not_started] == ["e", "f", "g"]


def test_on_cascade_alert_only_reports(yard: Yard) -> None:
    yard.make("a", "b", "c", "d")
    events: list[Event] = []
    done = yard.run(*"abcd", events=events, jobs=1, batch__cascade_detection__on_cascade="alert")
    assert len(done.finished) == 4
    assert done.cascade.action == "alert"
    notices = [event.text for event in events if isinstance(event, Notice)]
    assert [text for text in notices if text.startswith("cascade: Multiple lint failures")]


def test_a_run_removes_only_its_workspaces_from_the_waiting_list(yard: Yard) -> None:
    yard.make(*"abcdef")
    yard.run(*"abcdef", jobs=1)
    assert yard.waiting() == ["d", "e", "f"]
    (yard.folder / "e" / "state.txt").write_text("good\n")
    yard.run("e")
    assert yard.waiting() == ["d", "f"]


# --- side by side -------------------------------------------------------------------------------


def test_every_run_has_its_own_temporary_folder(yard: Yard) -> None:
    yard.make("a", "b", gate='test -d "$TMPDIR" && pwd > "$TMPDIR/x" && echo "$TMPDIR" > .git/tmp')
    assert set(verdicts(yard.run("a", "b", jobs=2)).values()) == {V.CLEAN}
    folders = {(yard.folder / name / ".git" / "tmp").read_text().strip() for name in "ab"}
    assert len(folders) == 2
    assert not any(Path(folder).exists() for folder in folders)


def test_runs_are_concurrent(yard: Yard) -> None:
    meet = "touch ../{0}.here; for i in $(seq 200); do test -e ../{1}.here && exit; sleep 0.1; done"
    yard.make("a", gate=meet.format("a", "b") + "; exit 1")
    yard.make("b", gate=meet.format("b", "a") + "; exit 1")
    assert verdicts(yard.run("a", "b", jobs=2)) == {"a": V.CLEAN, "b": V.CLEAN}


@pytest.mark.parametrize(("text", "verdict"), [("bad", V.FAILED), ("good", V.CLEAN)])
def test_a_workspace_that_another_one_changed_after_its_end_is_validated_again(
    yard: Yard, text: str, verdict: Verdict
) -> None:
    yard.make("a", gate="! test -e other.py || grep good other.py")
    yard.make("b", gate=f"echo {text} > ../a/other.py")
    events: list[Event] = []
    done = yard.run("a", "b", jobs=1, events=events)
    assert verdicts(done) == {"a": verdict, "b": V.CLEAN}
    said = "changed since its gates passed: other.py; running them again"
    assert said in [event.text for event in events if isinstance(event, Notice)]


def test_a_workspace_is_validated_again_by_the_gates_it_had(yard: Yard) -> None:
    yard.make("a", gate="! test -e other.py")
    rewrite = "touch ../a/other.py; sed -i 's/! test/test/' ../a/.atlas/config.yaml"
    yard.make("b", gate=rewrite)
    assert verdicts(yard.run("a", "b", jobs=1)) == {"a": V.FAILED, "b": V.CLEAN}


def test_an_error_of_a_second_validation_does_not_end_the_batch(yard: Yard) -> None:
    yard.make("a", gate="true")
    yard.make("b", gate="touch ../a/other.py ../a/.git/MERGE_HEAD")
    assert verdicts(yard.run("a", "b", jobs=1)) == {"a": V.BROKEN, "b": V.CLEAN}


def test_worktrees_of_one_repository_do_not_affect_each_other(yard: Yard) -> None:
    """Somebody commits, and adds a worktree, beside two runs: no violation, and all of it stays."""
    commit = "git -c user.name=x -c user.email=x@example.invalid commit -q --allow-empty -m x"
    yard.make("repo")
    yard.script("good")
    for name in ("api", "web"):
        assert yard.atlas("workspace", "add", name, at="repo").returncode == 0
    web = yard.folder / "repo.worktrees" / "web"
    settings = yaml.safe_load((web / ".atlas" / "config.yaml").read_text())
    make = "git worktree add -q ../mine-$$ -b mine-$$"
    settings["validation"]["lint"] = [f"(cd ../../repo && {commit} && {make}); {GATE}"]
    (web / ".atlas" / "config.yaml").write_text(yaml.safe_dump(settings))
    done = yard.atlas("retry", "--all", "--ai-fix", "--json", at="repo")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    runs = {run["workspace"]["name"]: run for run in document["runs"]}
    violations = {
        name: [v for a in run["attempts"] for v in a["violations"]] for name, run in runs.items()
    }
    assert violations == {"api": [], "web": []}
    assert {run["verdict"] for run in runs.values()} == {"fixed"}
    repo = yard.folder / "repo"
    assert git(repo, "log", "--format=%s", environ=yard.environ).split() == ["x", "x", "start"]


def test_every_line_names_its_workspace(yard: Yard) -> None:
    yard.make("x/api", "y/api", state="good")
    stream = io.StringIO()
    roots = folders.find(["./x/api", "./y/api"], yard.folder, yard.environ)
    many.run(roots, RunOptions(), yard.environ, Printer(stream=stream, named=True), jobs=2)
    lines = stream.getvalue().splitlines()
    assert {line.split()[0] for line in lines} == {"[x/api]", "[y/api]"}
    assert any("clean" in line and "[2 of 2]" in line for line in lines)


def test_a_report_is_written_for_each_workspace(yard: Yard, tmp_path: Path) -> None:
    yard.make("x/api", "y/api", "web", state="good")
    target = f"markdown={tmp_path / 'out.md'}"
    done = yard.atlas("retry", "./x/api", "./y/api", "./web", "--report", target)
    assert done.returncode == 0, done.stderr
    written = {path.name for path in tmp_path.glob("out*")}
    assert written == {"out-x-api.md", "out-y-api.md", "out-web.md"}


# --- names --------------------------------------------------------------------------------------


def test_a_workspace_named_twice_is_refused(yard: Yard) -> None:
    yard.make("a")
    (yard.folder / "a" / "sub").mkdir()
    with pytest.raises(UsageError, match="named twice"):
        yard.run("a", "a/sub")


@pytest.mark.parametrize("arguments", [("./nowhere",), ("nowhere",), ("--all",), ("--all", "./a")])
def test_an_unknown_workspace_is_refused_before_any_run(
    yard: Yard, arguments: tuple[str, ...]
) -> None:
    yard.make("a")
    done = yard.atlas("retry", "./a", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "next:\n" in done.stderr


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (("/s/api", "/s/web"), ("api", "web")),
        (("/s/x/api", "/s/y/api", "/s/web"), ("x/api", "y/api", "web")),
        (("/api", "/x/api"), ("/api", "x/api")),
    ],
)
def test_labels_are_the_shortest_unique_paths(
    paths: tuple[str, ...], names: tuple[str, ...]
) -> None:
    assert tuple(folders.labels([Path(path) for path in paths]).values()) == names


def test_workspaces_are_found_by_name_from_each_other(yard: Yard) -> None:
    yard.make("repo", state="good")
    for name in ("api", "web"):
        assert yard.atlas("workspace", "add", name, at="repo").returncode == 0
    done = yard.atlas("retry", "web", "-q", at="repo.worktrees/api")
    assert (done.returncode, done.stdout.split()[0]) == (0, "clean")
    assert "2 workspaces: 2 clean" in yard.atlas("retry", "--all", at="repo").stdout
    (yard.folder / "repo" / "api").mkdir()
    done = yard.atlas("retry", "api", at="repo")
    assert done.returncode == 2
    assert "./api" in done.stderr
    assert "no gate fails" in yard.atlas("prompt", "web", at="repo").stdout


def test_status_lists_all_workspaces_with_their_next_step(yard: Yard) -> None:
    yard.make("repo", state="good")
    yard.make(*"abcde")
    for name in ("api", "gone", "fresh"):
        assert yard.atlas("workspace", "add", name, at="repo").returncode == 0
    yard.atlas("retry", "api", "gone", at="repo")
    assert yard.atlas("workspace", "remove", "gone", at="repo").returncode == 0
    assert yard.atlas("retry", *(f"./{name}" for name in "abcde"), "--jobs", "1").returncode == 1
    shown = yard.atlas("status", at="repo").stdout
    states = {line.split()[0]: " ".join(line.split()[1:3]) for line in shown.splitlines()}
    assert {name: states[name].split()[0] for name in ("api", "a", "c")} == {
        "api": "clean",
        "a": "failed",
        "c": "failed",
    }
    assert (states["d"], states["e"], states["fresh"]) == ("not started", "not started", "no run")
    assert "gone" not in states
    assert "0 interrupted, 2 not started\nnext:\n  atlas resume --all\n" in shown
    document = json.loads(yard.atlas("status", "--json", at="repo").stdout)
    assert document["schema"] == "atlas.status/1"
    flags = {one["name"]: (one["verdict"], one["is_waiting"]) for one in document["workspaces"]}
    assert (flags["api"], flags["d"], flags["fresh"]) == (
        ("clean", False),
        (None, True),
        (None, False),
    )


# --- the end ------------------------------------------------------------------------------------


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_all_runs_and_keeps_the_rest_for_resume(yard: Yard, signum: int) -> None:
    yard.make(*"abcd", gate="touch ../$(basename $PWD).here; sleep 60")
    child = subprocess.Popen(
        (sys.executable, "-m", "atlas_retry", "retry", "./a", "./b", "./c", "./d", "--jobs", "2"),
        cwd=yard.folder,
        env=yard.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with child:
        wait_for([yard.folder / "a.here", yard.folder / "b.here"])
        os.kill(child.pid, signum)
        output, _ = child.communicate(timeout=120)
    assert child.returncode == 128 + signum
    assert "not started: c, d\nto continue:\n  atlas resume --all" in output
    assert yard.waiting() == ["c", "d"]


def wait_for(files: list[Path]) -> None:
    limit_s = time.monotonic() + 60
    while not all(file.exists() for file in files):
        assert time.monotonic() < limit_s, files
        time.sleep(0.05)


def test_the_summary_shows_each_result_and_reason(yard: Yard) -> None:
    yard.make("good", state="good")
    yard.make("bad")
    done = yard.atlas("retry", "./good", "./bad")
    lines = done.stdout.splitlines()
    assert "2 workspaces: 1 clean, 1 failed" in lines
    assert any(line.startswith("  good  clean") for line in lines)
    assert any(line.startswith("  bad   failed: still failing") for line in lines)


def test_batch_settings_of_the_first_workspace_apply(yard: Yard) -> None:
    settings: Mapping[str, object] = {"cascade_detection": {"threshold": 1, "window_size": 1}}
    yard.make("a", batch=settings)
    yard.make("b", "c")
    assert len(yard.run("a", "b", "c", jobs=1).finished) == 1
