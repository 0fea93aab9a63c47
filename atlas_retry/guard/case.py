"""What the guard looks at and what it answers with: values only, no rule."""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from msgspec import Struct, field

from atlas_retry.guard.globs import Globs
from atlas_retry.model import Gate, GateResult, GitFacts, Kind, Tree


class OutsideChange(Struct, frozen=True, kw_only=True):
    """One file that changed in a place outside the workspace."""

    place: str
    """The place as the user named it: a home directory, a sibling folder."""
    path: str
    """POSIX, relative to the place."""


class Tool(Struct, frozen=True, kw_only=True):
    """An executable that a gate resolves to, sealed at the start and looked up again."""

    name: str
    before: str
    """Digest of path and content."""
    after: str
    path: str
    """Where the name leads now; empty when it leads nowhere."""


class OutOfTimeError(Exception):
    """The time for judging was up at a file; its only argument."""


def _never() -> bool:
    return False


class Case(Struct, frozen=True, kw_only=True):
    """One change to be judged: two trees, what is beside them, and what the user allows."""

    before: Tree
    after: Tree
    changed: tuple[str, ...] | None = None
    """Paths that may differ, where the caller knows; None: all are compared."""
    gates: tuple[Gate, ...] = ()
    failing: tuple[GateResult, ...] = ()
    """What failed before the change: its subject may be fixed. Empty: unknown."""
    protect: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    """Configuration files of atlas within the workspace, beside the well-known ones."""
    git_before: GitFacts = field(default_factory=dict)
    git_after: GitFacts = field(default_factory=dict)
    outside: tuple[OutsideChange, ...] = ()
    tools: tuple[Tool, ...] = ()
    future: tuple[str, ...] = ()
    """Files whose modification time was moved into the future: build tools trust it."""
    leftovers: tuple[str, ...] = ()
    """Processes that the change left running on the workspace, described for a person."""
    is_over: Callable[[], bool] = _never
    """Whether the time for judging is up."""


class Delta(Struct, frozen=True, kw_only=True):
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
    def is_deleted(self) -> bool:
        return self.new_mode is None

    @property
    def is_file(self) -> bool:
        """Whether neither side is a link or a submodule."""
        return not {self.old_mode, self.new_mode} & {"120000", "160000"}

    @property
    def old_text(self) -> str:
        return (self.before or b"").decode("utf-8", "surrogateescape")

    @property
    def new_text(self) -> str:
        return (self.after or b"").decode("utf-8", "surrogateescape")


class Scene(Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """A case with its differences read; what several rules need is worked out once."""

    case: Case
    deltas: tuple[Delta, ...]

    @cached_property
    def texts(self) -> tuple[Delta, ...]:
        """Differences in content of ordinary text files."""
        return tuple(d for d in self.deltas if d.is_file and d.before != d.after and _is_text(d))

    @property
    def files(self) -> Iterator[Delta]:
        """The same, one by one while there is time. Raises OutOfTimeError."""
        for delta in self.texts:
            self.go_on(delta.path)
            yield delta

    def go_on(self, path: str) -> None:
        """Raises OutOfTimeError when the time for judging is up."""
        if self.case.is_over():
            raise OutOfTimeError(path)

    @cached_property
    def old_paths(self) -> frozenset[str]:
        return frozenset(self.case.before.paths())

    @cached_property
    def new_paths(self) -> frozenset[str]:
        return frozenset(self.case.after.paths())

    @cached_property
    def commands(self) -> tuple[str, ...]:
        """Lines of all gates known, the failing ones included."""
        lines = [gate.run for gate in self.case.gates] + [r.command for r in self.case.failing]
        return tuple(dict.fromkeys(line for line in lines if line))

    @cached_property
    def failing(self) -> frozenset[str]:
        """Words for what failed: kinds, and `type`, `coverage` by the command."""
        words = {result.kind.value for result in self.case.failing}
        for result in self.case.failing:
            words |= {word for word, names in _SUBJECTS.items() if _names(result.command, names)}
        return frozenset(words)

    @property
    def tests_may_follow(self) -> bool:
        """Whether tests run among what failed, or nobody knows what failed."""
        about_tests = {Kind.TEST, Kind.PRE_COMMIT, Kind.BUILD, Kind.CUSTOM, "coverage"}
        return not self.case.failing or bool(self.failing & about_tests)

    def old(self, path: str) -> bytes | None:
        self.go_on(path)
        return self.case.before.read(path)

    def new(self, path: str) -> bytes | None:
        self.go_on(path)
        return self.case.after.read(path)


_SUBJECTS = {
    "type": ("mypy", "pyright", "tsc", "pyre", "pytype", "ty", "basedpyright"),
    "coverage": ("coverage", "--cov", "--coverage", "nyc", "c8", "tarpaulin", "-cover"),
}


def _names(command: str, names: Iterable[str]) -> bool:
    words = command.replace("=", " ").split()
    return any(name in words for name in names)


def _is_text(delta: Delta) -> bool:
    return b"\0" not in (delta.before or b"")[:8192] and b"\0" not in (delta.after or b"")[:8192]


class Finding(Struct, frozen=True, kw_only=True):
    """What a rule saw."""

    path: str
    line: int | None = None
    detail: str
    """What was done, in words that follow the path."""
    soft: bool = False
    """The original tests passing on the new sources (sealed replay) excuses it."""


Check = Callable[[Scene], Iterable[Finding]]


class Rule(Struct, frozen=True, kw_only=True):
    """One row of `RULES`."""

    name: str
    reason: str
    """Why it is refused, for a person."""
    check: Check


def scene(case: Case) -> Scene:
    """Read the differences of a case once."""
    before, after = case.before, case.after
    candidates = case.changed
    if candidates is None:
        candidates = tuple(sorted({*before.paths(), *after.paths()}))
    deltas = (
        Delta(
            path=path,
            before=before.read(path),
            after=after.read(path),
            old_mode=before.mode(path),
            new_mode=after.mode(path),
        )
        for path in candidates
        if not _is_noise(path)
    )
    return Scene(
        case=case,
        deltas=tuple(d for d in deltas if d.before != d.after or d.old_mode != d.new_mode),
    )


_NOISE = Globs(
    (
        ".pytest_cache/",
        ".ruff_cache/",
        ".mypy_cache/",
        ".hypothesis/",
        ".coverage",
        ".coverage.*.*",
        "coverage.xml",
        "htmlcov/",
        ".eslintcache",
        "*.tsbuildinfo",
        "/target/",
    )
)


def _is_noise(path: str) -> bool:
    """Caches that tools write as they run, and read only for speed."""
    return _NOISE.match(path)
