"""Ranks the definitions that a linter, type checker or compiler reports or names."""

import difflib
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain

from atlas_retry.model import Diagnostic, Level
from atlas_retry.patterns import regex
from atlas_retry.prompt.failing import known_path
from atlas_retry.prompt.graph import Graph, Spot
from atlas_retry.prompt.signals import Suspect
from atlas_retry.source import ScopeKind

MAX_NAMES = 8
MAX_PROBLEMS = 400
"""Maximum of problems to rank, rarest families first."""
MAX_FAMILY_CHARS = 2_000
"""Characters of a message that determine its family."""
NAMED, SETS_IT = 0.6, 0.8

_QUOTED = regex(
    r"[`\"'\u2018\u201c«]([\w$.]+(?:::\w+)*)(?:\[[^\]]{0,500}\]\*?|\*)?[`\"'\u2019\u201d»]"
)
_PARTICULARS = regex(r"\"[^\"]*\"|`[^`]*`|'[^']*'|\u2018.*?\u2019|\u201c.*?\u201d|\d+")
_OF_CLASS = regex(
    r"(?:of|class|for class|supertype|type|in) [`\"'\u2018\u201c]([\w.]+)"
    r"|[`\"']([\w.]++)[^`\"']*+[`\"'] has no"
)
_RUN_TIME = regex(r"""(?ix)
    undefined | not[ ]defined | unbound | undeclared
    | syntax | unexpected
    | cannot[ ](find|access) | does[ ]not[ ]exist | not[ ]a[ ]known
    | no[ ]attribute | no[ ]member
    | missing[ ](positional|return|required) | too[ ]many[ ]arg
    """)
_MAYBE_NONE = regex(r"of [\"'`]None[\"'`]|Optional|possibly")
_COSMETIC = regex(r"unused|redundant|style|format|deprecated|docstring|overlap", re.IGNORECASE)
_SET = regex(r"\b(?:self|cls|this)\.(\w+)(?: *: *[^=\n]{1,200})? *=(?!=)")
UNDEFINED = regex(r"""(?ix)
    undefined | not[ ]defined | unbound | unresolved | undeclared | not[ ]declared | unimported
    | cannot[ ]find | can't[ ]find | not[ ]found | cannot[ ]access | does[ ]not[ ]exist | unknown
    | no[ ]attribute | has[ ]no | no[ ]member
    """)


def family(diagnostic: Diagnostic) -> tuple[str, str, str]:
    """Key of problems with one cause: tool, rule, message without its variable parts."""
    first = (diagnostic.message.splitlines() or [""])[0]
    plain = _PARTICULARS.sub("*", first[:MAX_FAMILY_CHARS])
    return diagnostic.tool, diagnostic.rule_id or "", plain[:120]


def named_at_fault(diagnostics: tuple[Diagnostic, ...], graph: Graph) -> tuple[Suspect, ...]:
    """Enclosing definitions and those that messages name, most likely first."""
    sizes = Counter(family(diagnostic) for diagnostic in diagnostics)
    suspects: dict[Spot, Suspect] = {}
    rare = sorted(diagnostics, key=lambda d: sizes[family(d)])[:MAX_PROBLEMS]
    for diagnostic in rare:
        path = known_path(diagnostic.path, graph.project.paths)
        if path is None:
            continue
        weight = severity(diagnostic) / sizes[family(diagnostic)] ** 0.7
        for spot, share, why in _involved(diagnostic, path, graph):
            new = Suspect(spot=spot, score=weight * share, why=why)
            suspects[spot] = max(suspects.get(spot, new), new, key=lambda suspect: suspect.score)
    return tuple(sorted(suspects.values(), key=lambda s: -s.score))


def severity(diagnostic: Diagnostic) -> float:
    """Weight of a problem: high for runtime errors, low for style."""
    if diagnostic.level is not Level.ERROR:
        return 0.4
    complaint = f"{diagnostic.rule_id} {diagnostic.message}"
    if _RUN_TIME.search(complaint) and not _MAYBE_NONE.search(complaint):
        return 4.0
    return 0.5 if _COSMETIC.search(complaint) else 1.0


def _involved(diagnostic: Diagnostic, path: str, graph: Graph) -> Iterator[tuple[Spot, float, str]]:
    line = diagnostic.region.start_line if diagnostic.region else None
    lacking = UNDEFINED.search(diagnostic.message) is not None
    owner = _OF_CLASS.search(diagnostic.message) if lacking else None
    message = diagnostic.message or diagnostic.text
    quoted = _QUOTED.findall(f"{message}\n{diagnostic.text}")
    dotted = dict.fromkeys(name.replace("::", ".") for name in quoted)
    names = [name for name in dotted if len(name) > 1][:MAX_NAMES]
    here = graph.at(path, line) if line is not None else None
    if here:
        yield here, 1.0, "problem"
    defined = chain.from_iterable(_defined(path, name, graph) for name in names)
    yield from ((spot, NAMED, "named") for spot in defined)
    if lacking:
        # classes with a missing member, and their bases
        owners = graph.lineage((owner[1] or owner[2]).rpartition(".")[2]) if owner else ()
        setting = _setting(names, owners, graph)
        yield from ((spot, SETS_IT, "similar name") for spot in setting)


def _defined(path: str, name: str, graph: Graph) -> list[Spot]:
    """Definitions of a name in a message: in this file, its imports, or any class."""
    last = name.rpartition(".")[2]
    direct = graph.bare(path, last)
    if direct:
        return direct
    everywhere = graph.by_name.get(last, [])
    return everywhere if len(everywhere) <= MAX_NAMES else []


def _setting(names: list[str], owners: tuple[Spot, ...], graph: Graph) -> Iterator[Spot]:
    """Methods with a similar name, or that set such an attribute, which may be a renamed one."""
    setters: dict[str, Spot] = {}
    for member in chain.from_iterable(map(graph.members, owners)):
        if member.scope.kind is ScopeKind.FUNCTION:
            for attribute in (member.scope.name, *_SET.findall(graph.body(member))):
                setters.setdefault(attribute, member)
    for name in names[:3]:
        last = name.rpartition(".")[2]
        close = difflib.get_close_matches(last, setters, n=1, cutoff=0.6)
        yield from (setters[other] for other in close)
