"""Combines the mechanisms into one ruling for each change, and into a judgement."""

from collections.abc import Iterator, Sequence

from msgspec.structs import asdict, replace

from atlas_retry.guard import beside, decides, grown, inline, places, ratchet, settings, sources
from atlas_retry.guard.case import Answer, Case, Delta, Ruling, Scene, scene
from atlas_retry.guard.judgement import Judgement
from atlas_retry.guard.unneeded import unneeded
from atlas_retry.model import Held, Verdict, Violation
from atlas_retry.text.globs import Globs
from atlas_retry.text.units import bounded


def rulings(case: Case) -> tuple[Ruling, ...]:
    """All rulings on a change, including kept paths, in order of rules and paths."""
    change = scene(case)
    besides = tuple(beside.rulings(change))
    refused = {r.path for r in besides}
    looked_at = [d for d in change.deltas if d.path not in refused]
    return (*besides, *_in_the_tree(looked_at, change))


def _in_the_tree(deltas: Sequence[Delta], change: Scene) -> Iterator[Ruling]:
    case = change.case
    allowed, protect = Globs(case.allow), Globs(case.protect)
    gates = decides.reached(change.commands, change)
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
            yield from _deciding(delta, reason, change)
        else:
            yield from _of_source(delta, change)


def _deciding(delta: Delta, reason: Ruling, change: Scene) -> list[Ruling]:
    refused = [r for r in sources.rulings(delta, change) if r.answer is Answer.REFUSED]
    kept = grown.growth(delta, reason, change) or unneeded(delta, reason, change)
    return refused or [kept or reason]


def _of_source(delta: Delta, change: Scene) -> Iterator[Ruling]:
    made = [*sources.rulings(delta, change), *sources.deleted(delta, change)]
    if settings.dependencies_changed(delta):
        made.append(
            Ruling(
                path=delta.path,
                mechanism="settings: dependency-added",
                answer=Answer.NOTED,
                rule="dependency-added",
                detail="what the project depends on was changed",
            )
        )
    if of_tests := inline.moved(delta, change):
        made.append(of_tests)
        # suppressions are removed from the rest of the file
        delta = replace(delta, after=of_tests.rewrite or delta.after)
    made += _suppressions(delta, change)
    yield from made or [Ruling(path=delta.path, mechanism="a source, kept")]


def _suppressions(delta: Delta, change: Scene) -> Iterator[Ruling]:
    """New suppressions: removed if they are of a failing gate's kind, else noted."""
    added = ratchet.added(delta) if delta.is_text and delta.after is not None else ()
    own = tuple(mark for mark in added if ratchet.silences(mark, delta.path, change))
    left = ratchet.without(delta, own) if own else None
    answer_to_own = Answer.REVIEW if left is None else Answer.HELD
    for mark in added:
        yield Ruling(
            path=delta.path,
            mechanism="ratchet",
            rule="suppression-added",
            line=mark.line,
            detail=f"a suppression was added: {mark.text.splitlines()[0][:80]}",
            answer=answer_to_own if mark in own else Answer.NOTED,
            rewrite=left if mark in own else None,
        )


def assess(case: Case) -> Judgement:
    """The judgement of a change, with what to restore."""
    made = rulings(case)
    answers: dict[Answer | None, list[Ruling]] = {answer: [] for answer in (*Answer, None)}
    for ruling in made:
        noted = case.notes_reviews and ruling.answer is Answer.REVIEW
        answers[Answer.NOTED if noted else ruling.answer].append(ruling)
    refused, held = answers[Answer.REFUSED], answers[Answer.HELD]
    rewrites = {r.path: r.rewrite for r in held if r.rewrite is not None}
    whole = any(not r.separable for r in refused)
    back = tuple(dict.fromkeys(r.path for r in refused if r.path in case.restorable))
    paths = [r.path for r in (*refused, *held) if r.path not in {*rewrites, *back}]
    lost = [r for r in refused if not r.restorable]
    return Judgement(
        refused=tuple(_violation(r) for r in refused),
        held=tuple(
            Held(**asdict(_violation(r)), in_place=r.answer is Answer.REVIEW)
            for r in (*held, *answers[Answer.REVIEW])
        ),
        noted=tuple(_violation(r) for r in answers[Answer.NOTED]),
        restore=None if whole else tuple(dict.fromkeys(paths)),
        reinstate=back,
        adds_dependencies=bool(back) and _has_new_manifest(case),
        rewrite={p: (case.after.mode(p) or "100644", left) for p, left in rewrites.items()},
        as_before={r.path: r.as_before for r in made if r.is_proved},
        ends=_end(lost, case) if lost else None,
    )


def _end(lost: Sequence[Ruling], case: Case) -> Verdict:
    """The verdict of a run that cannot be undone; new declared dependencies are for review."""
    only_installed = all(ruling.rule == "dependency-changed" for ruling in lost)
    is_for_review = only_installed and _has_new_manifest(case)
    return Verdict.NEEDS_REVIEW if is_for_review else Verdict.REJECTED


def _has_new_manifest(case: Case) -> bool:
    return any(
        settings.is_manifest(path) and case.before.read(path) != case.after.read(path)
        for path in case.changed
    )


_MAX_DETAIL_CHARS = 300


def _violation(ruling: Ruling) -> Violation:
    """A violation with its quoted code shortened, and without control characters."""
    shown = "".join(char if char.isprintable() else " " for char in ruling.detail)
    detail = bounded(shown, _MAX_DETAIL_CHARS)
    return Violation(rule=ruling.rule, path=ruling.path, line=ruling.line, detail=detail)
