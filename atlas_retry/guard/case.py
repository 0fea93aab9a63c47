"""Input and output of the guard, the rulings of its rules, and what is new in a text."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Literal, TypeVar

from msgspec import Struct, field

from atlas_retry.guard import places
from atlas_retry.model import (
    CHECKERS,
    Answer,
    AnswerWord,
    Content,
    Contents,
    Gate,
    GateResult,
    GitFacts,
    Held,
    LeftBehind,
    Tree,
    Verdict,
    Violation,
)
from atlas_retry.patterns import regex
from atlas_retry.text.units import bounded

_T = TypeVar("_T")


Undo = Literal["file", "attempt", "nothing"]
"""What undoes a refused change: restoring the file or the whole attempt; nothing ends the run."""


class Ruling(Struct, frozen=True, kw_only=True):
    """The answer of one mechanism for one path, and what undoes or proves the change."""

    path: str
    mechanism: str
    """The module, and what it found, for `atlas guard --why`."""
    answer: Answer | None = None
    """None if the change is kept."""
    rewrite: bytes | None = None
    """The file without the held part, if only a part is held."""
    as_before: Contents = field(default_factory=dict)
    """Earlier files with which a run must confirm what is kept."""
    undo: Undo = "file"

    @property
    def word(self) -> AnswerWord | None:
        return self.answer.word if self.answer else None


_MAX_DETAIL_CHARS = 300


def answered(
    word: AnswerWord, *, rule: str, path: str, detail: str, line: int | None = None
) -> Answer:
    """The answer; its quoted code is shortened, and has no control characters."""
    shown = "".join(char if char.isprintable() else " " for char in detail)
    detail = bounded(shown, _MAX_DETAIL_CHARS)
    match word:
        case AnswerWord.REFUSED:
            return Violation(rule=rule, path=path, line=line, detail=detail)
        case AnswerWord.NOTED:
            return Answer(rule=rule, path=path, line=line, detail=detail)
    left = word is AnswerWord.REVIEW
    return Held(rule=rule, path=path, line=line, detail=detail, in_place=left)


class Judgement(Struct, frozen=True, kw_only=True):
    """The answers about one change. All other changes are kept."""

    answers: tuple[Answer, ...] = ()
    """In the order of `AnswerWord`."""
    restore: tuple[str, ...] | None = ()
    """Refused or held paths to restore; None to restore the whole attempt."""
    reinstate: tuple[str, ...] = ()
    """Refused installed files and tools to put back, which no snapshot holds."""
    rewrite: Mapping[str, Content] = field(default_factory=dict)
    """Files without the held part, such as a suppression or a test in a source."""
    as_before: Contents = field(default_factory=dict)
    """Earlier versions that the gates must also pass with: kept files that decide (None: absent),
    and sources with their earlier inline tests."""
    adds_dependencies: bool = False
    """Whether what is reinstated may be what a changed manifest names."""
    ends: Verdict | None = None
    """Verdict that ends the run at once, because the change cannot be restored."""
    remedy: str | None = None
    left: tuple[LeftBehind, ...] = ()
    """Refused changes that cannot be restored."""
    unseen: tuple[str, ...] = ()
    """Ignored files that the turn wrote; the gates must also pass without them."""
    blocks: bool = True
    """False: findings are reported, but nothing is restored."""

    @property
    def refused(self) -> tuple[Violation, ...]:
        return tuple(one for one in self.answers if isinstance(one, Violation))

    @property
    def held(self) -> tuple[Held, ...]:
        return tuple(one for one in self.answers if isinstance(one, Held))

    @property
    def noted(self) -> tuple[Answer, ...]:
        return tuple(one for one in self.answers if one.word is AnswerWord.NOTED)

    @property
    def held_paths(self) -> tuple[str, ...]:
        """Paths of held changes that are restored."""
        return tuple(dict.fromkeys(h.path for h in self.held if not h.in_place))


class OutsideChange(Struct, frozen=True, kw_only=True):
    """One file that changed in a place outside the workspace."""

    place: str
    path: str
    """POSIX path relative to the place."""

    def __str__(self) -> str:
        return f"{self.place.rstrip('/')}/{self.path}"


class Tool(Struct, frozen=True, kw_only=True):
    """An executable of a gate that has moved or changed."""

    name: str
    path: str
    """Present path of the name; empty if there is none."""


class Case(Struct, frozen=True, kw_only=True):
    """One change to judge: two trees, facts outside them, and what the user allows."""

    before: Tree
    after: Tree
    changed: tuple[str, ...]
    """Paths that may differ."""
    root: str = ""
    """Path of the workspace on this machine; empty if unknown."""
    gates: tuple[Gate, ...] = ()
    failing: tuple[GateResult, ...] = ()
    """Gates that failed before the change; empty if unknown."""
    protect: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    """Configuration files of atlas in the workspace, in addition to the well-known ones."""
    in_run: bool = False
    """Whether it is an attempt of a run, not any change."""
    ignored: frozenset[str] = frozenset()
    """Paths that git ignores: neither held nor refused; the gates must also pass without them."""
    outputs: frozenset[str] = frozenset()
    """Data files that gates wrote in this run."""
    notes_reviews: bool = False
    """Whether changes for review are only noted."""
    mentions: Callable[[Collection[str]], Mapping[str, frozenset[str]]] = lambda _: {}
    """Returns for each text the files of the tree before the change that contain it."""
    git_before: GitFacts = field(default_factory=dict)
    git_after: GitFacts = field(default_factory=dict)
    outside: tuple[OutsideChange, ...] = ()
    tools: tuple[Tool, ...] = ()
    nested: tuple[str, ...] = ()
    """Changed `.git` of repositories inside the workspace."""
    modes: tuple[str, ...] = ()
    """Folders with changed permissions."""
    installed: tuple[str, ...] = ()
    """Changed files of installed dependencies."""
    restorable: frozenset[str] = frozenset()
    """Those of `installed` and of `tools` that the caller puts back if they are refused."""
    added: frozenset[str] = frozenset()
    """New files among `installed` and `outside`, by absolute path."""


class Delta(Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """One path that differs. Modes as in `model.Change`; None if it does not exist."""

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

    def both(self, read: Callable[[str, bytes], _T]) -> tuple[_T, _T]:
        """What a function reads in the file before and after; one that does not exist is empty."""
        return read(self.path, self.before or b""), read(self.path, self.after or b"")

    @cached_property
    def added_lines(self) -> tuple[tuple[int, str], ...]:
        """Number and text of the lines that are new or more frequent."""
        known = self.old_text.splitlines()
        return tuple(more_often(enumerate(self.new_text.splitlines(), 1), known))


def more_often(texts: Iterable[tuple[int, str]], known: Iterable[str]) -> Iterator[tuple[int, str]]:
    """The numbered texts that exceed the known ones, ignoring indentation."""
    left = Counter(map(str.strip, known))
    for number, text in texts:
        left[text.strip()] -= 1
        if left[text.strip()] < 0:
            yield number, text


def unpaired(
    old: Iterable[_T], new: Iterable[_T], same: Callable[[_T, _T], bool]
) -> tuple[list[_T], list[_T]]:
    """What is left of both after pairing each old item with the first equal new one."""
    lost, came = list[_T](), list(new)
    for one in old:
        kept = next((other for other in came if same(one, other)), None)
        if kept is None:
            lost.append(one)
        else:
            came.remove(kept)
    return lost, came


_PRINTED = regex(r"""([\w.@/-]+\.[A-Za-z]\w*)(?::|", line )(\d{1,6})\b""")


