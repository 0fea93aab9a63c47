"""Combines the mechanisms into one ruling for each change, and into a judgement."""

import shlex
from collections.abc import Iterator, Sequence
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.guard import beside, decides, grown, inline, places, ratchet, settings, sources
from atlas_retry.guard.case import Answer, Case, Delta, RuleFinding, Scene, scene
from atlas_retry.guard.judgement import Content, Judgement
from atlas_retry.model import Held, Kind, Verdict, Violation
from atlas_retry.text.globs import Globs
from atlas_retry.text.units import bounded

MAX_REMOVED = 4


class Ruling(Struct, frozen=True, kw_only=True):
    """The answer of one mechanism for one path."""

    path: str
    mechanism: str
    """The module, and what it found, for `atlas guard --why`."""
    finding: RuleFinding | None = None
    """None if the change is kept."""
    rewrite: bytes | None = None
    """The file without the held part, if only a part is held."""
    as_before: Content | None = None
    is_proved: bool = False
    """Whether it is kept but must be confirmed by a run with `as_before` (None: absent)."""
    separable: bool = True
    """Whether restoring the file undoes it."""
    restorable: bool = True

    @property
    def answer(self) -> Answer | None:
        """None if the change is kept."""
        return self.finding.answer if self.finding else None


def rulings(case: Case) -> tuple[Ruling, ...]:
    """All rulings on a change, including kept paths, in order of rules and paths."""
    change = scene(case)
    besides = tuple(_beside(change))
    refused = {r.path for r in besides}
    looked_at = [d for d in change.deltas if d.path not in refused]
    return (*besides, *_in_the_tree(looked_at, change))


def _beside(change: Scene) -> Iterator[Ruling]:
    allowed = Globs(change.case.allow)
    for rule, finding in beside.findings(change):
        if rule.can_be_allowed and allowed.match(finding.path):
            continue
        yield Ruling(
            path=finding.path,
            mechanism=f"beside: {rule.name}",
            finding=finding,
            separable=rule.restorable,
            restorable=rule.restorable or rule.name == "git-state",
        )


def _in_the_tree(deltas: Sequence[Delta], change: Scene) -> Iterator[Ruling]:
    case = change.case
    allowed, protect = Globs(case.allow), Globs(case.protect)
    gates = decides.reached(change.commands, change)
    led = grown.Renames(change)
    lines = _complained(case)
    for delta in deltas:
        if places.CACHES.match(delta.path) and not places.is_prose(delta.path):
            yield Ruling(path=delta.path, mechanism="places: a cache of a tool")
        elif case.allow and allowed.match(delta.path) and not protect.match(delta.path):
            yield Ruling(path=delta.path, mechanism="allowed")
        elif delta.path in case.outputs and not places.is_code(delta.path):
            yield Ruling(path=delta.path, mechanism="attribution: gates write it")
        elif delta.path in case.ignored:
            yield Ruling(path=delta.path, mechanism="ignored by git: a green is confirmed without")
        elif reason := decides.decides(delta, change, gates):
            yield from _deciding(delta, reason, change, led, lines)
        else:
            yield from _of_source(delta, change, led)


_RUN_CODE = (Kind.TEST, Kind.BUILD, Kind.REVIEW)
"""Gates whose problems are about behaviour, not about single lines."""


def _complained(case: Case) -> dict[str, frozenset[int]]:
    """Lines that lint, format and type gates reported, by path."""
    lines: dict[str, frozenset[int]] = {}
    checkers = (result for result in case.failing if result.kind not in _RUN_CODE)
    for diagnostic in chain.from_iterable(result.diagnostics for result in checkers):
        if diagnostic.path and (region := diagnostic.region):
            within = range(region.start_line, (region.end_line or region.start_line) + 1)
            lines[diagnostic.path] = lines.get(diagnostic.path, frozenset()).union(within)
    return lines


def _deciding(
    delta: Delta,
    reason: RuleFinding,
    change: Scene,
    led: grown.Renames,
    lines: dict[str, frozenset[int]],
) -> Iterator[Ruling]:
    refused = [f for f in sources.findings(delta, change) if f.answer is Answer.REFUSED]
    if refused:
        yield from (_ruling(finding, "sources") for finding in refused)
    elif kept := _kept(delta, reason, change, led) or _confined(delta, lines):
        yield kept
    else:
        yield _ruling(reason, "decides")


def _kept(delta: Delta, reason: RuleFinding, change: Scene, led: grown.Renames) -> Ruling | None:
    """The ruling on a change that proves as much as before, or more."""
    growth = None
    if reason.rule == "test-changed":
        growth = grown.growth(delta, change, led)
    elif delta.old_mode == delta.new_mode and grown.is_same(delta):
        growth = grown.Growth(is_same=True)
    if growth is None:
        return None
    was = (delta.old_mode, growth.as_before) if delta.old_mode and growth.as_before else None
    mechanism = "grown: the same, reformatted or renamed" if growth.is_same else "grown"
    return Ruling(path=delta.path, mechanism=mechanism, as_before=was, is_proved=not growth.is_same)


def _confined(delta: Delta, lines: dict[str, frozenset[int]]) -> Ruling | None:
    """The ruling on a fix of only what a gate reported."""
    if not delta.old_mode or delta.before is None or not grown.confined(delta, lines):
        return None
    mechanism = "grown: changes only what a gate reported"
    was = (delta.old_mode, delta.before)
    return Ruling(path=delta.path, mechanism=mechanism, as_before=was, is_proved=True)


