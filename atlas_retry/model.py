"""The values everything else speaks in: frozen, slotted, serialisable; no behaviour.

Units are in the names (`_s`, `_ms`, `_usd`, `_chars`, `_bytes`). `None` means unlimited or
unknown, as the field says. Times are UTC, ISO 8601. Paths are POSIX and relative to the root of
the workspace unless the field says otherwise; bytes that are not UTF-8 are surrogate escapes.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from itertools import chain
from typing import Protocol

from msgspec import Struct
from msgspec.structs import force_setattr

CANNOT_EXECUTE, NOT_FOUND = 126, 127
"""Exit codes of a shell that could not start a command (POSIX, Shell Command Language 2.8.2)."""
OWN_JUNIT = "junit.xml"
"""In the folder of a gate's logs: the JUnit report that its runner wrote."""


class Kind(StrEnum):
    """What a gate checks. The order is the order of the report and of the writers."""

    FORMAT = "format"
    LINT = "lint"
    TEST = "test"
    PRE_COMMIT = "pre-commit"
    BUILD = "build"
    REVIEW = "review"
    CUSTOM = "custom"


class Status(StrEnum):
    """How one gate ended."""

    PASSED = "passed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    BROKEN = "broken"
    """Could not be run; no agent can fix that."""
    VACUOUS = "vacuous"
    FLAKY = "flaky"
    """Failed, then passed on an unchanged tree."""
    SKIPPED = "skipped"


class Level(StrEnum):
    """Severity of a diagnostic (SARIF 2.1.0 §3.27.10) or of an event."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Verdict(StrEnum):
    """How a run ended."""

    CLEAN = "clean"
    FIXED = "fixed"
    FAILED = "failed"
    """Gates fail and no agent was asked for."""
    NEEDS_REVIEW = "needs_review"
    """Green only with changes that were held, or with an edit that a person has to look at."""
    EXHAUSTED = "exhausted"
    STALLED = "stalled"
    REJECTED = "rejected"
    GAVE_UP = "gave_up"
    BROKEN = "broken"
    INTERRUPTED = "interrupted"

    @property
    def is_green(self) -> bool:
        return self in (Verdict.CLEAN, Verdict.FIXED)


class ReportFile(Struct, frozen=True, kw_only=True):
    """A machine-readable file that a gate writes beside its output."""

    format: str
    """A key of `diagnostics.REPORT_FORMATS`: junit, sarif, eslint-json, ruff-json ..."""
    path: str


class Gate(Struct, frozen=True, kw_only=True):
    """One configured command that must exit 0."""

    name: str
    kind: Kind
    run: str = ""
    """A line for `/bin/sh -c`; empty for a review gate, which has a `prompt`."""
    prompt: str | None = None
    fix: str | None = None
    """The gate's own fixer, run before any money is spent."""
    recheck: str | None = None
    """A narrower command for validations after an attempt; a green counts only after `run`."""
    required: bool = True
    max_retries: int | None = None
    """Attempts that this gate may cost; None = the run's own limit."""
    timeout_s: float = 300.0
    cwd: str = "."
    env: tuple[tuple[str, str], ...] = ()
    pass_env: tuple[str, ...] = ()
    """Names of secrets the gate may see."""
    inputs: tuple[str, ...] = ()
    """Globs of the files that its result depends on; empty = all."""
    writes: bool = False
    """Runs alone, because it changes files."""
    keep_daemons: bool = False
    network: bool = True
    parser: str | None = None
    report: ReportFile | None = None
    accepts_baseline: bool = False
    """Green where it shows no problem that the revision `triage.baseline` lacks."""
    agent: str | None = None
    """Backend of a review gate; None = the configured agent."""
    paths: tuple[str, ...] = ()
    """Globs that limit what a review gate reads; empty = the whole diff."""


class Region(Struct, frozen=True, kw_only=True):
    """1-based, end inclusive (SARIF 2.1.0 §3.30); None = the tool does not say."""

    start_line: int
    start_column: int | None = None
    end_line: int | None = None
    end_column: int | None = None


class Frame(Struct, frozen=True, kw_only=True):
    """One level of a traceback, outermost first."""

    path: str
    line: int
    function: str | None = None


class Diagnostic(Struct, frozen=True, kw_only=True):
    """One problem of one tool; fields named as in SARIF 2.1.0."""

    tool: str
    message: str
    rule_id: str | None = None
    level: Level = Level.ERROR
    path: str | None = None
    region: Region | None = None
    symbol: str | None = None
    """The enclosing function or class, `Class.method`."""
    fingerprint: str = ""
    """Tool, rule, normalised message, symbol and line text, hashed; never a line number."""
    test_id: str | None = None
    frames: tuple[Frame, ...] = ()
    text: str = ""
    """The tool's own lines, unchanged."""
    count: int = 1
    """How often the tool reported the same."""
    preexisting: bool = False
    """It is there at `triage.baseline` too, without the change."""


