"""Texts that are made of values, as whole pages to read: what a person gets to see of a run.

The docstring of each function is the first line of its page `pages/NAME.txt`: what it is about.
`make golden` makes the pages anew and prints what differs. A line with `#` heads each scene.
"""

from collections.abc import Callable, Iterable, Iterator
from inspect import getdoc
from pathlib import Path

from msgspec.structs import replace

from atlas_retry.cli.hook.feedback import BlockLimits, TurnOpinion, answered, before_push
from atlas_retry.cli.hook.turns import BlockTally, HookAnswer
from atlas_retry.cli.run_output import batch_lines
from atlas_retry.events import AttemptFinished, Event, EventScope, GateFinished, ViolationsFound
from atlas_retry.guard import Judgement
from atlas_retry.history import learning, statistics
from atlas_retry.model import (
    AgentReply,
    Answer,
    Attempt,
    Budget,
    Change,
    ChangeStatus,
    Diagnostic,
    GateResult,
    Held,
    Kind,
    LeftBehind,
    OpenReview,
    Outcome,
    Region,
    ReplyStatus,
    Status,
    Validation,
    Verdict,
    Violation,
)
from atlas_retry.prompt import Brief, compose
from atlas_retry.prompt.ledger import ledger
from atlas_retry.reports import findings, phrases
from atlas_retry.reports.github import annotations
from atlas_retry.reports.handoff import handoff
from atlas_retry.reports.markdown import guard_summary
from atlas_retry.reports.screen.event_lines import lines_of
from atlas_retry.reports.screen.gate_lines import failure_lines, validation_summary
from atlas_retry.reports.screen.run_lines import outcome_summary
from atlas_retry.reports.subject import Subject
from atlas_retry.run.cascade import detect
from atlas_retry.run.decide import End, decide
from atlas_retry.run.one import BatchResult, Finished
from atlas_retry.settings import CascadeSettings
from tests.reports.samples import HELD, WORKSPACE, big_run
from tests.values import (
    CHEAT,
    GREEN,
    LIMITS,
    OTHER_RED,
    RED,
    attempt,
    gate,
    holding,
    progress,
    result,
    validation,
)

FOLDER = Path(__file__).parent / "pages"


OPEN = OpenReview(
    rule="special-case", path="a.py", line=3, detail="a branch on 7", run_id="r-0", attempt=1
)


def scenes(*scenes: tuple[str, Iterable[str]]) -> str:
    return "\n\n".join("\n".join((f"# {about}", *lines)) for about, lines in scenes)


def problem(message: str, test_id: str | None = None, **rest: object) -> Diagnostic:
    where = {"path": "tests/test_a.py", "region": Region(start_line=3)} | rest
    return Diagnostic(tool="pytest", message=message, test_id=test_id, **where)  # type: ignore[arg-type]


def failing(name: str, command: str, *diagnostics: Diagnostic, **rest: object) -> GateResult:
    given = {"kind": Kind.TEST, "error": "exit code 1", "exit_code": 1} | rest
    return GateResult(
        name=name,
        command=command,
        status=Status.FAILED,
        success=False,
        diagnostics=diagnostics,
        **given,  # type: ignore[arg-type]
    )


def exhausted(*results: GateResult, attempts: tuple[Attempt, ...]) -> Outcome:
    validation = Validation(results=results)
    return Outcome(
        run_id="r-1",
        verdict=Verdict.EXHAUSTED,
        workspace=replace(WORKSPACE, name="api", root="/w/my api"),
        baseline=validation,
        final=validation,
        attempts=attempts,
        final_error="test failed after 2 attempts",
        remedy="atlas log",
        cost_usd=1.25,
        escalation_required=True,
        start_snapshot="a0",
    )


