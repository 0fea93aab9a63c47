"""The values that all other modules use: frozen, slotted, serialisable; no behaviour.

Units are in the names (`_s`, `_ms`, `_usd`, `_chars`, `_bytes`). `None` means unlimited or
unknown, as the field says. Times are UTC, ISO 8601. Paths are POSIX and relative to the root of
the workspace unless the field says otherwise; bytes that are not UTF-8 are surrogate escapes.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from itertools import chain
from typing import Protocol

from msgspec import Struct
from msgspec.structs import force_setattr, replace

CANNOT_EXECUTE, NOT_FOUND = 126, 127
"""Exit codes of a shell that could not start a command (POSIX, Shell Command Language 2.8.2)."""
OWN_JUNIT = "junit.xml"
"""Name of the JUnit report that a test runner writes into the folder of the gate's logs."""
Content = tuple[str, bytes]
"""Mode, in git's form, and content of a file (of a link, its target)."""
Contents = Mapping[str, Content | None]
"""Files by path; None if there is no such file."""


class Kind(StrEnum):
    """What a gate checks. The order is the order of the report and of the writers."""

    FORMAT = "format"
    LINT = "lint"
    TEST = "test"
    PRE_COMMIT = "pre-commit"
    BUILD = "build"
    REVIEW = "review"
    CUSTOM = "custom"


WRITERS = frozenset({Kind.FORMAT, Kind.PRE_COMMIT})
"""Kinds of gates that change files."""
CHECKERS = WRITERS | {Kind.LINT}
"""Kinds of gates that read code, and do not run it."""


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
    """Green only with held changes, or with an edit that a person must review."""
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
    """A machine-readable file that a gate writes in addition to its output."""

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
    """Narrower command for validations after an attempt; a pass counts only after `run`."""
    required: bool = True
    max_retries: int | None = None
    """Most attempts for this gate; None = the limit of the run or of its kind."""
    timeout_s: float = 300.0
    cwd: str = "."
    env: tuple[tuple[str, str], ...] = ()
    pass_env: tuple[str, ...] = ()
    """Names of secrets the gate may see."""
    inputs: tuple[str, ...] = ()
    """Globs of the files that the result depends on; empty = all files."""
    files: tuple[str, ...] = ()
    """Globs of the files that `{files}` stands for; empty = `inputs`."""
    after: tuple[str, ...] = ()
    """Names of the gates that must have ended before it starts, if they run."""
    only_in_ci: bool = False
    writes: bool = False
    """Changes files, so it runs alone."""
    keep_daemons: bool = False
    network: bool = True
    parser: str | None = None
    report: ReportFile | None = None
    trusts_exit_code: bool = False
    """Exit code 0 passes, whatever the output or the report counts."""
    cannot_fail: str = ""
    """The part of `run` that makes it exit with 0 always: it is never required."""
    accepts_baseline: bool = False
    """Passes if all its problems are also reported at the revision `triage.baseline`."""
    agent: str | None = None
    """Backend of a review gate; None = the configured agent."""
    paths: tuple[str, ...] = ()
    """Globs that limit what a review gate reads; empty = the whole diff."""


class Region(Struct, frozen=True, kw_only=True):
    """Place in a file, 1-based, end inclusive (SARIF 2.1.0 §3.30); None = not reported."""

    start_line: int
    start_column: int | None = None
    end_line: int | None = None
    end_column: int | None = None


class Introduced(Struct, frozen=True, kw_only=True):
    """The part of the user's change without which a test does not fail as it does."""

    gate: str
    test: str
    place: str
    """Path, and lines as they were before the first attempt."""
    diff: str
    """Removed and added lines; empty for a change of a whole file."""


class Frame(Struct, frozen=True, kw_only=True):
    """One frame of a traceback; tracebacks are listed outermost first."""

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
    """Number of times the tool reported the same problem."""
    preexisting: bool = False
    """Also reported at `triage.baseline`, so not caused by the change."""


