"""From what the parts of one output say to what all of it says; reads no output itself."""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from itertools import islice, product

from msgspec.structs import replace

from atlas_retry.diagnostics.reader import MAX_DIAGNOSTICS
from atlas_retry.diagnostics.registry import FALLBACKS
from atlas_retry.diagnostics.values import Findings
from atlas_retry.model import Diagnostic, Level

MAX_SUMMARY_LINES = 200
_GUESSING = frozenset(parser.name for parser in FALLBACKS)
_NEAR = 100
"""A runner names the tests in the order of their blocks."""


def combined(parts: Iterable[Findings]) -> Findings:
    """What the parts of one output say together, read one after the other in bounded memory.

    Of a block that was torn between two parts something may be lost, so that problems are counted
    as "at least" where there is more than one part.
    """
    whole = Findings()
    kept: dict[Hashable, Diagnostic] = {}
    for number, part in enumerate(parts):
        unkept = _keep(kept, part.diagnostics)
        whole = _joined(whole, part, is_first=number == 0)
        whole = replace(whole, beyond=whole.beyond + unkept)
    return replace(whole, diagnostics=_named(_of_tools(kept.values())))


def _keep(kept: dict[Hashable, Diagnostic], diagnostics: Iterable[Diagnostic]) -> int:
    """Adds what is new as far as there is room; how many problems are not added."""
    unkept = 0
    for key, diagnostic in {_identity(d): d for d in diagnostics}.items():
        if key in kept:
            unkept += 0 if diagnostic.test_id else diagnostic.count
        elif len(kept) < MAX_DIAGNOSTICS:
            kept[key] = diagnostic
        else:
            unkept += diagnostic.count
    return unkept


def _of_tools(found: Collection[Diagnostic]) -> Sequence[Diagnostic]:
    """As of a whole: what only looks like a problem counts where no tool has named any."""
    tools = [d for d in found if d.tool not in _GUESSING]
    return tools or [*found]


def _named(found: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Each failing test once: its block may be in one part, and its name in another.

    A runner lists the names at the end, with no place and the start of the message at most.
    """
    tests = [d for d in found if d.test_id]
    names = {id(d): d for d in tests if d.region is None}
    whole = _paired([d for d in found if not d.test_id], names)
    rest = {d.test_id or "": key for key, d in names.items() if key not in whole}
    whole |= _of_subtests(tests, rest)
    each = {id(one): one for one in (whole.get(id(d), d) for d in found)}
    return tuple(each.values())


def _paired(blocks: Sequence[Diagnostic], names: Mapping[int, Diagnostic]) -> dict[int, Diagnostic]:
    """The tests whose block and name are known, by the id of either."""
    free = dict(names)
    whole: dict[int, Diagnostic] = {}
    for is_of, block in product((_is_of, _is_torn_of), blocks):
        name = None if id(block) in whole else _name_of(block, free, is_of)
        if name:
            del free[id(name)]
            one = replace(block, test_id=name.test_id, path=block.path or name.path)
            whole |= {id(block): one, id(name): one}
    return whole


def _name_of(
    block: Diagnostic,
    names: Mapping[int, Diagnostic],
    is_of: Callable[[Diagnostic, Diagnostic], bool],
) -> Diagnostic | None:
    near = islice(names.values(), _NEAR)
    return next((name for name in near if is_of(name, block)), None)


def _of_subtests(tests: Sequence[Diagnostic], names: Mapping[str, int]) -> dict[int, Diagnostic]:
    """The blocks of subtests, under the name of their test."""
    whole: dict[int, Diagnostic] = {}
    for block in tests:
        test_id = str(block.test_id).partition(" (")[0]
        if block.region and test_id in names:
            one = replace(block, test_id=test_id)
            whole |= {id(block): one, names[test_id]: one}
    return whole


def _is_of(name: Diagnostic, block: Diagnostic) -> bool:
    start = name.message.removesuffix("...")
    return name.tool == block.tool and (start == "failed" or start in block.message)


def _is_torn_of(name: Diagnostic, block: Diagnostic) -> bool:
    """A block that ends before it says what was raised."""
    return name.tool == block.tool and block.rule_id is None


def _identity(d: Diagnostic) -> Hashable:
    """A failing test is the same one wherever it is spoken of."""
    if d.test_id:
        return d.tool, d.test_id
    return d.tool, d.rule_id, d.level, d.message, d.path, d.region, d.frames


def _joined(whole: Findings, part: Findings, *, is_first: bool) -> Findings:
    """All but the diagnostics of a part added to what came before it."""
    if is_first:
        return part
    counts = [n for n in (whole.tests_run, part.tests_run) if n is not None]
    silent = not any(d.level is Level.ERROR for d in part.diagnostics)
    return Findings(
        beyond=whole.beyond + part.beyond,
        cut=True,
        tests_run=sum(counts) if counts else None,
        vacuous=(whole.vacuous or part.vacuous) and not sum(counts),
        threshold=part.threshold or (whole.threshold and silent),
        environment=whole.environment if silent else None,
        lack=whole.lack or part.lack,
        summary=(*whole.summary, *part.summary)[-MAX_SUMMARY_LINES:],
    )
