"""Ranks the definitions that a linter, type checker or compiler complains about or names."""

import difflib
import re
from collections import Counter
from collections.abc import Iterator

from atlas_retry.model import Diagnostic, Level
from atlas_retry.prompt.failing import known_path
from atlas_retry.prompt.graph import Graph, Spot
from atlas_retry.prompt.suspects import Suspect
from atlas_retry.syntax import ScopeKind, uses

MAX_NAMES = 8
MAX_OUTER_LINES = 60
MAX_COMPLAINTS = 400
"""The rarest families of complaints are looked at first."""
NAMED, CLOSE, ON_THE_LINE = 0.6, 0.5, 0.25

_QUOTED = re.compile(
    r"[`\"'\u2018\u201c«]([\w$.]+(?:::\w+)*)(?:\[[^\]]*\]\*?|\*)?[`\"'\u2019\u201d»]"
)
_OF_CLASS = re.compile(
    r"(?:of|class|for class|supertype|type|in) [`\"'\u2018\u201c]([\w.]+)"
    r"|[`\"']([\w.]+)[^`\"']*[`\"'] has no"
)
_RUN_TIME = re.compile(
    r"undefined|not defined|unbound|syntax|cannot (find|access)|no attribute|no member"
    r"|undeclared|missing (positional|return|required)|too many arg|not a known|does not exist"
    r"|unexpected",
    re.IGNORECASE,
)
_MAYBE_NONE = re.compile(r"of [\"'`]None[\"'`]|Optional|possibly")
_COSMETIC = re.compile(r"unused|redundant|style|format|deprecated|docstring|overlap", re.IGNORECASE)
NO_NAME = re.compile(
    r"undefined|not defined|cannot find|undeclared|unresolved|not in scope", re.IGNORECASE
)
UNDEFINED = re.compile(
    r"undefined|not defined|unbound|unresolved|cannot find|can't find|undeclared|not declared"
    r"|unknown|no attribute|has no|cannot access|does not exist|unimported|not found|no member",
    re.IGNORECASE,
)


def family(diagnostic: Diagnostic) -> tuple[str, str, str]:
    """What complaints of one cause have in common: tool, rule, message without its particulars."""
    first = (diagnostic.message.splitlines() or [""])[0]
    plain = re.sub(r"[`\"'\u2018\u201c].*?[`\"'\u2019\u201d]|\d+", "*", first)
    return diagnostic.tool, diagnostic.rule_id or "", plain[:120]


def named_at_fault(diagnostics: tuple[Diagnostic, ...], graph: Graph) -> tuple[Suspect, ...]:
    """The enclosing definitions, then those that the messages name, likeliest first."""
    sizes = Counter(family(diagnostic) for diagnostic in diagnostics)
    found: dict[Spot, Suspect] = {}
    rare = sorted(diagnostics, key=lambda d: sizes[family(d)])[:MAX_COMPLAINTS]
    for diagnostic in rare:
        path = known_path(diagnostic.path, graph.project.paths) if diagnostic.path else None
        if path is None:
            continue
        weight = gravity(diagnostic) / sizes[family(diagnostic)] ** 0.7
        for spot, share, why, line in _involved(diagnostic, path, graph):
            _add(found, Suspect(spot=spot, score=weight * share, why=why, lines=line))
    return tuple(sorted(found.values(), key=lambda s: -s.score))


def gravity(diagnostic: Diagnostic) -> float:
    """More for what breaks the program when it runs, less for what only displeases."""
    if diagnostic.level is not Level.ERROR:
        return 0.4
    told = f"{diagnostic.rule_id} {diagnostic.message}"
    if _RUN_TIME.search(told) and not _MAYBE_NONE.search(told):
        return 4.0
    return 0.5 if _COSMETIC.search(told) else 1.0


def _add(found: dict[Spot, Suspect], new: Suspect) -> None:
    """Several complaints about one definition add up, each less than the one before."""
    old = found.get(new.spot)
    if old is None:
        found[new.spot] = new
        return
    high, low = max(old.score, new.score), min(old.score, new.score)
    found[new.spot] = Suspect(
        spot=new.spot,
        score=high + 0.3 * low,
        why=old.why if old.score >= new.score else new.why,
        lines=tuple(dict.fromkeys((*old.lines, *new.lines))),
    )


Involved = tuple[Spot, float, str, tuple[int, ...]]


def _involved(diagnostic: Diagnostic, path: str, graph: Graph) -> Iterator[Involved]:
    line = diagnostic.region.start_line if diagnostic.region else None
    if line is not None:
        here = graph.at(path, line)
        if here:
            here = _outermost(here, graph)
            yield here, 1.0, "complaint", (line,)
        for spot in _on_the_line(path, line, graph):
            yield spot, ON_THE_LINE, "used there", ()
    names = _names(diagnostic)
    for name in names:
        for spot in _defined(path, name, graph):
            yield spot, NAMED, "named", ()
    if UNDEFINED.search(diagnostic.message):
        for spot in _close(names, diagnostic.message, graph):
            yield spot, CLOSE, "similar name", ()


def _outermost(spot: Spot, graph: Graph) -> Spot:
    """The function around a nested one: it has the names that the inner one uses."""
    outer = graph.named(spot.path, spot.scope.owner) if spot.scope.owner else None
    if outer is None or outer.scope.kind is not ScopeKind.FUNCTION:
        return spot
    return _outermost(outer, graph) if outer.scope.lines <= MAX_OUTER_LINES else spot


def _names(diagnostic: Diagnostic) -> list[str]:
    told = diagnostic.message or diagnostic.text
    found = [name.replace("::", ".") for name in _QUOTED.findall(f"{told}\n{diagnostic.text}")]
    return [name for name in dict.fromkeys(found) if len(name) > 1][:MAX_NAMES]


def _defined(path: str, name: str, graph: Graph) -> list[Spot]:
    """Definitions that a name in a message means: of this file, of its imports, of any class."""
    last = name.rpartition(".")[2]
    direct = graph.bare(path, last)
    if direct:
        return direct
    everywhere = graph.by_name.get(last, [])
    return everywhere if len(everywhere) <= MAX_NAMES else []


def _on_the_line(path: str, line: int, graph: Graph) -> Iterator[Spot]:
    source = graph.project.source(path)
    here = graph.at(path, line)
    for use in uses(path, source, line, line) if source is not None else ():
        targets = graph.lookup(path, use, here)
        if len(targets) == 1 and targets[0] != here:
            yield targets[0]


def _close(names: list[str], message: str, graph: Graph) -> Iterator[Spot]:
    """Renamed things: similar names, in the class that is named, for a name that nothing has."""
    told = _OF_CLASS.search(message)
    owner = ((told[1] or told[2]) if told else "").rpartition(".")[2]
    owners = [spot for spot in graph.by_name.get(owner, ()) if spot.scope.kind is ScopeKind.CLASS]
    for name in names[:3]:
        last = name.rpartition(".")[2]
        if last in graph.by_name:
            continue
        pool = {member.scope.name: member for one in owners for member in graph.members(one)} or {
            spot.scope.name: spot for spot in graph.spots if spot.scope.depth == 0
        }
        for other in difflib.get_close_matches(last, pool, n=2, cutoff=0.6):
            if other != last:
                yield pool[other]