class GateResult(Struct, frozen=True, kw_only=True):
    """Result of one run of a gate. `stdout` and `stderr` keep head and tail, cut in the middle."""

    name: str
    kind: Kind
    command: str
    cwd: str = "."
    """Folder that it ran in: POSIX, relative to the root of the workspace."""
    required: bool = True
    status: Status
    success: bool
    """Whether the status is passed, flaky or skipped."""
    exit_code: int | None = None
    """Negative if a signal ended it; None if it never started, or atlas ended it."""
    stdout: str = ""
    stderr: str = ""
    output_omitted_bytes: int = 0
    log_path: str | None = None
    """Absolute path of the folder with the full `stdout.log` and `stderr.log`, one per stream that
    has output; None without output."""
    duration_ms: int = 0
    error: str | None = None
    """Why the gate did not pass, in one sentence."""
    remedy: str | None = None
    """The command that installs what a broken gate lacks; None if none is known."""
    started_at: str = ""
    completed_at: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()
    beyond: int = 0
    """Number of reported problems that are not in `diagnostics`."""
    at_least: bool = False
    """Not all output could be read, so there may be more problems."""
    changed: tuple[str, ...] = ()
    """Files that the gate changed; if it should only read, just code and settings."""
    notes: tuple[str, ...] = ()
    """Remarks that do not affect the status, for example processes that it left running."""
    triage: str | None = None
    """Cause of the failure: code, flaky, environment, vacuous, threshold, exit-code (0,
    although failures are counted but none is named), or target_missing (what it should judge
    is gone); None if it passed."""
    cost_usd: float | None = None
    """Cost of a review; None if there was none or its cost is unknown."""
    reused: str | None = None
    """UTC time of the earlier result that was used, as nothing changed since; None if it ran."""

    @property
    def problems(self) -> int:
        """Number of problems that the tool reported; a lower bound with `at_least`."""
        return sum(diagnostic.count for diagnostic in self.diagnostics) + self.beyond

    @property
    def has_just_passed(self) -> bool:
        """Whether its gate ran, passed and changed no file."""
        return self.status is Status.PASSED and not (self.reused or self.changed)

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
"""Remedy if no required gate has run."""


class ExtraRun(Struct, frozen=True, kw_only=True):
    """A gate, or a part of it, that ran besides the validations themselves."""

    gate: str
    reason: str
    """Such as `it may be flaky`, `trace`, `confirmation: ...`."""
    duration_ms: int
    attempt: int | None = None
    """None before the first attempt."""