class GateResult(Struct, frozen=True, kw_only=True):
    """What one run of one gate did. `stdout` and `stderr` keep head and tail, cut in the middle."""

    name: str
    kind: Kind
    command: str
    required: bool = True
    status: Status
    success: bool
    """passed, flaky or skipped."""
    exit_code: int | None = None
    """Negative: ended by that signal. None: never started, or ended by us."""
    stdout: str = ""
    stderr: str = ""
    output_omitted_bytes: int = 0
    log_path: str | None = None
    """Absolute path of the folder with the whole `stdout.log` and `stderr.log`, of each stream that
    was printed to; None where nothing was."""
    duration_ms: int = 0
    error: str | None = None
    """Why it is not passed, in one sentence."""
    started_at: str = ""
    completed_at: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()
    beyond: int = 0
    """Problems that the tool reported beyond those in `diagnostics`."""
    at_least: bool = False
    """Not all of the output could be read: there may be still more problems."""
    changed: tuple[str, ...] = ()
    """Files that it changed; of what only reads none but code and settings."""
    notes: tuple[str, ...] = ()
    """What is odd about it and decides nothing: such as what it left running."""
    triage: str | None = None
    """code, flaky, environment, vacuous, threshold, or void (what it was to judge has gone); None
    when it passed."""
    cost_usd: float | None = None
    """Of a review; None: nothing, or nobody tells."""
    reused: str | None = None
    """When it ran, in UTC; it has not run now, for nothing has moved since. None: it ran."""

    @property
    def problems(self) -> int:
        """How often the tool complained; with `at_least`, at least so often."""
        return sum(diagnostic.count for diagnostic in self.diagnostics) + self.beyond

    @property
    def blocks(self) -> bool:
        """Whether the validation fails because of this gate."""
        return self.required and not self.success


class GateCourse(Struct, frozen=True, kw_only=True):
    name: str
    kind: Kind
    before: Status
    after: Status


TO_CHECK = "configure a required gate with a command; reviews are made by atlas retry --ai-fix"
"""What to do where no required gate has run."""


class Validation(Struct, frozen=True, kw_only=True):
    results: tuple[GateResult, ...] = ()
    started_at: str = ""
    completed_at: str = ""
    duration_ms: int = 0

    @property
    def success(self) -> bool:
        """Nothing blocks, and a required gate has run: what nobody checked is not in order."""
        return not self.failures and self.unchecked is None

    @property
    def unchecked(self) -> str | None:
        """Why nothing says that all is in order; None where a required gate has run."""
        required = [result for result in self.results if result.required]
        if not required:
            return "no gate is required"
        skipped = all(result.status is Status.SKIPPED for result in required)
        return "every required gate was skipped" if skipped else None

    @property
    def failures(self) -> tuple[GateResult, ...]:
        return tuple(result for result in self.results if result.blocks)

    @property
    def failed_step(self) -> str | None:
        """Kind of the first gate that blocks, as spec and report call it."""
        return self.failures[0].kind.value if self.failures else None

    @property
    def broken(self) -> tuple[GateResult, ...]:
        return tuple(result for result in self.failures if result.status is Status.BROKEN)

    @property
    def cost_usd(self) -> float:
        """Of its reviews."""
        return sum(result.cost_usd or 0.0 for result in self.results)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Those of all gates that block."""
        return tuple(chain.from_iterable(result.diagnostics for result in self.failures))

    @property
    def fingerprints(self) -> frozenset[str]:
        """Of every diagnostic of the gates that block; a silent failure has one."""
        return frozenset().union(*map(_fingerprints_of, self.failures))


def _fingerprints_of(result: GateResult) -> frozenset[str]:
    known = frozenset(d.fingerprint for d in result.diagnostics if d.fingerprint)
    return known or frozenset({f"{result.name}:{result.status}"})


class Budget(Struct, frozen=True, kw_only=True):
    """Of a run. None = unlimited, 0 = none at all."""

    attempts: int | None = 3
    cost_usd: float | None = 5.0
    wall_s: float | None = 3600.0


class ChangeStatus(StrEnum):
    """What happened to one path between two trees."""

    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"
    MODE = "mode"
    """Only the mode or the type of the entry."""


class Change(Struct, frozen=True, kw_only=True):
    """One path that differs between two snapshots."""

    path: str
    status: ChangeStatus
    added: int | None = None
    """Lines; None for binary files."""
    removed: int | None = None
    old_mode: str | None = None
    """As git writes it: 100644, 100755, 120000 (link), 160000 (submodule)."""
    new_mode: str | None = None


class Violation(Struct, frozen=True, kw_only=True):
    """One thing that an attempt may not do."""

    rule: str
    path: str
    line: int | None = None
    detail: str = ""
    """For a person: what was done and how to allow it."""


class Held(Violation, frozen=True, kw_only=True):
    """A change that only a person can accept."""

    needed: bool | None = None
    """Whether the gates are green only with it; None: nobody tried."""
    in_place: bool = False
    """It was left in the workspace, for review; else it was restored."""
    by_hand: bool = False
    """No snapshot holds it, or a build makes it: who accepts it has to make it again."""


class LeftBehind(Struct, frozen=True, kw_only=True):
    """What was refused and cannot be restored."""

    path: str
    """As the violation names it."""
    states: Mapping[str, str]
    """By absolute path, what tells whether a file was written since; empty where there was none."""


GitFacts = Mapping[str, str]
"""What git holds beside the work tree, one flat name each: `HEAD`, `refs/...`, `config:KEY`,
`hooks/NAME`, `info/NAME`, `index-flags:PATH`, `index`, `stash`, `worktrees/NAME`,
`state:MERGE_HEAD` ...; values are ids, digests or text."""


class Tree(Protocol):
    """Read access to one state of a workspace, by path relative to its root."""

    def paths(self) -> Iterable[str]:
        """Every file and link, submodules included, in order."""

    def read(self, path: str) -> bytes | None:
        """Content of a file, target of a link; None where there is nothing."""

    def mode(self, path: str) -> str | None:
        """As in `Change.old_mode`; None where there is nothing."""


class Tokens(Struct, frozen=True, kw_only=True):
    """Usage as the Messages API counts it; never below 0, whatever was told."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            force_setattr(self, name, max(getattr(self, name), 0))


