"""Approximate call graph by names and imports, with weights."""

from collections import defaultdict, deque
from collections.abc import Iterable
from functools import cached_property, lru_cache
from itertools import chain, filterfalse

from msgspec import Struct

from atlas_retry.prompt.project import PACKAGE_LANGUAGES, Project
from atlas_retry.source import Import, Scope, ScopeKind, Use, innermost, language_of, uses

MAX_FILES = 60
"""Files searched for definitions, nearest by imports first."""
MAX_CANDIDATES = 12
"""A bare method name with more definitions is ignored."""
MAX_REEXPORTS = 4
CONSTRUCTORS = ("__init__", "__new__", "__post_init__", "constructor", "new", "initialize")
_SELF = frozenset({"self", "cls", "this", "super()", "$this", "Self", "self.__class__", "super"})


class Spot(Struct, frozen=True):
    """One definition in one file."""

    path: str
    scope: Scope


class Graph:
    """Definitions in files reachable from `starts` and in `beyond`, and their uses."""

    def __init__(self, project: Project, starts: Iterable[str], beyond: Iterable[str] = ()) -> None:
        self.project = project
        self.beyond = tuple(beyond)
        self.starts = tuple(dict.fromkeys(starts))
        self.edges = lru_cache(maxsize=None)(self._edges)
        self._exported = lru_cache(maxsize=None)(self._find_exported)
        self.bare = lru_cache(maxsize=None)(self._bare)
        self.method = lru_cache(maxsize=None)(self._method)
        self.through = lru_cache(maxsize=None)(self._through)
        self.members = lru_cache(maxsize=None)(self._members)

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Files breadth-first along imports, with whole package folders; then `beyond`."""
        reached = dict.fromkeys(self.starts)
        queue = deque(self.starts)
        while queue and len(reached) < MAX_FILES:
            path = queue.popleft()
            for other in self.project.neighbours(path):
                if other not in reached:
                    reached[other] = None
                    queue.append(other)
        return tuple(dict.fromkeys((*tuple(reached)[:MAX_FILES], *self.beyond)))

    @cached_property
    def spots(self) -> tuple[Spot, ...]:
        spots: list[Spot] = []
        for path in self.files:
            spots += [Spot(path, scope) for scope in self.project.definitions(path)]
        return tuple(spots)

    @cached_property
    def by_name(self) -> dict[str, list[Spot]]:
        spots_by_name: dict[str, list[Spot]] = defaultdict(list)
        for spot in self.spots:
            if spot.scope.kind in (ScopeKind.FUNCTION, ScopeKind.CLASS):
                spots_by_name[spot.scope.name].append(spot)
        return spots_by_name

    def lineage(self, name: str) -> tuple[Spot, ...]:
        """Classes with a name, and their bases."""
        classes = [
            spot for spot in self.by_name.get(name, ()) if spot.scope.kind is ScopeKind.CLASS
        ]
        for one in classes:
            classes += [base for base in self._bases(one) if base not in classes]
        return tuple(classes)

    def at(self, path: str, line: int) -> Spot | None:
        """The innermost function, test or class around a line."""
        scope = innermost(self.project.definitions(path), line)
        return Spot(path, scope) if scope else None

    def named(self, path: str, name: str) -> Spot | None:
        """A definition in one file by its bare or qualified name."""
        for scope in self.project.definitions(path):
            if name in (scope.qualified_name, scope.name):
                return Spot(path, scope)
        return None

    def _members(self, owner: Spot) -> tuple[Spot, ...]:
        """Members that a class defines itself."""
        return tuple(
            Spot(owner.path, scope)
            for scope in self.project.definitions(owner.path)
            if scope.owner == owner.scope.qualified_name
        )

    def _bases(self, spot: Spot) -> list[Spot]:
        """Classes in a class's signature."""
        line = spot.scope.def_line
        named = (use for use in self._uses(spot.path, line, line) if use.name != spot.scope.name)
        bases = chain.from_iterable(self.lookup(spot.path, use) for use in named)
        return [base for base in bases if base.scope.kind is ScopeKind.CLASS]

    def body(self, spot: Spot) -> str:
        """The source of a definition."""
        return self.project.text(spot.path, spot.scope.start_line, spot.scope.end_line)

    def _uses(self, path: str, start: int, end: int) -> tuple[Use, ...]:
        source = self.project.source(path)
        return uses(path, source, start, end) if source is not None else ()

    def _edges(self, spot: Spot) -> tuple[tuple[Spot, ...], ...]:
        """Uses of a definition, each name once per line; a class uses its constructor.

        Without those in functions inside it. Each of the definitions of one use is equally likely.
        """
        own, members = spot.scope, self.members(spot)
        functions = [m.scope for m in members if m.scope.kind is ScopeKind.FUNCTION]
        inner = set[int]().union(*(range(one.start_line, one.end_line + 1) for one in functions))
        used: dict[tuple[int, tuple[Spot, ...]], None] = {}
        uses_here = self._uses(spot.path, own.start_line, own.end_line)
        for use in filterfalse(lambda use: use.line in inner, uses_here):
            targets = tuple(t for t in self.lookup(spot.path, use, spot) if t != spot)
            if 0 < len(targets) <= MAX_CANDIDATES:
                used[use.line, targets] = None
        made = members if own.kind is ScopeKind.CLASS else ()
        constructors = ((member,) for member in made if member.scope.name in CONSTRUCTORS)
        return (*(targets for _, targets in used), *constructors)

    def lookup(self, path: str, use: Use, inside: Spot | None = None) -> list[Spot]:
        """Definitions that a name may mean, only the closest ones."""
        if use.receiver is None:
            return self.bare(path, use.name)
        if use.receiver in _SELF and inside is not None:
            own = self.method(inside.path, inside.scope.owner, use.name)
        else:
            own = self.through(path, use.receiver, use.name)
        language = language_of(path)
        return own or [s for s in self.by_name.get(use.name, ()) if language_of(s.path) == language]

    def _bare(self, path: str, name: str) -> list[Spot]:
        named = [scope for scope in self.project.definitions(path) if scope.name == name]
        here = [Spot(path, scope) for scope in named if _has_bare_name(scope)]
        if here:
            return [spot for spot in here if not _is_method(spot)] or here[:1]
        imported = self._imported(path, name, MAX_REEXPORTS)
        if imported:
            return [imported]
        if language_of(path) in PACKAGE_LANGUAGES:
            return [spot for spot in self.by_name.get(name, ()) if not _is_method(spot)]
        return []

    def _imported(self, path: str, name: str, depth: int) -> Spot | None:
        """Definition that a file imports under a name, or by a wildcard import."""
        for wanted in self.project.imports(path):
            if wanted.local in (name, "*"):
                is_renamed = wanted.name not in ("*", "default", None)
                target = str(wanted.name) if is_renamed else name
                exported = self._first_exported(path, wanted, target, depth)
                if exported:
                    return exported
        return None

    def _first_exported(self, path: str, wanted: Import, name: str, depth: int) -> Spot | None:
        """Definition of a name in one of the files that an import may mean."""
        others = (other for other in self.project.resolve(path, wanted) if other != path)
        return next(filter(None, (self._exported(other, name, depth) for other in others)), None)

    def _find_exported(self, path: str, name: str, depth: int) -> Spot | None:
        """Definition of a name in a module, also through the module's own imports."""
        for scope in self.project.definitions(path):
            if scope.depth == 0 and scope.name == name and scope.kind is not ScopeKind.TEST:
                return Spot(path, scope)
        return self._imported(path, name, depth - 1) if depth else None

    def _method(self, path: str, owner: str | None, name: str) -> list[Spot]:
        """A method defined in a class itself."""
        one = self.named(path, owner) if owner else None
        return [member for member in self.members(one) if member.scope.name == name] if one else []

    def _through(self, path: str, receiver: str, name: str) -> list[Spot]:
        """Definition of `module.name`, `Class.name` or `Class().name`."""
        first = receiver.partition(".")[0].partition("(")[0]
        for wanted in self.project.imports(path):
            if first == wanted.local.partition(".")[0]:
                exported = self._first_exported(path, wanted, name, MAX_REEXPORTS)
                if exported:
                    return [exported]
        classes = (spot for spot in self.bare(path, first) if spot.scope.kind is ScopeKind.CLASS)
        methods = (self.method(one.path, one.scope.qualified_name, name) for one in classes)
        return next(filter(None, methods), [])


def _has_bare_name(scope: Scope) -> bool:
    """Whether other code can use it by name, unlike tests and variables of functions."""
    if scope.kind is ScopeKind.VARIABLE:
        return scope.depth == 0
    return scope.kind is not ScopeKind.TEST


def _is_method(spot: Spot) -> bool:
    return spot.scope.owner is not None and spot.scope.depth > 0