class Validation(Struct, frozen=True, kw_only=True):
    results: tuple[GateResult, ...] = ()
    started_at: str = ""
    completed_at: str = ""
    duration_ms: int = 0
    is_limited: bool = False
    """Whether it is about a change only, so that gates which read nothing of it were skipped."""
    extra_runs: tuple[ExtraRun, ...] = ()
    """Gates that ran again within it, with the reason."""

    @property
    def success(self) -> bool:
        """Whether no gate blocks and a required gate has run; unchecked code does not pass."""
        return not self.failures and self.unchecked is None

    @property
    def unchecked(self) -> str | None:
        """Why the validation proves nothing; None if a required gate has run."""
        required = [result for result in self.results if result.required]
        if not required:
            return "no gate is required"
        if self.is_limited:
            return None
        skipped = all(result.status is Status.SKIPPED for result in required)
        return "every required gate was skipped" if skipped else None

    @property
    def failures(self) -> tuple[GateResult, ...]:
        return tuple(result for result in self.results if result.blocks)

    @property
    def counts(self) -> str:
        """`3 of 5 gates passed`; if not all have run that should, `1 failed, 2 not run`."""
        ran = [result for result in self.results if result.status is not Status.SKIPPED]
        passed, every = sum(result.success for result in ran), len(self.results)
        if self.is_limited or len(ran) == every:
            return f"{passed} of {len(ran)} {'gate' if len(ran) == 1 else 'gates'} passed"
        parts = ((len(ran) - passed, "failed"), (passed, "passed"), (every - len(ran), "not run"))
        return ", ".join(f"{number} {word}" for number, word in parts if number)

    @property
    def failed_step(self) -> str | None:
        """Kind of the first gate that blocks, as named in the report."""
        return self.failures[0].kind.value if self.failures else None

    @property
    def broken(self) -> tuple[GateResult, ...]:
        return tuple(result for result in self.failures if result.status is Status.BROKEN)

    @property
    def cost_usd(self) -> float:
        """Cost of the reviews."""
        return sum(result.cost_usd or 0.0 for result in self.results)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Diagnostics of all gates that block."""
        return tuple(chain.from_iterable(result.diagnostics for result in self.failures))

    @property
    def fingerprints(self) -> frozenset[str]:
        """Fingerprints of all gates that block; a gate without diagnostics has one, too."""
        return frozenset().union(*map(_fingerprints_of, self.failures))


def _fingerprints_of(result: GateResult) -> frozenset[str]:
    known = frozenset(d.fingerprint for d in result.diagnostics if d.fingerprint)
    return known or frozenset({f"{result.name}:{result.status}"})


class Budget(Struct, frozen=True, kw_only=True):
    """Limits of a run. None = unlimited, 0 = none at all."""

    attempts: int | None = 3
    cost_usd: float | None = 5.0
    wall_s: float | None = 3600.0


class ChangeStatus(StrEnum):
    """What happened to one path between two trees."""

    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"
    MODE = "mode"
    """Only the mode or the type of the entry changed."""


class Change(Struct, frozen=True, kw_only=True):
    """One path that differs between two snapshots."""

    path: str
    status: ChangeStatus
    added: int | None = None
    """Number of lines; None for binary files."""
    removed: int | None = None
    old_mode: str | None = None
    """As git writes it: 100644, 100755, 120000 (link), 160000 (submodule)."""
    new_mode: str | None = None


class AnswerWord(StrEnum):
    """What the guard answers to a change, in the order of reports; other changes are kept."""

    REFUSED = "refused"
    HELD = "held"
    """It decides what passes: reverted, and shown to a person."""
    REVIEW = "review"
    """It stays, but a person must accept the result."""
    NOTED = "noted"


class Answer(Struct, frozen=True, kw_only=True):
    """The guard's answer to one change, from the rule that gives it to the reports."""

    rule: str
    path: str
    line: int | None = None
    detail: str = ""
    """What was done, for a person."""

    @property
    def word(self) -> AnswerWord:
        """A plain answer is a note, which changes nothing."""
        return AnswerWord.NOTED

    @property
    def where(self) -> str:
        """As in `calc.py:3`."""
        return f"{self.path}:{self.line}" if self.line else self.path

    @property
    def place(self) -> str:
        """Where, and by which rule: `calc.py:3 (special-case)`."""
        return f"{self.where} ({self.rule})"

    def as_note(self) -> "Answer":
        """The same, as what changes nothing."""
        return Answer(rule=self.rule, path=self.path, line=self.line, detail=self.detail)


class Violation(Answer, frozen=True, kw_only=True):
    """A change that the guard refuses."""

    @property
    def word(self) -> AnswerWord:
        return AnswerWord.REFUSED


class Held(Answer, frozen=True, kw_only=True):
    """A change that only a person can accept."""

    needed: bool | None = None
    """Whether the gates pass only with this change; None if not tried."""
    in_place: bool = False
    """Left in the workspace for review; otherwise reverted."""
    by_hand: bool = False
    """Not in a snapshot, or made by a build: to accept it, a person must make it again."""

    @property
    def word(self) -> AnswerWord:
        return AnswerWord.REVIEW if self.in_place else AnswerWord.HELD

    def tried(self, *, needed: bool) -> "Held":
        """The same after the gates ran with it; what was left in place is not tried."""
        return self if self.in_place else replace(self, needed=needed)


class OpenReview(Answer, frozen=True, kw_only=True):
    """A change in the workspace that a person has not accepted yet."""

    run_id: str
    attempt: int


class LeftBehind(Struct, frozen=True, kw_only=True):
    """A refused change that cannot be reverted."""

    path: str
    """As the violation names it."""
    states: Mapping[str, str]
    """State of each file, by absolute path, that differs once it is written; empty if missing."""


GitFacts = Mapping[str, str]
"""State of git apart from the work tree, by flat names: `HEAD`, `refs/...`, `config:KEY`,
`hooks/NAME`, `info/NAME`, `index-flags:PATH`, `index`, `stash`, `worktrees/NAME`,
`state:MERGE_HEAD` ...; values are ids, digests or text."""