def total_tokens(many: Iterable[Tokens]) -> Tokens:
    """The usage of several requests together."""
    every = tuple(many)
    return Tokens(
        input=sum(tokens.input for tokens in every),
        output=sum(tokens.output for tokens in every),
        cache_read=sum(tokens.cache_read for tokens in every),
        cache_write=sum(tokens.cache_write for tokens in every),
    )


def paid(cost_usd: float | None) -> float | None:
    """What somebody says that it has cost; nobody is ever paid for asking (nor is NaN a price)."""
    return None if cost_usd is None else max(0.0, cost_usd)


class Session(StrEnum):
    """Whether an attempt continues the agent's conversation."""

    NEW = "new"
    RESUME = "resume"


class ReplyStatus(StrEnum):
    """How an agent's turn ended, whatever the gates say afterwards."""

    DONE = "done"
    FAILED = "failed"
    """The agent ran and erred (turn limit, refusal, bad output): an attempt like any other."""
    TIMED_OUT = "timed_out"
    UNAVAILABLE = "unavailable"
    """No CLI, no key, not logged in, overloaded for too long: never counts as an attempt."""


class AgentRequest(Struct, frozen=True, kw_only=True):
    """What an agent is asked. Its edits go into the workspace, not into the reply."""

    prompt: str
    stable_chars: int = 0
    """So much of the head of `prompt` is the same in every attempt of the run."""
    workspace: str
    """Absolute path of the root; the agent may edit below it."""
    scratch: str
    """Absolute path of an existing folder of the attempt: transcripts, prompt file."""
    attempt: int = 1
    model: str | None = None
    session: Session = Session.NEW
    session_id: str | None = None
    """Of the conversation to continue, with `Session.RESUME`."""
    session_cost_usd: float = 0.0
    """What that conversation has cost so far: the CLI reports cumulative figures."""
    cost_usd: float | None = None
    """What this attempt may still cost."""
    timeout_s: float | None = 1800.0
    idle_timeout_s: float | None = 600.0
    commands: tuple[str, ...] = ()
    """Exact shell lines of the gates, which the agent may run."""
    protected: tuple[str, ...] = ()
    """Globs that the agent may not edit."""
    readable: tuple[str, ...] = ()
    """Absolute folders outside the workspace that it may read: what gates printed, redacted."""
    schema: bytes | None = None
    """JSON Schema of the answer: then the agent may only read, and `AgentReply.structured` holds
    its answer."""


EDITING_TOOLS = frozenset({"Edit", "MultiEdit", "NotebookEdit", "Write"})
"""Names in `AgentReply.denials` of the tools that write files."""