class Scene(Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """A case with its differences."""

    case: Case
    deltas: tuple[Delta, ...]

    @cached_property
    def old_paths(self) -> frozenset[str]:
        return frozenset(self.case.before.paths())

    @cached_property
    def commands(self) -> tuple[str, ...]:
        """Command lines of all known gates, including failing ones."""
        lines = [gate.run for gate in self.case.gates] + [r.command for r in self.case.failing]
        return tuple(dict.fromkeys(line for line in lines if line))

    @cached_property
    def failed_runs(self) -> tuple[GateResult, ...]:
        """The failing gates that ran the code, and did not only read it."""
        return tuple(result for result in self.case.failing if result.kind not in CHECKERS)

    @cached_property
    def printed(self) -> tuple[tuple[str, int], ...]:
        """Paths with line numbers in the output of failed runs, such as in tracebacks."""
        output = "\n".join(result.stdout + result.stderr for result in self.failed_runs)
        return tuple((path, int(line)) for path, line in _PRINTED.findall(output))

    @cached_property
    def changed(self) -> dict[str, Delta]:
        return {delta.path: delta for delta in self.deltas}

    def old_text(self, path: str) -> str:
        return (self.case.before.read(path) or b"").decode("utf-8", "replace")

    def new_text(self, path: str) -> str:
        delta = self.changed.get(path)
        return self.old_text(path) if delta is None else delta.new_text


def scene(case: Case) -> Scene:
    """Read the differences of a case once."""
    before, after = case.before, case.after
    deltas = (
        Delta(
            path=path,
            before=before.read(path),
            after=after.read(path),
            old_mode=before.mode(path),
            new_mode=after.mode(path),
        )
        for path in case.changed
    )
    moved = (d for d in deltas if (d.before, d.old_mode) != (d.after, d.new_mode))
    return Scene(case=case, deltas=tuple(moved))


Seen = tuple[int | None, str]
"""Line number and what was done."""
REMARK = regex(r"^\s*(#(?![!\[]|\s*define)|//|\*(\s|/|$)|/\*)")


def pattern_of(path: str, spellings: Mapping[str, str]) -> re.Pattern[str]:
    """The pattern for all languages and the file's own."""
    wanted = (spellings.get(key, "(?!)") for key in ("", places.family(path)))
    either = "|".join(f"(?:{spelling}\n)" for spelling in wanted)
    return re.compile(either, re.VERBOSE | re.MULTILINE)


def lines(spellings: Mapping[str, str], detail: str) -> Callable[[Delta, Scene], Iterator[Seen]]:
    """A rule on new lines."""

    def check(delta: Delta, _: Scene) -> Iterator[Seen]:
        pattern = pattern_of(delta.path, spellings)
        for number, line in delta.added_lines:
            if pattern.search(line) and not REMARK.match(line):
                yield number, f"{detail}: `{line.strip()[:80]}`"

    return check


def newly(delta: Delta, spellings: Mapping[str, str]) -> Iterator[int]:
    """Lines of matches that are more frequent in the new source."""
    pattern = pattern_of(delta.path, spellings)
    now = [(match.start(), match[0]) for match in pattern.finditer(delta.new_text)]
    known = [match[0] for match in pattern.finditer(delta.old_text)] if now else []
    for start, _ in more_often(now, known):
        yield delta.new_text.count("\n", 0, start) + 1
