"""What the guard looks at, and what a rule answers. Values only, no rule."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from typing import TypeVar

from msgspec import Struct, field

from atlas_retry.model import Gate, GateResult, GitFacts, Tree


class Answer(StrEnum):
    """What becomes of a change that a rule speaks of. What no rule speaks of is kept."""

    HELD = "held"
    """It decides what passes: restored, and shown to a person."""
    REVIEW = "review"
    """It stays, but only a person can call the result good."""
    REFUSED = "refused"
    NOTED = "noted"


class RuleFinding(Struct, frozen=True, kw_only=True):
    """What a rule saw."""

    rule: str
    path: str
    line: int | None = None
    detail: str
    """What was done, in words that follow the path."""
    answer: Answer


class OutsideChange(Struct, frozen=True, kw_only=True):
    """One file that changed in a place outside the workspace."""

    place: str
    path: str
    """POSIX, relative to the place."""

    def __str__(self) -> str:
        return f"{self.place.rstrip('/')}/{self.path}"


class Tool(Struct, frozen=True, kw_only=True):
    """An executable that a gate would find elsewhere now, or other than it was."""

    name: str
    path: str
    """Where the name leads now; empty when it leads nowhere."""


class Case(Struct, frozen=True, kw_only=True):
    """One change to be judged: two trees, what is beside them, and what the user allows."""

    before: Tree
    after: Tree
    changed: tuple[str, ...] | None = None
    """Paths that may differ, where the caller knows; None: all are compared."""
    gates: tuple[Gate, ...] = ()
    failing: tuple[GateResult, ...] = ()
    """What failed before the change. Empty: unknown."""
    protect: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    """Configuration files of atlas within the workspace, beside the well-known ones."""
    in_run: bool = False
    """An attempt of a run is judged, not any change that somebody made."""
    ignored: frozenset[str] = frozenset()
    """Paths that git ignores: neither held nor refused; a green is confirmed without them."""
    outputs: frozenset[str] = frozenset()
    """Data that gates wrote in this run: theirs, whoever ran them."""
    notes_reviews: bool = False
    """What is for review is only noted."""
    mentions: Callable[[Collection[str]], Mapping[str, frozenset[str]]] = lambda _: {}
    """The files of the tree before the change that hold a text, for each of the texts given."""
    git_before: GitFacts = field(default_factory=dict)
    git_after: GitFacts = field(default_factory=dict)
    outside: tuple[OutsideChange, ...] = ()
    tools: tuple[Tool, ...] = ()
    nested: tuple[str, ...] = ()
    """`.git` of repositories within the workspace that the change touched."""
    modes: tuple[str, ...] = ()
    """Folders whose permissions the change moved."""
    installed: tuple[str, ...] = ()
    """Files of installed dependencies that the change touched."""
    added: frozenset[str] = frozenset()
    """Of these and of what is outside, by absolute path, files that were not there before."""
    future: tuple[str, ...] = ()
    """Files whose modification time was moved into the future: build tools trust it."""


class Delta(Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """One path that differs. Modes as in `model.Change`; None where there is nothing."""

    path: str
    before: bytes | None
    after: bytes | None
    old_mode: str | None
    new_mode: str | None

    @property
    def is_added(self) -> bool:
        return self.old_mode is None

    @property
    def is_text(self) -> bool:
        """Whether both sides are ordinary files without binary content."""
        special = {self.old_mode, self.new_mode} & {"120000", "160000"}
        return not special and b"\0" not in (self.before or b"") + (self.after or b"")

    @cached_property
    def old_text(self) -> str:
        return (self.before or b"").decode("utf-8", "replace")

    @cached_property
    def new_text(self) -> str:
        return (self.after or b"").decode("utf-8", "replace")

    @cached_property
    def added_lines(self) -> tuple[tuple[int, str], ...]:
        """Number and text of the lines that the file before has not, or has less often."""
        known = self.old_text.splitlines()
        return tuple(more_often(enumerate(self.new_text.splitlines(), 1), known))

    @cached_property
    def loses_lines(self) -> bool:
        """Whether the file before has lines that are gone."""
        known = self.new_text.splitlines()
        return any(more_often(enumerate(self.old_text.splitlines(), 1), known))


def more_often(texts: Iterable[tuple[int, str]], known: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Those of numbered texts that there are more of than are known; indentation is nothing."""
    left = Counter(map(str.strip, known))
    for number, text in texts:
        left[text.strip()] -= 1
        if left[text.strip()] < 0:
            yield number, text


_T = TypeVar("_T")


def unpaired(
    old: Iterable[_T], new: Iterable[_T], same: Callable[[_T, _T], bool]
) -> tuple[list[_T], list[_T]]:
    """What is left of both where each old one goes with the first new one that is the same."""
    lost, came = list[_T](), list(new)
    for one in old:
        kept = next((other for other in came if same(one, other)), None)
        if kept is None:
            lost.append(one)
        else:
            came.remove(kept)
    return lost, came


_K = TypeVar("_K", str, tuple[str, ...])


def differing(before: Mapping[_K, object], after: Mapping[_K, object]) -> list[_K]:
    """Keys that have another value after than before, or are only in one of the two; sorted."""
    keys = before.keys() | after.keys()
    return sorted(key for key in keys if before.get(key) != after.get(key))


class Scene(Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """A case with its differences read."""

    case: Case
    deltas: tuple[Delta, ...]

    @cached_property
    def old_paths(self) -> frozenset[str]:
        return frozenset(self.case.before.paths())

    @cached_property
    def commands(self) -> tuple[str, ...]:
        """Lines of all gates known, the failing ones included."""
        lines = [gate.run for gate in self.case.gates] + [r.command for r in self.case.failing]
        return tuple(dict.fromkeys(line for line in lines if line))

    def old_text(self, path: str) -> str:
        return (self.case.before.read(path) or b"").decode("utf-8", "replace")


def scene(case: Case) -> Scene:
    """Read the differences of a case once."""
    before, after = case.before, case.after
    paths: Iterable[str] = (
        case.changed if case.changed is not None else sorted({*before.paths(), *after.paths()})
    )
    deltas = (
        Delta(path=path, before=before.read(path), after=after.read(path),
              old_mode=before.mode(path), new_mode=after.mode(path))
        for path in paths
    )  # fmt: skip
    moved = (d for d in deltas if (d.before, d.old_mode) != (d.after, d.new_mode))
    return Scene(case=case, deltas=tuple(moved))
