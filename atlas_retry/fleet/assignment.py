"""Run one assignment on this machine: clone, `atlas retry` as a child, results to the store.

Knows no server: `beat` is called each second, and raises Stopped if the run must end.
"""

import shutil
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from atlas_retry import process, state_dir
from atlas_retry.errors import AtlasError, UsageError
from atlas_retry.fleet import pushed, store, tries
from atlas_retry.fleet.batch import Assignment, ItemResult, Stage, run_of
from atlas_retry.fleet.books import Beat
from atlas_retry.fleet.clones import Clones
from atlas_retry.fleet.manifest import DeliverTo, Manifest
from atlas_retry.model import GateResult, Verdict
from atlas_retry.process import Command, Completed
from atlas_retry.reports.documents import LISTS, RunDocument

BEAT_S = 1.0
GRACE_S = 30.0
"""Time for a stopped run to revert what its attempt changed."""
MAX_PROBLEMS = 3
MAX_CHARS = 200


class Stopped(Exception):  # noqa: N818 - not an error: the batch or the worker ends
    """The run must end."""


class Policy(Struct, frozen=True, kw_only=True):
    """Limits of a worker, which a manifest can only narrow. None: unlimited."""

    agents: tuple[str, ...] = ()
    max_cost_usd: float | None = None
    """Limit of one run."""
    max_attempts: int | None = None
    max_minutes: float | None = None


class Workplace(Struct, frozen=True, kw_only=True):
    """One machine of a fleet."""

    home: Path
    """State directory, with the journal."""
    machine: str
    store: store.Store
    policy: Policy
    environ: Mapping[str, str]
    """Environment of every child process, without the worker's own secrets."""


def carry_out(at: Workplace, one: Assignment, beat: Callable[[Beat], None]) -> ItemResult:
    """Run an assignment; if it has already ended on any machine, returns that result.

    A faulty item is a result as well. Raises only unexpected errors.
    """
    if earlier := at.store.result(one.batch, one.run):
        return earlier
    execution = _Execution(at=at, one=one, beat=beat)
    with tries.under_way(at.home, one.batch, one.run, one.number, execution.wait):
        try:
            result = at.store.result(one.batch, one.run) or execution.result()
        except Stopped:
            return execution.without_report(None)
        except AtlasError as error:
            result = execution.without_report(Verdict.BROKEN, str(error))
        at.store.put(one.batch, f"{one.run}/{store.RESULT}", msgspec.json.encode(result))
    execution.clones.remove(one.run)
    shutil.rmtree(execution.folder, ignore_errors=True)
    return result