def notes_of_a_run_that_improved_nothing() -> str:
    """What a person reads who goes on where a run gave up: nothing of it is in the workspace."""
    markup = problem("assert `1` == <b>2</b>\nmore", "tests/test_a.py::test_x[it's]")
    listed = [problem(f"problem {number}", path="a.py") for number in range(12)]
    attempts = (
        Attempt(
            number=1,
            agent="anthropic",
            model="sonnet",
            cost_usd=0.5,
            summary="a plus\nfor a minus",
            changes=tuple(
                Change(path=f"f{number}.py", status=ChangeStatus.MODIFIED) for number in range(12)
            ),
            fixed=("a",),
            introduced=("b", "c"),
            violations=(Violation(rule="tests/removed", path="t.py", detail="a test is gone"),),
        ),
        Attempt(number=2, agent="anthropic", error="calc.py failed its checks in 3 tries"),
    )
    results = (
        failing("unit", "pytest -q", markup, log_path="/logs/0"),
        failing("style", "ruff check", *listed, kind=Kind.LINT),
        failing("opinion", "", problem("say why", path=None, region=None), kind=Kind.REVIEW),
    )
    return handoff(exhausted(*results, attempts=attempts))


def notes_of_a_run_that_waits_for_a_person() -> str:
    """What a person reads if an attempt is kept, but something of it must be accepted."""
    held = (
        Held(rule="tests-changed", path="test_a.py", needed=True),
        Held(rule="special-case", path="a.py", in_place=True),
    )
    tried = Attempt(number=1, agent="scripted", cost_usd=0.5, held=held, kept=True)
    run = exhausted(failing("unit", "pytest"), attempts=(tried,))
    return handoff(replace(run, verdict=Verdict.NEEDS_REVIEW, open_reviews=(OPEN,)))


def ends_of_runs() -> str:
    """The last lines of `atlas retry`, however it ended."""
    nothing_left = replace(big_run(), attempts=(attempt(1, kept=True, since_start=()),))
    runs = (
        ("Two attempts of a large project fixed some of hundreds of problems", big_run(attempts=2)),
        ("Nothing of the kept attempt is left in the workspace", nothing_left),
        ("Each kind of answer of the guard, one of which the gates need", HELD),
        ("Fixed, and something is held", replace(HELD, verdict=Verdict.FIXED, remedy=None)),
    )
    return scenes(*((about, (line for line, _ in outcome_summary(run))) for about, run in runs))


def attempts_as_they_end() -> str:
    """What the screen says of an attempt; the event log's sentence stands first, behind `log:`."""
    hook = Violation(rule="hook-added", path="evil", detail="git would run it")
    outside = Violation(rule="outside-workspace", path="/h/.npmrc", detail="it was changed")
    tests = Held(rule="tests-changed", path="test_a.py", detail="an assertion is gone")
    review = Held(rule="special-case", path="a.py", line=3, detail="a branch", in_place=True)
    denied = ("Bash: curl", "Bash: curl", "Edit: ci.yml")
    events: tuple[tuple[str, Event], ...] = (
        ("Refused, held, and left for review", _answered(hook, tests, review)),
        ("What was refused cannot be restored", _answered(outside, lost=True)),
        ("Only a part of it can be restored", _answered(outside, hook, lost=True)),
        ("The agent was denied calls", AttemptFinished(result=attempt(denials=denied))),
        ("Green only with what is held", _finished(held=(replace(tests, needed=True),))),
        ("Nothing changed", AttemptFinished(result=attempt(2, None, changes=()))),
        ("All of it was reverted", AttemptFinished(result=attempt(1, None))),
        ("The guard ends the run", AttemptFinished(result=attempt(1, None, ends=Verdict.REJECTED))),
        ("Green, after tests had failed", _finished(after=GREEN, failed_step="test")),
        ("Green, after a linter had failed", _finished(after=GREEN, failed_step="lint")),
        ("No problem could be read", _finished()),
        ("Some fixed, some new", _finished(fixed=("a", "b"), introduced=("c",))),
    )
    shown = (
        (about, (f"log: {event.message}", *(line for line, _ in lines_of(event))))
        for about, event in events
    )
    return scenes(*shown)