class Tree(Protocol):
    """Read access to one state of a workspace, by path relative to its root."""

    def paths(self) -> Iterable[str]:
        """Every file and link, submodules included, in order."""

    def read(self, path: str) -> bytes | None:
        """Content of a file or target of a link; None if the path does not exist."""

    def mode(self, path: str) -> str | None:
        """Mode as in `Change.old_mode`; None if the path does not exist."""


class Tokens(Struct, frozen=True, kw_only=True):
    """Token usage as the Messages API counts it; negative numbers become 0."""

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
    names = Tokens.__struct_fields__
    return Tokens(**{name: sum(getattr(one, name) for one in every) for name in names})


def paid(cost_usd: float | None) -> float | None:
    """A reported cost, in which negative numbers and NaN become 0."""
    return None if cost_usd is None else max(0.0, cost_usd)


class Session(StrEnum):
    """Whether an attempt continues the agent's conversation."""

    NEW = "new"
    RESUME = "resume"


class ReplyStatus(StrEnum):
    """How an agent's turn ended, before the gates run."""

    DONE = "done"
    FAILED = "failed"
    """The agent ran and failed (turn limit, refusal, bad output): counts as an attempt."""
    TIMED_OUT = "timed_out"
    UNAVAILABLE = "unavailable"
    """No CLI, no key, not logged in, overloaded for too long: never counts as an attempt."""


class AgentRequest(Struct, frozen=True, kw_only=True):
    """Request to an agent. Its edits go into the workspace, not into the reply."""

    prompt: str
    stable_chars: int = 0
    """Length of the start of `prompt` that is the same in every attempt of the run."""
    workspace: str
    """Absolute path of the root; the agent may edit below it."""
    scratch: str
    """Absolute path of the attempt's folder (it exists), for transcripts and the prompt file."""
    attempt: int = 1
    model: str | None = None
    session: Session = Session.NEW
    session_id: str | None = None
    """Conversation to continue, with `Session.RESUME`."""
    session_cost_usd: float = 0.0
    """Cost of that conversation so far; the CLI reports cumulative figures."""
    cost_usd: float | None = None
    """Most that this attempt may cost."""
    timeout_s: float | None = 1800.0
    idle_timeout_s: float | None = 600.0
    commands: tuple[str, ...] = ()
    """Exact shell lines of the gates, which the agent may run."""
    protected: tuple[str, ...] = ()
    """Globs that the agent may not edit."""
    readable: tuple[str, ...] = ()
    """Absolute paths of folders outside the workspace that it may read: redacted gate output."""
    schema: bytes | None = None
    """JSON Schema of the answer, which goes into `AgentReply.structured`; the agent may only read
    if this is set."""


EDITING_TOOLS = frozenset({"Edit", "MultiEdit", "NotebookEdit", "Write"})
"""Names of the tools that write files, as in `AgentReply.denials`."""


class AgentReply(Struct, frozen=True, kw_only=True):
    """Reply of an agent. All figures are of this turn only."""

    status: ReplyStatus
    summary: str = ""
    error: str | None = None
    remedy: str | None = None
    """The next thing to type, for UNAVAILABLE."""
    gave_up: str | None = None
    """Reason given after `ATLAS-CANNOT-FIX:`."""
    structured: str | None = None
    """JSON answer to `AgentRequest.schema`; not yet checked against the schema."""
    session_id: str | None = None
    model: str | None = None
    cost_usd: float | None = None
    """Never negative; None if the agent does not report it."""
    tokens: Tokens = Tokens()
    transport_retries: int = 0
    turns: int | None = None
    denials: tuple[str, ...] = ()
    """Tool calls that were refused, as `Tool: target`."""
    touched: tuple[str, ...] = ()
    """Paths that its editing tools named, relative to the workspace."""
    touched_all: bool = False
    """Whether `touched` is complete: the turn ran no command and no other tool that may edit."""

    def __post_init__(self) -> None:
        force_setattr(self, "cost_usd", paid(self.cost_usd))


Agent = Callable[[AgentRequest], AgentReply]


