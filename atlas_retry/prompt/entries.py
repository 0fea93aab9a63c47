"""Composes the part of the prompt that quotes the failed gates."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Sequence
from itertools import accumulate, chain, groupby

from msgspec import Struct, field

from atlas_retry.diagnostics.families import both_ends, sampled
from atlas_retry.diagnostics.noise import quiet, summary_of
from atlas_retry.diagnostics.selecting import from_root, reproducing_each
from atlas_retry.model import Attempt, Diagnostic, GateResult
from atlas_retry.patterns import regex
from atlas_retry.prompt.condense import condensed
from atlas_retry.prompt.problems import family, severity
from atlas_retry.prompt.signals import Changed
from atlas_retry.prompt.untrusted import elided, harmless_output
from atlas_retry.source.excerpt import shortened
from atlas_retry.text.units import first_few

MIN_CAUSE_CHARS, MIN_ENTRY_CHARS, MIN_ENTRIES_CHARS, MAX_FIRST_LINE_CHARS = 20, 120, 600, 300
HEADING_SHARE, FIRST_SHARE = 0.3, 0.5
MAX_RAW_CHARS = 4 << 20
"""Maximum characters of unparsed output, from both ends."""
MIN_COMMAND_CHARS, MAX_COMMAND_CHARS = 60, 400
MAX_PLACES_CHARS = 300
"""Maximum characters of one list of places; names of subtests may be long."""
ENTRIES_SHARE, REST_SHARE = 0.45, 0.1
"""Shares of the room for condensed problems, and for the rest of the output."""
TESTS_SHARE = 0.15
"""Maximum share of the room for the names of failing tests, and for the command to run one."""
MAX_COUNT_CHARS, MORE_PLACES = 60, "more in between"
MAX_TESTS, MAX_ID_CHARS, MAX_TEST_CHARS, BESIDE_ID_CHARS = 5, 80, 400, 30
_PLACED = regex(r"\s*(?:[\w.@+-]+/)*[\w.@+-]+\.\w{1,5}:\d+\b")


class Quoting(Struct, frozen=True, kw_only=True):
    """Limits and processing of quotations."""

    room: int
    """Characters for all gates together."""
    per_error: int
    redact: Callable[[str], str]
    last: Attempt | None = None
    """The attempt before these errors."""
    changed: Changed = field(default_factory=dict)
    heading: str = ""
    """Text before the first gate."""
    is_spare: bool = False
    """Whether the room is more than errors usually get: for more problems, not for repetition."""


class Quoted(Struct, frozen=True, kw_only=True):
    """The text of one part, and what it leaves out."""

    text: str
    left_out: tuple[str, ...] = ()


Cause = tuple[Diagnostic, ...]
"""Similar problems; the first one is shown."""


def quoted(results: tuple[GateResult, ...], quoting: Quoting) -> Quoted:
    """Every failed gate with command, exit code, summary and problems.

    Of a gate with the same problems as others, which are listed once, only their names.
    """
    parts: list[str] = []
    left: list[str] = []
    if quoting.heading:
        parts.append(elided(harmless_output(quoting.heading), int(quoting.room * HEADING_SHARE)))
    room = quoting.room - sum(map(len, parts))
    named: dict[Hashable, str] = {}
    for index, result in enumerate(results):
        problems = dict.fromkeys(
            d.test_id or (d.path, d.region, d.rule_id, d.message) for d in result.diagnostics
        )
        if problems and problems.keys() <= named.keys():
            others = first_few(sorted({named[problem] for problem in problems}), MAX_TESTS)
            same = f"The same problems as of {harmless_output(others)}, above."
            quote = Quoted(text=f"{headline(result, MAX_COMMAND_CHARS)}\n{same}")
        else:
            quote = _gate(result, room // (len(results) - index), quoting)
        named = dict.fromkeys(problems, result.name) | named
        parts.append(quote.text)
        left += quote.left_out
        room = max(0, room - len(quote.text) - 1)
    return Quoted(text="\n".join(parts), left_out=tuple(left))


def _gate(result: GateResult, room: int, quoting: Quoting) -> Quoted:
    heading = headline(result, max(MIN_COMMAND_CHARS, min(room // 4, MAX_COMMAND_CHARS)))
    tests = _failing_tests(result, quoting, int(room * TESTS_SHARE))
    left = max(0, room - len(heading) - len(tests) - 2)
    calm = _calm(result, quoting)
    may_be_whole = not (quoting.is_spare and result.diagnostics) and len(calm) <= left
    if may_be_whole and _holds_all(calm, result.diagnostics):
        marks = _progress(result.diagnostics, quoting.last)
        return Quoted(text="\n".join(filter(None, (heading, tests, calm, marks))))
    summary = harmless_output(quoting.redact(summary_of(result.stdout, result.stderr)))
    body = _condensed(result, calm, max(0, left - len(summary) - 1), quoting)
    text = "\n".join(filter(None, (heading, tests, body.text, summary)))
    return Quoted(text=text, left_out=body.left_out)


def _holds_all(text: str, diagnostics: tuple[Diagnostic, ...]) -> bool:
    """Whether each problem is quoted, and those that begin with the same line as often."""
    firsts = (quiet(d.text.strip("\n").partition("\n")[0]) for d in diagnostics)
    counted = Counter(harmless_output(first).strip() for first in firsts)
    return all(text.count(line) >= times for line, times in counted.items())


def _failing_tests(result: GateResult, quoting: Quoting, room: int) -> str:
    """Ids of the failing tests, and a command for the first one of each message."""
    causes = [*chain.from_iterable(grouped(result.diagnostics, quoting))]
    tests = [d for d in chain.from_iterable(causes) if d.test_id]
    if not tests:
        return ""
    limit = min(MAX_TEST_CHARS, max(MAX_ID_CHARS, room - BESIDE_ID_CHARS))
    ids = dict.fromkeys(_safe(str(d.test_id)[:limit], quoting) for d in tests)
    shown = f"Failing: {first_few(ids, max(1, min(MAX_TESTS, room // (2 * MAX_ID_CHARS))))}"
    first = [cause[0] for cause in causes if cause[0].test_id][:MAX_TESTS]
    typed = (from_root(line or "", result.cwd) for line in reproducing_each(result, first))
    commands = (_safe(line, quoting) for line in dict.fromkeys(typed) if line)
    lines = [shown, *(f"Reproduce: {command}" for command in commands)]
    ends = accumulate(len(line) + 1 for line in lines)
    return "\n".join(line for line, end in zip(lines, ends, strict=True) if end <= room + 1)


def _safe(text: str, quoting: Quoting) -> str:
    return harmless_output(quoting.redact(" ".join(text.split())))


def headline(result: GateResult, command_chars: int) -> str:
    """`### lint failed: the command (exit code 1)`, with the reason after a timeout."""
    status = result.status.value.replace("_", " ")
    ended = f" (exit code {result.exit_code})" if result.exit_code is not None else ""
    error = result.error or ""
    reason = f"\n{error}" if error and not error.startswith("exit code") else ""
    typed = from_root(result.command, result.cwd) or "(no command)"
    command = shortened(" ".join(typed.split()), command_chars)
    return harmless_output(f"### {result.name} {status}: {command}{ended}{reason}")


def _calm(result: GateResult, quoting: Quoting) -> str:
    """A gate's output without progress, rulers and lines on what passed."""
    if not (streams := [t.strip("\n") for t in (result.stdout, result.stderr) if t.strip()]):
        causes = chain.from_iterable(grouped(result.diagnostics, quoting))
        parts = ((elided(_text_of(c[0], quoting), quoting.per_error), _others(c)) for c in causes)
        return "\n".join(filter(None, chain.from_iterable(parts)))
    quieted = (quiet(harmless_output(elided(text, MAX_RAW_CHARS))) for text in streams)
    return quoting.redact("\n".join(quieted))