def _answered(*answers: Answer, lost: bool = False) -> ViolationsFound:
    violations = tuple(one for one in answers if isinstance(one, Violation))
    held = tuple(one for one in answers if isinstance(one, Held))
    left = tuple(one.path for one in violations if one.path.startswith("/"))
    return ViolationsFound(violations=violations, held=held, left=left, rolled_back=lost)


def _finished(
    *, after: Validation | None = None, failed_step: str | None = None, **fields: object
) -> AttemptFinished:
    result = attempt(1, after, **fields) if after else attempt(**fields)  # type: ignore[arg-type]
    return AttemptFinished(result=result, scope=EventScope(failed_step=failed_step))


def problems_on_the_screen() -> str:
    """What failed, listed below the gates: tests first, a rule once, no endless line."""
    test = problem("1 != 2", "tests/test_a.py::test_b", region=Region(start_line=7))
    lint = Diagnostic(tool="ruff", message="unused", path="a.py", region=Region(start_line=1))
    rule = Diagnostic(tool="ruff", message="unused", rule_id="F401", path="b.py")
    words = Diagnostic(tool="mypy", message="wrong", rule_id="return-value", path="b.py")
    named = Diagnostic(tool="t", rule_id="AssertionError", message="AssertionError: 1 != 2")
    again = replace(lint, count=3, preexisting=True)
    failed = failing("all", "make", lint, rule, words, named, again, test, log_path="/logs/0")
    endless = failing("long", "x", Diagnostic(tool="x", message="m" * 999), error="e" * 999)
    whole = Validation(results=(endless, failed))
    lines = [line for line, _ in failure_lines(whole)]
    ended = [line for line, _ in lines_of(GateFinished(result=endless))]
    return scenes(("At the end", lines), ("When the gate ends", ended))


def causes_of_a_cascade() -> str:
    """What a batch says when it pauses because many workspaces fail alike."""

    def failed(name: str, *messages: str, error: str = "exit code 1", **rest: object) -> Outcome:
        found = (
            Diagnostic(tool="pytest", message=text, fingerprint=f"f:{text}") for text in messages
        )
        final = Validation(results=(failing("test", "check", *found, error=error, **rest),))
        where = replace(WORKSPACE, name=name, root=f"/srv/{name}")
        return replace(exhausted(attempts=()), run_id=name, workspace=where, final=final)

    lint = failed("web", "two", kind=Kind.LINT)
    locked = [
        replace(failed(name), final=Validation(), final_error=f"/srv/{name}/.git is locked")
        for name in "abc"
    ]
    batches = {
        "Three of four share a problem": [
            failed("api", "connection refused", "only here"),
            failed("web", "no module named x", "connection refused"),
            failed("ui", "connection refused"),
            failed("db", "no module named x"),
        ],
        "Two share one": [failed("x", "a"), failed("y", "a"), failed("z", "b")],
        "They share more than are quoted": [failed(name, *"abcde") for name in "xyz"],
        "No two share any": [failed("api", "one"), lint, failed("ui", "three")],
        "They did not start": locked,
        "A gate printed nothing": [failed(name, error="timed out") for name in "abc"],
        "The cause is long": [failed(name, "x\n" * 5000) for name in "abc"],
    }
    cascades = {about: detect(batch, CascadeSettings()) for about, batch in batches.items()}
    said = (
        (about, (f"{one.diagnosis}", f"{one.recommendation}")) for about, one in cascades.items()
    )
    return scenes(*said)


CHANGE = findings.of_change(
    (
        Violation(rule="git-state", path=".git/config", detail="pipe | and <b>"),
        Held(rule="test-changed", path="test_a.py", line=3, needed=True),
        Held(rule="special-cased", path="a.py", in_place=True),
        Answer(rule="emptied", path="b.py"),
    )
)