class AttemptFacts(Struct, frozen=True, kw_only=True):
    """What is published about one agent turn."""

    number: int
    agent: str
    model: str | None = None
    session_id: str | None = None
    transport_retries: int = 0
    denials: tuple[str, ...] = ()
    """Tool calls of the agent that were refused, as `Tool: target`."""
    cost_usd: float | None = None
    """Cost of the agent's turn; None if not reported."""
    reviews_usd: float = 0.0
    """Cost of reviews in validations that were repeated; `validation` holds its own."""
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
    noted: tuple[Answer, ...] = ()
    """Changes that a person may want to look at; none was reverted."""
    rolled_back: bool = False
    """All changes were reverted, because the violations could not be separated from the rest."""
    worse: bool = False
    """More failing gates or problems than before: reverted before the next attempt."""
    fixed: tuple[str, ...] = ()
    remaining: tuple[str, ...] = ()
    introduced: tuple[str, ...] = ()
    """Fingerprints, compared with the validation before; one per occurrence of a problem."""
    since_start: tuple[Change, ...] = ()
    """Changes from the start of the run to `result`, earlier attempts included."""
    snapshot: str | None = None
    """Snapshot of the tree the agent left, violations included."""
    result: str | None = None
    """Snapshot of the tree after the guard; unless `worse`, the next attempt starts from it."""
    kept: bool = False
    """Whether the run ended with this attempt's tree."""
    unstaged: tuple[str, ...] = ()
    """Changed files that a gate judges as they are staged: it passes once they are staged again."""


class Attempt(AttemptFacts, frozen=True, kw_only=True):
    """One agent turn and the validation after it."""

    ends: Verdict | None = None
    """Verdict that ends the run here, independent of the gates."""
    remedy: str | None = None
    """Next command to type, with `ends`."""
    left: tuple[LeftBehind, ...] = ()
    """Violations that cannot be reverted, as the turn left them."""
    unseen: tuple[str, ...] = ()
    """Files that the turn wrote where git does not look."""
    validation: Validation | None = None

    @property
    def passed(self) -> bool:
        """Whether the gates passed after the turn."""
        return self.validation is not None and self.validation.success


class WorkspaceFacts(Struct, frozen=True, kw_only=True):
    """Where a validation ran, for reports."""

    name: str
    root: str
    head: str | None = None
    dirty: bool | None = None


class Lost(Struct, frozen=True, kw_only=True):
    """Work that only an uncommitted file held when the run began, and that is gone."""

    path: str
    names: tuple[str, ...]
    """Functions, classes and top-level names, as `Class.method`; none if it is the whole file."""
    command: str = ""
    """Command that brings it back, merged into what the run left of the file."""


class RunFacts(Struct, frozen=True, kw_only=True):
    """What is published about a run, except its cost, validations and attempts."""

    run_id: str
    verdict: Verdict
    workspace: WorkspaceFacts
    final_error: str | None = None
    remedy: str | None = None
    interrupted_usd: float = 0.0
    """Known cost of earlier, interrupted runs of the workspace; no other report has it."""
    duration_ms: int = 0
    escalation_required: bool = False
    learning_record_id: str | None = None
    start_snapshot: str | None = None
    """Snapshot that `atlas undo` restores; None if it is lost."""
    handoff_path: str | None = None
    """Absolute path of the Markdown notes for a person, if one must continue."""
    lost: tuple[Lost, ...] = ()
    """Work that only the user's uncommitted files held, and that the run has removed."""
    better: int | None = None
    """Number of the best attempt, if it is better than what is in the workspace."""
    gates_changed: tuple[str, ...] = ()
    """Files changed by gates and their fixers, not by an agent or a person."""
    extra_runs: tuple[ExtraRun, ...] = ()
    """What ran besides the validations, with the reason; not that of an interrupted process."""
    unproven: tuple[str, ...] = ()
    """Faults in functions that the fix touched with which no test fails: `path:line: what`."""
    open_reviews: tuple[OpenReview, ...] = ()
    """Changes in the workspace that a person must review, of this run or an earlier one."""


class Outcome(RunFacts, frozen=True, kw_only=True):
    baseline: Validation
    final: Validation
    attempts: tuple[Attempt, ...] = ()
    cost_usd: float = 0.0
