"""A workspace of a few words, with gates, a guard and an agent that do what a test says."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct, field
from msgspec.structs import replace

from atlas_retry.events import Event
from atlas_retry.guard import Judgement
from atlas_retry.model import (
    AgentReply,
    AgentRequest,
    Budget,
    Change,
    ChangeStatus,
    Content,
    Contents,
    Gate,
    GateResult,
    Lost,
    OpenReview,
    Outcome,
    ReplyStatus,
    Status,
    Validation,
    Violation,
    WorkspaceFacts,
)
from atlas_retry.run.effects import Effects
from atlas_retry.run.effects.agent import AgentEffects
from atlas_retry.run.effects.gates import GateEffects
from atlas_retry.run.effects.git import GitEffects
from atlas_retry.run.effects.guard import GuardEffects
from atlas_retry.run.effects.open_run import LastTurn, OpenRun
from atlas_retry.run.effects.tree import TreeEffects
from atlas_retry.run.held import for_review
from atlas_retry.run.progress import Limits, Progress, Run
from atlas_retry.workspace.snapshot.snapshots import Snapshot
from tests.values import gate, result, validation

Files = dict[str, str]
Said = Callable[[Files], Validation]


def passes_its_test(files: Files) -> bool:
    """The source does what its test asks, or the test asks for nothing."""
    return files["code"] == "right" or files.get("test") == "weak"


def validated(files: Files) -> Validation:
    """Of the one gate there is."""
    return validation(_result(passes_its_test(files), files))


def _result(passes: bool, files: Files) -> GateResult:
    if passes:
        return result()
    return result("tests", Status.FAILED, f"code is {files['code']}")


def words(text: str) -> Content:
    """A file as the guard and the loop hand it around."""
    return ("100644", text.encode())


class World(Struct, kw_only=True):
    """What is there, what will be done to it, and what was done."""

    files: Files = field(default_factory=lambda: {"code": "wrong", "test": "strict"})
    turns: list[dict[str, str]] = field(default_factory=list)
    """What the agent writes, turn by turn."""
    judgements: list[Judgement] = field(default_factory=list)
    gates_say: Said = validated
    gates_write: Files = field(default_factory=dict)
    rewritten: tuple[Violation, ...] = ()
    """What the guard says of files that gates changed."""
    unseen: Files = field(default_factory=dict)
    """What a green may hang on and git does not hold: as it was before the turns."""
    reply: AgentReply = AgentReply(status=ReplyStatus.DONE)
    turn_s: float = 0.0
    """How long a turn takes; nothing else takes any time."""
    elapsed_s: float = 0.0
    done: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    kept: list[Files] = field(default_factory=list)
    """The snapshots; their ids are their positions."""
    asides: list[tuple[Gate, ...]] = field(default_factory=list)
    unseen_asked: list[frozenset[str]] = field(default_factory=list)
    """The ignored files about which it was asked what a green hangs on."""
    passes_staged: Collection[str] = ()
    """Names of gates that pass once the fix is staged."""
    unheld: Collection[str] = ()
    """Files that no snapshot holds."""
    uncached: dict[str, Gate] = field(default_factory=dict)
    """Gates with the cache of their tool switched off, by name, where it was used."""

    def effects(self, run: Run) -> Effects:
        """The world as the loop sees it; nothing of a real run is behind it."""
        fields = dict.fromkeys(OpenRun.__struct_fields__)
        used = {"run": run, "emit": self.events.append, "last_turn": LastTurn()}
        return _InWorld(of=OpenRun(**cast("Any", fields | used)), world=self)

    def snapshot(self, name: str) -> Snapshot:
        is_as_left = name.isdecimal()
        assert not (is_as_left and f"snapshot {name}" in self.done), "what the turn left is gone"
        self.done.append(f"snapshot {name}")
        self.kept.append({p: text for p, text in self.files.items() if p not in self.unheld})
        return Snapshot(id=str(len(self.kept) - 1), tree=repr(sorted(self.files.items())))

    def changes(self, before: str, after: str) -> tuple[Change, ...]:
        old, new = self.kept[int(before)], self.kept[int(after)]
        paths = sorted(path for path in {*old, *new} if old.get(path) != new.get(path))
        return tuple(Change(path=path, status=ChangeStatus.MODIFIED) for path in paths)

    def restore(self, target: str, _: str, paths: Collection[str] | None) -> None:
        self.done.append(f"restore {'all' if paths is None else ', '.join(sorted(paths))}")
        wanted = self.kept[int(target)]
        chosen = {*wanted, *self.files} if paths is None else paths
        self.write({p: words(wanted[p]) if p in wanted else None for p in chosen})

    def read(self, snapshot: str, paths: Collection[str]) -> Contents:
        there = self.kept[int(snapshot)]
        return {path: words(there[path]) if path in there else None for path in paths}

    def write(self, files: Contents) -> None:
        self.files = _with(self.files, files)

    def validate(self, _: Validation | None) -> Validation:
        self.done.append("validate")
        said_of = self.gates_say(self.files)
        self.files |= self.gates_write
        return said_of

    def fix(self, _: Validation) -> tuple[str, ...]:
        return ()

    def ask(self, _: AgentRequest) -> AgentReply:
        self.done.append("ask")
        self.elapsed_s += self.turn_s
        self.files |= self.turns.pop(0) if self.turns else {}
        return self.reply

    def judge(self, _: str, __: str, ___: Progress) -> Judgement:
        self.done.append("judge")
        return self.judgements.pop(0) if self.judgements else Judgement()

    def aside(self, gates: Sequence[Gate], files: Contents, previous: Validation) -> Validation:
        self.done.append(f"aside {', '.join(sorted(files))}")
        self.asides.append(tuple(gates))
        assert len(previous.results) == len(gates)
        names = {gate.name for gate in gates}
        seen = self.gates_say(_with(self.files, files))
        return validation(*(r for r in seen.results if r.name in names))


class _TreeInWorld(TreeEffects, frozen=True, kw_only=True):
    world: World

    def snapshot(self, name: str) -> Snapshot:
        return self.world.snapshot(name)

    def changes(self, before: str, after: str) -> tuple[Change, ...]:
        return self.world.changes(before, after)

    def restore(self, target: str, expected: str, paths: Collection[str] | None) -> None:
        self.world.restore(target, expected, paths)

    def read(self, snapshot: str, paths: Collection[str]) -> Contents:
        return self.world.read(snapshot, paths)

    def write(self, files: Contents) -> None:
        self.world.write(files)

    def outdate(self, paths: Iterable[str]) -> None:
        pass

    def outdate_builds(self) -> None:
        pass

    def refresh(self, changes: Iterable[Change]) -> None:
        pass

    def lost(self, _start: str, _left: str, _theirs: Collection[str]) -> tuple[Lost, ...]:
        return ()

    def unseen(
        self, _start: str, _left: str, _end: str, paths: Iterable[str], _green: Validation
    ) -> Contents:
        self.world.unseen_asked.append(frozenset(paths))
        return {path: words(text) for path, text in self.world.unseen.items()}

    def kept(self, name: str) -> str | None:
        taken = [step for step in self.world.done if step.startswith("snapshot ")]
        named = [number for number, step in enumerate(taken) if step == f"snapshot {name}"]
        return str(named[-1]) if named else None


class _GatesInWorld(GateEffects, frozen=True, kw_only=True):
    world: World

    def unproven(self, _progress: Progress) -> tuple[str, ...]:
        """No fault is planted here."""
        return ()

    def validate(self, previous: Validation | None) -> Validation:
        return self.world.validate(previous)

    def fix(self, failed: Validation) -> tuple[str, ...]:
        return self.world.fix(failed)

    def alone(self, gate: Gate, previous: GateResult) -> GateResult:
        return self.world.aside((gate,), {}, Validation(results=(previous,))).results[0]

    def uncached(self, gate: Gate, _result: GateResult) -> Gate | None:
        return self.world.uncached.get(gate.name)

    def aside(
        self, chosen: Sequence[Gate], files: Contents, previous: Validation, _reason: str
    ) -> Validation:
        return self.world.aside(chosen, files, previous)

    def staged(self, paths: Iterable[str]) -> tuple[str, ...]:
        return tuple(paths) if self.world.passes_staged else ()

    def as_if_staged(
        self, asked: Sequence[Gate], _paths: Iterable[str], previous: Validation
    ) -> Validation:
        both = zip(asked, previous.results, strict=True)
        passes = self.world.passes_staged
        return validation(*(result(g.name) if g.name in passes else was for g, was in both))


class _AgentInWorld(AgentEffects, frozen=True, kw_only=True):
    world: World

    def unavailable(self) -> None:
        return None

    def request(self, _progress: Progress, number: int) -> tuple[AgentRequest, str]:
        request = AgentRequest(prompt="?", workspace="/w", scratch="/s", attempt=number)
        return request, "/s/prompt.md"

    def ask(self, request: AgentRequest) -> AgentReply:
        return self.world.ask(request)


class _GitInWorld(GitEffects, frozen=True, kw_only=True):
    world: World

    def pin(self, _snapshot: str) -> None:
        """Nothing here has objects of git."""

    def how_to_undo(self) -> tuple[str, ...]:
        return ()

    def undo_git(self, number: int, *, is_abandoned: bool = False) -> None:
        pass

    def changed_under(self, before: str, after: str) -> None:
        pass


class _GuardInWorld(GuardEffects, frozen=True, kw_only=True):
    world: World

    def seal(self, _progress: Progress) -> None:
        self.world.done.append("seal")

    def judge(self, before: str, after: str, progress: Progress) -> Judgement:
        return self.world.judge(before, after, progress)

    def rewritten(self, *_: object) -> tuple[Violation, ...]:
        return self.world.rewritten

    def made_again(self) -> frozenset[str]:
        return frozenset()


class _InWorld(Effects, kw_only=True):
    world: World

    @property
    def tree(self) -> TreeEffects:
        return _TreeInWorld(of=self.of, world=self.world)

    @property
    def gates(self) -> GateEffects:
        return _GatesInWorld(of=self.of, world=self.world)

    @property
    def agent(self) -> AgentEffects:
        return _AgentInWorld(of=self.of, world=self.world)

    @property
    def git(self) -> GitEffects:
        return _GitInWorld(of=self.of, world=self.world)

    @property
    def guard(self) -> GuardEffects:
        return _GuardInWorld(of=self.of, world=self.world)

    def elapsed_s(self) -> float:
        return self.world.elapsed_s

    def open_reviews(self, progress: Progress) -> tuple[OpenReview, ...]:
        return tuple(
            OpenReview(
                rule=one.rule,
                path=one.path,
                line=one.line,
                detail=one.detail,
                run_id=progress.run_id,
                attempt=attempt.number,
            )
            for attempt in progress.attempts
            for one in for_review(attempt)
        )

    def learn(self, _outcome: Outcome) -> str | None:
        return None

    def account(self, progress: Progress) -> Progress:
        return replace(progress, open_reviews=self.open_reviews(progress))


def _with(files: Files, changed: Mapping[str, Content | None]) -> Files:
    there = {path: text for path, text in files.items() if path not in changed}
    return there | {path: file[1].decode() for path, file in changed.items() if file}


def run(attempts: int | None = 3, gates: tuple[Gate, ...] = (gate(max_retries=9),)) -> Run:
    """What a run may spend in such a world."""
    return Run(
        run_id="r",
        workspace=WorkspaceFacts(name="w", root="/w"),
        limits=Limits(budget=Budget(attempts=attempts), gates=gates, with_agent=True),
    )