def the_guard_on_github() -> str:
    """What `atlas guard` leaves in a job on GitHub: a step summary, and annotations."""
    return scenes(
        ("The summary of a change with each answer", guard_summary(CHANGE).splitlines()),
        ("Its annotations", annotations(one.diagnostic for one in CHANGE).splitlines()),
        ("The summary of a change without any", guard_summary(()).splitlines()),
    )


def learning_records() -> str:
    """What `atlas learnings` lists, and shows of one record."""
    failed = Validation(
        results=(
            failing(
                "lint",
                "ruff check",
                Diagnostic(
                    tool="ruff", message="unused", rule_id="F401", path="a.py", fingerprint="f1"
                ),
                kind=Kind.LINT,
            ),
        )
    )
    first = attempt(1, failed, summary="took the import out\nof a.py")
    run = replace(exhausted(attempts=(first,)), baseline=failed, final=failed)
    green = replace(run, verdict=Verdict.FIXED, final_error=None, escalation_required=False)
    passed = replace(green, attempts=(attempt(1, GREEN, summary="moved the import"),))
    records = [record for record in map(learning.record_of, (run, passed)) if record]
    notes = (None, "re-export it")
    kept = tuple(
        learning.Kept(id=f"lr-2026-11-22-{number}", made_at="2026-11-22T10", note=note, record=one)
        for number, (one, note) in enumerate(zip(records, notes, strict=True))
    )
    return scenes(
        ("The list", learning.list_of(kept).splitlines()),
        ("Nothing to list", learning.list_of(()).splitlines()),
        *(("One of them", learning.page_of(one).splitlines()) for one in kept),
    )


def fix_rates_and_costs() -> str:
    """What `atlas stats` prints, and prints before the first run."""
    row = {"failed": 4, "fixed": 1, "share": 0.25}
    turns = row | {"cost_usd": 0.5, "duration_ms": 61_000.0}
    gates: statistics.Row = {"name": "test", "ran": 9, "flaky": 1, "mean_ms": 900.0, "max_ms": 2500}
    figures = statistics.Statistics(
        since="",
        runs=5,
        with_attempts=2,
        fixed=1,
        cost_usd=1.25,
        cost_per_fix_usd=1.25,
        unreported=1,
        duration_per_fix_ms=97_000.0,
        verdicts=({"name": "gave_up", "runs": 3}, {"name": "fixed", "runs": 2}),
        attempts=({"name": "1", **turns}, {"name": "2", **turns, "cost_usd": None}),
        agents=({"name": "scripted sonnet", **turns},),
        kinds=({"name": "test", **row},),
        gates=({"name": "unit", **row},),
        rules=({"name": "ruff F401", **row, "share": 1.0},),
        flaky=(gates,),
        slowest=(gates,),
    )
    none = replace(figures, runs=0, attempts=(), agents=(), kinds=(), gates=(), rules=())
    none = replace(none, flaky=(), slowest=())
    return scenes(
        ("After some runs", statistics.as_text(figures).splitlines()),
        ("Before the first one", statistics.as_text(none).splitlines()),
    )


def ends_of_validations() -> str:
    """The last lines of `atlas validate`, and the headline of its reports."""
    passed, failed = result("unit"), result("style", Status.FAILED, "a", kind=Kind.LINT)
    optional = replace(failed, required=False)
    skipped = result("types", Status.SKIPPED, kind=Kind.LINT)
    flaky, broken = result("hooks", Status.FLAKY), result("build", Status.BROKEN)
    ends = {
        "All gates pass": validation(passed),
        "One of them is flaky": validation(passed, flaky),
        "An optional gate fails": validation(optional, passed),
        "Some gates did not run, as the change does not concern them": replace(
            validation(passed, skipped), is_limited=True
        ),
        "A gate was skipped": validation(passed, skipped),
        "A gate fails": validation(failed, passed),
        "A gate fails, and one was skipped": validation(failed, skipped),
        "A gate could not run": validation(broken, passed),
        "Nothing that is required ran": validation(skipped),
        "There is no gate": validation(),
    }
    shown = [(about, _validated(ended)) for about, ended in ends.items()]
    waiting = _validated(validation(passed), OPEN)
    return scenes(*shown, ("All pass, and a person must review a change", waiting))