def _condensed(result: GateResult, calm: str, room: int, quoting: Quoting) -> Quoted:
    """The decisive lines of what does not fit, and some of what no tool's parser read."""
    if not any(d.path or d.test_id for d in result.diagnostics):
        head = elided(calm, MAX_RAW_CHARS // 10)
        text = sampled(head, room) or condensed(head, room)
        return Quoted(text=text, left_out=("part of the output",))
    rest = elided("\n".join(_rest(result, calm)), int(room * REST_SHARE))
    share = max(
        int(room * (1 if quoting.is_spare else ENTRIES_SHARE)),
        min(room - len(rest) - 1, MIN_ENTRIES_CHARS),
    )
    entries = _filled(grouped(result.diagnostics, quoting), share, quoting)
    return Quoted(text="\n".join(filter(None, (entries.text, rest))), left_out=entries.left_out)


def _rest(result: GateResult, calm: str) -> list[str]:
    """Lines with a place that are in no diagnostic."""
    read: set[str] = set()
    for diagnostic in result.diagnostics:
        read.update(line.strip() for line in diagnostic.text.splitlines())
    lines = (line for line in calm.splitlines() if line.strip() not in read)
    return [line for line in dict.fromkeys(lines) if _PLACED.match(line)]


def _text_of(diagnostic: Diagnostic, quoting: Quoting) -> str:
    line = " ".join(filter(None, (_place(diagnostic), diagnostic.rule_id, diagnostic.message)))
    text = (diagnostic.text or line).strip("\n")
    if diagnostic.path and diagnostic.path.rpartition("/")[2] not in text:
        text = f"{_place(diagnostic)}\n{text}"  # its file is in a heading far above
    marks = _progress((diagnostic,), quoting.last)
    text = harmless_output(quoting.redact(text[:100_000])).rstrip()
    return "\n".join(filter(None, (text, marks)))


def _progress(diagnostics: tuple[Diagnostic, ...], last: Attempt | None) -> str:
    """Problems that the last attempt introduced, and the number of remaining ones."""
    if last is None:
        return ""
    new, old = (_those(diagnostics, named) for named in (last.introduced, last.remaining))
    lines: list[str] = []
    if new:
        lines.append(f"({len(new)} introduced by attempt {last.number}: {_places(new)})")
    if old:
        lines.append(f"({len(old)} remaining after attempt {last.number})")
    return harmless_output("\n".join(lines))


def _those(diagnostics: Sequence[Diagnostic], named: Collection[str]) -> list[Diagnostic]:
    sought = {*filter(None, named)}
    return [d for d in diagnostics if d.fingerprint in sought]


def _others(cause: Cause, chars: int = MAX_PLACES_CHARS) -> str:
    """Number and places of the other problems of one cause."""
    count = sum(problem.count for problem in cause)
    if count == 1:
        return ""
    return harmless_output(f"({count - 1} more like this: {_places(cause[1:], chars)})")


def _places(diagnostics: Sequence[Diagnostic], chars: int = MAX_PLACES_CHARS) -> str:
    """As many places as fit, from both ends; the number of the others between them."""
    names = [*filter(None, dict.fromkeys(d.test_id or _place(d) for d in diagnostics))]
    ends = accumulate(len(name) + 2 for name in both_ends(names))
    fit = max(1, sum(end <= chars for end in ends))
    if fit >= len(names):
        return ", ".join(names)
    first, last = names[: (fit + 1) // 2], names[len(names) - fit // 2 :]
    return ", ".join((*first, f"{len(names) - fit} {MORE_PLACES}", *last))


def _place(diagnostic: Diagnostic) -> str:
    line = f":{diagnostic.region.start_line}" if diagnostic.region else ""
    return f"{diagnostic.path}{line}" if diagnostic.path else ""


def grouped(diagnostics: tuple[Diagnostic, ...], quoting: Quoting) -> list[list[Cause]]:
    """Causes, those of equal rank together.

    First those that the last attempt introduced, then those in lines and files that changed, then
    the rarest: frequent problems are usually older than the change.
    """
    same: dict[Hashable, list[Diagnostic]] = defaultdict(list)
    for diagnostic in diagnostics:
        same[family(diagnostic), diagnostic.message].append(diagnostic)
    sizes = Counter(map(family, diagnostics))
    introduced = quoting.last.introduced if quoting.last else ()

    def rank(cause: Cause) -> tuple[bool, int, float]:
        rarity = sizes[family(cause[0])] / severity(cause[0]) ** 2
        distance = min(_distance(one, quoting.changed) for one in cause)
        return not _those(cause, introduced), distance, rarity

    causes = sorted(map(tuple, same.values()), key=rank)
    return [[*tier] for _, tier in groupby(causes, key=rank)]


def _distance(diagnostic: Diagnostic, changed: Changed) -> int:
    """0 if it or its traceback is at a line that changed, 1 if in such a file, else 2."""
    line = diagnostic.region.start_line if diagnostic.region else 0
    places = [(diagnostic.path or "", line), *((f.path, f.line) for f in diagnostic.frames)]
    near = [(line, changed[path]) for path, line in places if path in changed]
    is_inside = any(any(line in lines for lines in ranges) for line, ranges in near)
    return 2 - bool(near) - is_inside


def _filled(tiers: list[list[Cause]], room: int, quoting: Quoting) -> Quoted:
    """As many condensed causes as fit, of equal ones the first and the last."""
    causes = [*chain.from_iterable(tiers)]
    shown: dict[Cause, str] = {}
    for cause in chain.from_iterable(map(both_ends, tiers)):
        text = _shortened(cause, room, len(causes) - len(shown), quoting)
        if len(text) >= room and not shown:
            text = elided(text, max(room - 1, 0))
        if text and len(text) < room:
            shown[cause] = text
            room -= len(text) + 1
    left = [f"{len(causes) - len(shown)} more errors"] if len(shown) < len(causes) else []
    left += ["places"] if any(MORE_PLACES in text for text in shown.values()) else []
    text = "\n".join(shown[cause] for cause in causes if cause in shown)
    return Quoted(text=text, left_out=tuple(left))


def _shortened(cause: Cause, room: int, causes: int, quoting: Quoting) -> str:
    """A problem and the places of those like it, in a share of the room; empty without room."""
    if room < MIN_CAUSE_CHARS:
        return ""
    full_text = _text_of(cause[0], quoting)
    first = min(len(full_text.partition("\n")[0]) + 6, MAX_FIRST_LINE_CHARS)
    share = max(int(room * FIRST_SHARE), first, MIN_ENTRY_CHARS)
    text = condensed(full_text, min(share, quoting.per_error))
    places = (room - len(text) - MAX_COUNT_CHARS) // (2 * causes - 1)
    return "\n".join(filter(None, (text, _others(cause, max(places, MAX_PLACES_CHARS)))))