class AgentReply(Struct, frozen=True, kw_only=True):
    """What came back. Every figure is of this turn alone."""

    status: ReplyStatus
    summary: str = ""
    error: str | None = None
    remedy: str | None = None
    """The next thing to type, for UNAVAILABLE."""
    gave_up: str | None = None
    """The reason behind `ATLAS-CANNOT-FIX:`."""
    structured: str | None = None
    """JSON, as `AgentRequest.schema` asks for it; not yet held against the schema."""
    session_id: str | None = None
    model: str | None = None
    cost_usd: float | None = None
    """Never below 0, whatever was told. None: the agent does not tell."""
    tokens: Tokens = Tokens()
    transport_retries: int = 0
    turns: int | None = None
    denials: tuple[str, ...] = ()
    """Tool calls that were refused, as `Tool: target`."""
    touched: tuple[str, ...] = ()
    """Paths that its editing tools named, relative to the workspace."""
    touched_all: bool = False
    """They are all that the turn can have edited: it ran no command, nor a tool of other reach."""

    def __post_init__(self) -> None:
        force_setattr(self, "cost_usd", paid(self.cost_usd))


Agent = Callable[[AgentRequest], AgentReply]


class Attempt(Struct, frozen=True, kw_only=True):
    """One agent turn and the validation after it."""

    number: int
    agent: str
    model: str | None = None
    session_id: str | None = None
    transport_retries: int = 0
    denials: tuple[str, ...] = ()
    """Tool calls of the agent that were refused, as `Tool: target`."""
    cost_usd: float | None = None
    """Of the agent's turn; None: it does not tell."""
    reviews_usd: float = 0.0
    """Of the reviews in validations that had to be made again; `validation` has its own."""
    tokens: Tokens = Tokens()
    duration_ms: int = 0
    prompt_chars: int = 0
    prompt_path: str | None = None
    summary: str = ""
    error: str | None = None
    gave_up: str | None = None
    changes: tuple[Change, ...] = ()
    violations: tuple[Violation, ...] = ()
    held: tuple[Held, ...] = ()
    noted: tuple[Violation, ...] = ()
    """What a person may want to look at; nothing was restored for it."""
    ends: Verdict | None = None
    """The run goes no further, whatever the gates say."""
    remedy: str | None = None
    """What to type then."""
    left: tuple[LeftBehind, ...] = ()
    """Of the violations, what cannot be restored, as the turn left it."""
    unseen: tuple[str, ...] = ()
    """Files that the turn wrote where git does not look."""
    rolled_back: bool = False
    """The violations could not be separated from the rest: all of it was restored."""
    worse: bool = False
    """It left more gates or problems behind than it started from: all of it is restored before the
    next attempt."""
    fixed: tuple[str, ...] = ()
    remaining: tuple[str, ...] = ()
    introduced: tuple[str, ...] = ()
    """Fingerprints, against the validation before; as often as the problem is there."""
    since_start: tuple[Change, ...] = ()
    """What is in `result` and was not there before the run, earlier attempts included."""
    snapshot: str | None = None
    """Of the tree the agent left, violations included."""
    result: str | None = None
    """Snapshot of the tree after the guard, from which the next attempt starts unless this one
    left things worse."""
    kept: bool = False
    """Whether the run ended with this attempt's tree."""
    validation: Validation | None = None


class WorkspaceFacts(Struct, frozen=True, kw_only=True):
    """Where a validation ran, for reports."""

    name: str
    root: str
    head: str | None = None
    dirty: bool | None = None


class Lost(Struct, frozen=True, kw_only=True):
    """What was only in an uncommitted file when a run began, and is nowhere now."""

    path: str
    names: tuple[str, ...]
    """Functions, classes and top-level names, as `Class.method`."""
    command: str = ""
    """What to type for the file as it was before the run."""


class Outcome(Struct, frozen=True, kw_only=True):
    run_id: str
    verdict: Verdict
    workspace: WorkspaceFacts
    baseline: Validation
    final: Validation
    attempts: tuple[Attempt, ...] = ()
    final_error: str | None = None
    remedy: str | None = None
    cost_usd: float = 0.0
    interrupted_usd: float = 0.0
    """What runs of the workspace that were cut off before this one cost, as far as it is known:
    no report of theirs says so."""
    duration_ms: int = 0
    escalation_required: bool = False
    learning_record_id: str | None = None
    start_snapshot: str | None = None
    """What `atlas undo` restores."""
    handoff_path: str | None = None
    """Absolute path of the Markdown for a person, when one has to go on."""
    lost: tuple[Lost, ...] = ()
    """Definitions that only the user's uncommitted files held and that the run has left nowhere."""
    better: int | None = None
    """The attempt that came closest to green, where it is better than what is in the workspace."""
    gates_changed: tuple[str, ...] = ()
    """Files that gates and their fixers have changed, and no attempt."""