def _validated(ended: Validation, *asked: OpenReview) -> Iterator[str]:
    subject = Subject(result=ended, workspace=WORKSPACE, open_reviews=asked)
    yield f"headline: {phrases.headline(subject)}"
    summary = validation_summary(ended, "atlas retry . --ai-fix", is_reviewed=not asked)
    yield from (line for line, _ in summary if line)


def ends_of_batches() -> str:
    """The last lines of `atlas retry` of several workspaces."""

    def ended(name: str, remedy: str | None = None) -> Finished:
        run = exhausted(failing("unit", "pytest"), attempts=(attempt(),))
        where = replace(WORKSPACE, name=name, root=f"/w/{name}")
        run = replace(run, run_id=f"run-of-{name}", workspace=where, remedy=remedy)
        return Finished(opened=None, outcome=run)

    batches = {
        "Each has attempts to look at": [ended(name) for name in "ab"],
        "They wait for the same": [ended(name, "export KEY") for name in "abc"],
    }
    shown = (
        (about, (line for line, _ in batch_lines(BatchResult(finished=tuple(batch)))))
        for about, batch in batches.items()
    )
    return scenes(*shown)


def answers_to_a_turn() -> str:
    """What the Stop hook answers: to the agent if it is to continue, else to the user."""
    tests = problem("1 != 2", "tests/test_a.py::test_b", fingerprint="f")
    red, types = failing("unit", "pytest", tests), failing("types", "mypy", error="exit code 7")
    green, missing = result("unit"), replace(result("gone", Status.BROKEN), error="no such tool")
    optional = replace(types, required=False)
    held = Held(rule="decides", path="test_calc.py", line=8, detail="an expected value changed")
    hook = Violation(rule="hook-added", path=".git/hooks/x", detail="git would run it")
    noted = Answer(rule="suppressed", path="calc.py", line=4, detail="# noqa")
    plain = TurnOpinion(tree="0123456789abcdef", turn_id="TURN")
    seen = replace(plain, judgement=Judgement(answers=(held, noted)))
    strict = replace(plain, judgement=Judgement(answers=(hook, held)), hook="block")
    told = replace(plain, allowed=(held,), open_reviews=(OPEN,), again_ms=3000)
    turns = {
        "Everything passes": (plain, 0, [green]),
        "It passes after a turn that was sent back": (plain, 1, [green]),
        "Two gates fail": (plain, 0, [red, types]),
        "One failed before this turn as well": (replace(plain, before=(red,)), 0, [red, types]),
        "It may stay red": (replace(plain, before=(red,), older="tell"), 0, [red]),
        "The problems are in files of another session": (
            replace(plain, others=("tests/test_a.py",)),
            0,
            [red],
        ),
        "An optional gate fails": (plain, 0, [green, optional]),
        "A gate could not run": (plain, 0, [green, missing]),
        "The limit is reached": (plain, 3, [red]),
        "A change is held": (seen, 0, [green]),
        "It is to block": (strict, 0, [green]),
        "It blocks until the limit": (strict, 3, [green]),
        "The guard has not judged": (replace(plain, silent="no state"), 0, [green]),
        "Allowed, for review, and gates ran again": (told, 0, [green]),
    }
    shown = []
    for about, (opinion, sent, results) in turns.items():
        limits = BlockLimits(run=3, gates={"unit": 3, "types": 3})
        ended = validation(*results)
        words = (ended, opinion, BlockTally(sent=sent), limits, lambda one: str(one.error))
        shown.append((about, _replied(answered(*words)[0])))
    pushed = before_push(
        validation(red), strict, BlockTally(), lambda one: f"{one.error}\n<data>...</data>"
    )
    return scenes(*shown, ("It commits or pushes", _replied(pushed[0])))