def _of_source(delta: Delta, change: Scene, led: grown.Renames) -> Iterator[Ruling]:
    made = [_ruling(finding, "sources") for finding in sources.findings(delta, change)]
    if settings.dependencies_added(delta):
        finding = RuleFinding(
            rule="dependency-added", path=delta.path,
            detail="what the project depends on was changed", answer=Answer.NOTED,
        )  # fmt: skip
        made.append(_ruling(finding, "settings"))
    if of_tests := _inline(delta, change, led):
        made.append(of_tests)
        # suppressions are removed from the rest of the file
        delta = replace(delta, after=of_tests.rewrite or delta.after)
    made += _suppressions(delta, change)
    yield from made or [Ruling(path=delta.path, mechanism="a source, kept")]


def _ruling(finding: RuleFinding, mechanism: str) -> Ruling:
    return Ruling(
        path=finding.path, mechanism=f"{mechanism}: {finding.rule}", finding=finding,
        separable=finding.answer is not Answer.REFUSED,
    )  # fmt: skip


def _inline(delta: Delta, change: Scene, led: grown.Renames) -> Ruling | None:
    moved = inline.moved(delta, change, led)
    if moved is None:
        return None
    detail = "the tests in the source itself were changed"
    finding = RuleFinding(
        rule="inline-test-changed", path=delta.path, line=moved.line, detail=detail,
        answer=Answer.HELD if moved.restored is not None else Answer.REVIEW,
    )  # fmt: skip
    return Ruling(path=delta.path, mechanism="inline", finding=finding, rewrite=moved.restored)


def _suppressions(delta: Delta, change: Scene) -> Iterator[Ruling]:
    """New suppressions: removed if they are of a failing gate's kind, else noted."""
    added = ratchet.added(delta) if delta.is_text and delta.after is not None else ()
    own = tuple(mark for mark in added if ratchet.silences(mark, delta.path, change))
    left = ratchet.without(delta, own) if own else None
    answer_to_own = Answer.REVIEW if left is None else Answer.HELD
    for mark in added:
        finding = RuleFinding(
            rule="suppression-added",
            path=delta.path,
            line=mark.line,
            detail=f"a suppression was added: {mark.text.splitlines()[0][:80]}",
            answer=answer_to_own if mark in own else Answer.NOTED,
        )
        rewrite = left if mark in own else None
        yield Ruling(path=delta.path, mechanism="ratchet", finding=finding, rewrite=rewrite)


def assess(case: Case) -> Judgement:
    """The judgement of a change, with what to restore."""
    made = rulings(case)
    answers: dict[Answer | None, list[Ruling]] = {answer: [] for answer in (*Answer, None)}
    for ruling in made:
        noted = case.notes_reviews and ruling.answer is Answer.REVIEW
        answers[Answer.NOTED if noted else ruling.answer].append(ruling)
    refused, held = answers[Answer.REFUSED], answers[Answer.HELD]
    rewrites = {r.path: r.rewrite for r in held if r.rewrite is not None}
    modes = {path: case.after.mode(path) or "100644" for path in rewrites}
    whole = any(not r.separable for r in refused)
    paths = [r.path for r in (*refused, *held) if r.path not in rewrites]
    lost = list(filter(None, (r.finding for r in refused if not r.restorable)))
    reviewed = answers[Answer.REVIEW]
    return Judgement(
        refused=tuple(_violation(r) for r in refused),
        held=tuple(_held(r) for r in (*held, *reviewed)),
        noted=tuple(_violation(r) for r in answers[Answer.NOTED]),
        restore=None if whole else tuple(dict.fromkeys(paths)),
        rewrite={path: (modes[path], content) for path, content in rewrites.items()},
        as_before={r.path: r.as_before for r in made if r.is_proved},
        ends=_end(lost, case),
        remedy=_remedy(lost, case) if lost else None,
    )


def _remedy(lost: Sequence[RuleFinding], case: Case) -> str:
    """How to restore what is in no snapshot."""
    paths = {finding.path: finding.rule for finding in lost}
    new = [*filter(settings.is_stray, filter(case.added.__contains__, paths))]
    rest = [path for path in paths if path not in new]
    if len(new) > MAX_REMOVED or any(paths[path] != "dependency-changed" for path in rest):
        return "restore what is named above by hand"
    commands = settings.reinstalling(rest, frozenset(case.before.paths()))
    if not new:
        return f"reinstall what is named above: {' && '.join(commands)}"
    return f"remove what was added: {' && '.join((f'rm {shlex.join(new)}', *commands))}"


def _end(lost: Sequence[RuleFinding], case: Case) -> Verdict | None:
    """The verdict of a run that cannot be undone; new declared dependencies are for review."""
    if not lost:
        return None
    only_installed = all(finding.rule == "dependency-changed" for finding in lost)
    manifest = any(
        settings.is_manifest(path) and case.before.read(path) != case.after.read(path)
        for path in case.changed or ()
    )
    return Verdict.NEEDS_REVIEW if only_installed and manifest else Verdict.REJECTED


_MAX_DETAIL_CHARS = 300


def _violation(ruling: Ruling) -> Violation:
    """A violation with its quoted code shortened, and without control characters."""
    finding = ruling.finding
    detail = finding.detail if finding else ""
    shown = "".join(char if char.isprintable() else " " for char in detail)
    return Violation(
        rule=finding.rule if finding else "", path=ruling.path, line=finding.line if finding else
        None, detail=bounded(shown, _MAX_DETAIL_CHARS),
    )  # fmt: skip


def _held(ruling: Ruling) -> Held:
    seen, in_place = _violation(ruling), ruling.answer is Answer.REVIEW
    return Held(rule=seen.rule, path=seen.path, line=seen.line, detail=seen.detail,
                in_place=in_place)  # fmt: skip