class _Execution(Struct, kw_only=True):
    """One running assignment; observes its commands, and sends a beat each second."""

    at: Workplace
    one: Assignment
    beat: Callable[[Beat], None]
    is_run: bool = False
    """Whether the current command is the run itself, so that each attempt is pushed."""
    beaten_s: float = 0.0
    pushed: int = 0
    """Number of pushed attempts."""

    @property
    def clones(self) -> Clones:
        home = state_dir.folder(self.at.home, tries.FOLDER)
        return Clones(home=home, environ=self.at.environ, run=self.watched)

    @property
    def folder(self) -> Path:
        """Folder for files outside the clone."""
        return state_dir.folder(self.at.home, tries.FOLDER, "scratch", self.one.run)

    def now(self) -> Beat:
        return tries.beat_of(self.at.home, self.at.machine, self.one.run, self.one.number)

    def wait(self) -> None:
        self.beat(self.now())
        time.sleep(tries.WAIT_S)

    def watched(self, command: Command, *, is_run: bool = False) -> Completed:
        """Run a command with a beat each second. Raises Stopped if it was ended by a beat."""
        self.is_run, self.beaten_s = is_run, -BEAT_S
        (done,) = process.run_all((command,), jobs=1, watch=self)
        if done is None:
            raise Stopped
        return done

    def started(self, index: int) -> None:
        """Send no beat yet."""

    def progress(self, index: int, last_line: str, elapsed_s: float) -> None:  # noqa: ARG002 - a Watch
        if elapsed_s < self.beaten_s + BEAT_S:
            return
        self.beaten_s = elapsed_s
        now = self.now()
        self.beat(now)
        if self.is_run and now.attempt > self.pushed:
            self.pushed = now.attempt
            self.push()

    def ended(self, index: int, completed: Completed) -> None:
        """Ignore the end; `watched` has the result."""

    def without_report(self, verdict: Verdict | None, error: str = "") -> ItemResult:
        """A result without a report."""
        now = self.now()
        return ItemResult(
            run=self.one.run,
            machine=self.at.machine,
            verdict=verdict,
            cost_usd=now.cost_usd,
            attempts=now.attempt,
            error=error[:MAX_CHARS],
        )

    def push(self) -> None:
        """Store the latest attempt, in case another machine continues the run."""
        root = self.clones.place(self.one.run)
        with suppress(AtlasError):  # it only saves work
            latest = pushed.latest(self.at.home, self.at.environ, root, self.one.run)
            if latest:
                self._put(store.ATTEMPT, msgspec.json.encode(latest))

    def result(self) -> ItemResult:
        manifest = self.at.store.manifest(self.one.batch, self.one.digest)
        pushed_attempts = self._pushed_attempts()
        repository = manifest.repositories[self.one.index]
        root = self.clones.ready(self.one.run, repository, manifest.change)
        if manifest.config:
            # not delivered, because no commit holds it
            folder = root / repository.cwd / ".atlas"
            folder.mkdir(exist_ok=True)
            other = folder / "config.yml"
            file = other if other.exists() else folder / "config.yaml"
            file.write_text(manifest.config, encoding="utf-8")
        asked = self._asked(manifest, root, pushed_attempts)
        if asked is None:
            return self.without_report(Verdict.FAILED, "the patch of its group does not apply")
        document, printed = self._retried(root / repository.cwd, *asked)
        self._put(store.REPORT, msgspec.json.encode(document))
        self._put(store.LOG, printed.encode())
        final = chain.from_iterable(getattr(document.final, name) for name in LISTS)
        failing = tuple(_shortened(one) for one in final if one.blocks)
        result = replace(
            self.without_report(document.verdict, document.final_error or ""),
            attempts=len(document.attempts),
            failing=failing[:MAX_PROBLEMS],
            open_reviews=document.open_reviews[:MAX_PROBLEMS],
        )
        has_changed = document.attempts or document.verdict is Verdict.FIXED
        if not (document.success and has_changed):
            return result
        # a run that has started over has a new id
        return self._delivered(root, document.run_id, manifest.deliver, result)

    def _asked(
        self, manifest: Manifest, root: Path, pushed_attempts: int
    ) -> tuple[tuple[str, ...], dict[str, str]] | None:
        """Options and variables of `atlas retry`; None if there is nothing to replay."""
        if self.one.stage is Stage.LOOK:
            return (), {}
        policy = self.at.policy
        agent = agent_of(manifest, policy)
        if self.one.stage is Stage.REPLAY:
            # the accepted patch of the group's first item, if it applies
            name = f"{run_of(self.one.batch, self.one.patch_of or 0, Stage.FIX)}/{store.PATCH}"
            patch = self.at.store.get(self.one.batch, name)
            adapted = self.clones.adapted(root, patch) if patch else None
            if not adapted:
                return None
            self._write_script(adapted)
            options = flags(manifest, policy, self.one, "scripted", 1)
            return options, {"ATLAS_AGENT__PATH": str(self.folder)}
        attempts = attempts_of(manifest, policy, pushed_attempts)
        if not pushed_attempts:
            return flags(manifest, policy, self.one, agent, attempts), {}
        options = flags(manifest, policy, self.one, pushed.BACKEND, attempts)
        return options, {pushed.AGENT: agent, pushed.SCRIPT: str(self.folder)}

    def _pushed_attempts(self) -> int:
        """Number of attempts that another machine made, if this one continues from there."""
        if self.one.stage is not Stage.FIX:
            return 0
        note = self.folder / store.ATTEMPT
        if not self.clones.place(self.one.run).is_dir():  # else this machine continues its own run
            content = self.at.store.get(self.one.batch, self._name(store.ATTEMPT))
            note.write_bytes(content or b"")
        if not note.exists() or not note.stat().st_size:
            return 0
        attempt = msgspec.json.decode(note.read_bytes(), type=pushed.PushedAttempt)
        self._write_script(attempt.patch)
        return attempt.attempts

    def _write_script(self, patch: bytes) -> None:
        step = state_dir.folder(self.folder, "1")
        (step / "replay.diff").write_bytes(patch)

    def _retried(
        self, root: Path, options: tuple[str, ...], more: Mapping[str, str]
    ) -> tuple[RunDocument, str]:
        """Run `atlas retry`. Raises AtlasError with its last output if it wrote no report."""
        report = self.folder / "run.json"
        report.unlink(missing_ok=True)
        made = ("--run-id", self.one.run, "--report", f"json={report}", "--plain")
        env = {**self.at.environ, **more}
        argv = ("retry", ".", *made, *options)
        done = self.watched(self._command(root, argv, env), is_run=True)
        if not report.exists():
            raise AtlasError(f"atlas retry: {_last_lines(done)}")
        document = msgspec.json.decode(report.read_bytes(), type=RunDocument)
        return document, done.stdout.text + done.stderr.text

    def _delivered(self, root: Path, run_id: str, to: DeliverTo, result: ItemResult) -> ItemResult:
        """Put the run's own change into the store, and on a branch if requested."""
        patch = self.folder / store.PATCH
        branch = ("--branch", to.branch) if to.branch else ()
        push = ("--push",) if to.branch and to.push else ()
        asked = ("deliver", run_id, "--patch", str(patch), *branch, *push)
        done = self.watched(self._command(root, asked, self.at.environ))
        if patch.exists():
            self._put(store.PATCH, patch.read_bytes())
        if done.exit_code != 0:
            why = f"not delivered: {_last_lines(done)}"
            return replace(result, has_patch=patch.exists(), error=why[:MAX_CHARS])
        return replace(result, has_patch=True, delivered=to.branch)

    def _command(self, cwd: Path, arguments: tuple[str, ...], env: Mapping[str, str]) -> Command:
        argv = (sys.executable, "-m", "atlas_retry", *arguments)
        return Command(argv=argv, cwd=cwd, env=env, grace_s=GRACE_S)

    def _put(self, name: str, content: bytes) -> None:
        self.at.store.put(self.one.batch, self._name(name), content)

    def _name(self, name: str) -> str:
        return f"{self.one.run}/{name}"