def _replied(answer: HookAnswer) -> Iterator[str]:
    if answer.reason:
        yield f"{answer.decision}, to the agent:"
        yield from (f"  {line}".rstrip() for line in answer.reason.splitlines())
    if answer.system_message:
        yield "to the user:" if answer.continues is not False else "the end, to the user:"
        yield from (f"  {line}" for line in answer.system_message.splitlines())


def earlier_attempts_in_a_prompt() -> str:
    """What the next prompt says of the attempts before, one line each, and of what was held."""
    needed = Held(rule="tests-changed", path="test_a.py", needed=True)
    vain, case = (
        replace(needed, needed=False),
        Held(rule="special-case", path="a.py", in_place=True),
    )
    denied = attempt(denials=("Bash: curl x", "Bash: curl x", "Edit: ci.yml"))
    many = attempt(denials=tuple(f"Bash: {number}" for number in range(50)))
    refused = attempt(2, None, rolled_back=True, violations=CHEAT)
    lines = {
        "Calls were denied": (denied,),
        "Many were": (many,),
        "Held, and another one after it": (attempt(held=(needed,)), attempt(2)),
        "Refused, and an error": (refused, attempt(3, error="turn limit")),
        "Worse, and reverted": (attempt(1, worse=True),),
    }
    tried = ((about, ledger(attempts, 2_000).splitlines()) for about, attempts in lines.items())
    last = {
        "The last one is held, and needed": needed,
        "It is held, and not enough": vain,
        "It is left for review": case,
    }
    held = ((about, _next_prompt(one)) for about, one in last.items())
    return scenes(*tried, *held)


def _next_prompt(held: Held) -> Iterator[str]:
    history = (attempt(held=(held,)),)
    brief = Brief(validation=RED, read=lambda _: None, attempt=2, history=history)
    text = compose(brief).text
    yield from text[text.index("## Previous Attempt") :].splitlines()


def reasons_why_a_run_ends() -> str:
    """Why a run ended, and what to type next: it stands behind the verdict on every screen."""
    broken = replace(result("tests", Status.BROKEN), error="run was not found")
    silent = replace(result("taste", Status.BROKEN, kind=Kind.REVIEW), error="no answer")
    void = replace(broken, triage="target_missing", error="a.py is gone")
    no_key = AgentReply(status=ReplyStatus.UNAVAILABLE, error="no key", remedy="export KEY")
    skipped = result("sense", Status.SKIPPED, kind=Kind.REVIEW)
    optional = result("lint", kind=Kind.LINT, required=False)
    refused = attempt(1, None, rolled_back=True, violations=CHEAT)
    spent = attempt(1, None, changes=(), cost_usd=5.0)
    worse = (attempt(2, OTHER_RED), attempt(3))
    vain, held = holding(1, "t", needed=False), holding(1, "t")
    made = holding(1, "build/a.o", "build/b.o")
    made = replace(made, held=tuple(replace(one, by_hand=True) for one in made.held))
    stopped = replace(refused, ends=Verdict.REJECTED, remedy="by hand")
    stays = replace(stopped, left=(LeftBehind(path="x", states={}),))
    once = replace(LIMITS, budget=Budget(attempts=1))
    build = replace(LIMITS, gates=(gate("build", Kind.BUILD, max_retries=1),))
    no_try = replace(LIMITS, gates=(gate(max_retries=0),))
    own = replace(LIMITS, gates=(gate(max_retries=1),))
    ends = {
        "No agent was asked for": (progress(), replace(LIMITS, with_agent=False)),
        "No attempt is allowed": (progress(), replace(LIMITS, budget=Budget(attempts=0))),
        "No attempt of the gate is allowed": (progress(), no_try),
        "The gate's own limit is reached": (progress(attempt(1, OTHER_RED)), build),
        "The same, with something held": (progress(held, run_id="r"), own),
        "A gate cannot be run": (progress(baseline=validation(broken)), LIMITS),
        "Its command is unknown": (
            progress(baseline=validation(replace(broken, command=""))),
            LIMITS,
        ),
        "It says what to install": (
            progress(baseline=validation(replace(broken, remedy="python -m pip install a"))),
            LIMITS,
        ),
        "What it checks is gone": (progress(baseline=validation(void)), LIMITS),
        "Every required gate was skipped": (progress(baseline=validation(skipped)), LIMITS),
        "No gate is required": (progress(baseline=validation(optional)), LIMITS),
        "The agent is not available": (progress(refused=no_key), LIMITS),
        "The agent gave up": (progress(attempt(gave_up="it is wrong")), LIMITS),
        "It gave up after something was held": (
            progress(held, attempt(2, gave_up="it is wrong"), run_id="r"),
            LIMITS,
        ),
        "A reviewer does not answer": (progress(attempt(1, validation(silent))), LIMITS),
        "Two attempts were refused": (progress(refused, replace(refused, number=2)), LIMITS),
        "A refused attempt, then nothing": (
            progress(
                attempt(1, OTHER_RED, violations=CHEAT), replace(spent, number=2, cost_usd=None)
            ),
            LIMITS,
        ),
        "The guard ended it, and restored everything": (progress(stopped), LIMITS),
        "The guard ended it, and something is left": (progress(stays), LIMITS),
        "The money is spent": (progress(attempt(cost_usd=5.0)), LIMITS),
        "The rest is too little for another attempt": (progress(attempt(cost_usd=3.0)), LIMITS),
        "The money went into a failed attempt": (
            progress(replace(spent, error="cut off")),
            LIMITS,
        ),
        "The money went into denied calls": (
            progress(replace(spent, denials=("Bash(rm a)",))),
            LIMITS,
        ),
        "Green only with held changes": (progress(holding(1, "t", "u"), run_id="r"), once),
        "Green only with products that git ignores": (progress(made), once),
        "Held changes do not help": (progress(vain, *worse), LIMITS),
        "Held changes helped before the last attempts": (
            progress(held, *worse, run_id="r"),
            LIMITS,
        ),
        "All gates pass, and a person must review a change": (
            progress(baseline=GREEN, open_reviews=(OPEN,)),
            LIMITS,
        ),
        "Only ignored files were written": (
            progress(attempt(1, None, changes=(), unseen=("local.env",))),
            LIMITS,
        ),
    }
    return scenes(*((about, _end(decide(*so_far))) for about, so_far in ends.items()))


def _end(end: End | None) -> Iterator[str]:
    assert end is not None
    yield f"{end.verdict}: {end.reason}"
    yield from (f"next: {line}" for line in (end.remedy or "").splitlines())


MAKERS: tuple[Callable[[], str], ...] = (
    notes_of_a_run_that_improved_nothing,
    notes_of_a_run_that_waits_for_a_person,
    ends_of_runs,
    attempts_as_they_end,
    problems_on_the_screen,
    causes_of_a_cascade,
    the_guard_on_github,
    learning_records,
    fix_rates_and_costs,
    ends_of_validations,
    ends_of_batches,
    answers_to_a_turn,
    earlier_attempts_in_a_prompt,
    reasons_why_a_run_ends,
)
PAGES = {FOLDER / f"{make.__name__.replace('_', '-')}.txt": make for make in MAKERS}


def page(make: Callable[[], str]) -> str:
    """What a page holds: its first line, and the text."""
    return f"{getdoc(make)}\n\n{make().strip()}\n"