def _last_lines(done: Completed) -> str:
    lines = (done.stderr.text or done.stdout.text).strip().splitlines()
    return next((line for line in lines if line.startswith("atlas: ")), "\n".join(lines[-3:]))


def _shortened(result: GateResult) -> GateResult:
    """A gate's result without output, and with its first problems only."""
    few = tuple(
        replace(one, message=one.message[:MAX_CHARS], text="", frames=(), test_id=None)
        for one in result.diagnostics[:MAX_PROBLEMS]
    )
    return replace(
        result,
        command="",
        stdout="",
        stderr="",
        error=(result.error or "")[:MAX_CHARS] or None,
        diagnostics=few,
        notes=(),
        changed=(),
    )


def agent_of(manifest: Manifest, policy: Policy) -> str:
    """The agent to use. Raises UsageError if this worker does not allow it."""
    agent = manifest.agent or next(iter(policy.agents), "")
    if agent not in policy.agents:
        raise UsageError(f"this worker does not allow the agent {agent or 'of the configuration'}")
    return agent


def attempts_of(manifest: Manifest, policy: Policy, done: int = 0) -> int | None:
    """Limit of attempts; the latest of those `done` elsewhere counts as the first.

    None: the limit in the repository's configuration.
    """
    most = _least(manifest.limits.max_attempts, policy.max_attempts)
    return None if most is None else max(int(most) - max(done - 1, 0), 1)


def flags(
    manifest: Manifest, policy: Policy, one: Assignment, agent: str, max_attempts: int | None
) -> tuple[str, ...]:
    """The options of `atlas retry` for a run with an agent."""
    options = {
        "--agent": agent,
        "--model": manifest.model or None if one.stage is Stage.FIX else None,
        "--max-attempts": max_attempts,
        "--max-cost-usd": _least(one.promised_usd, policy.max_cost_usd),
        "--max-minutes": _least(manifest.limits.max_minutes, policy.max_minutes),
    }
    given = (f"{name}={value}" for name, value in options.items() if value is not None)
    return ("--ai-fix", *given)


def _least(*limits: float | None) -> float | None:
    return min((limit for limit in limits if limit is not None), default=None)
