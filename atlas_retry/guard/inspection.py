"""Combines the mechanisms into one ruling for each change, and into a judgement."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain

from msgspec.structs import replace

from atlas_retry.guard import beside, decides, grown, inline, places, ratchet, settings, sources
from atlas_retry.guard.case import Case, Delta, Judgement, Ruling, Scene, answered, scene
from atlas_retry.guard.unneeded import unneeded
from atlas_retry.model import Answer, AnswerWord, Verdict
from atlas_retry.text.globs import Globs


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
            held = Ruling(path=delta.path, mechanism=f"decides: {reason.rule}", answer=reason)
            kept = grown.growth(delta, reason, change) or unneeded(delta, reason, change)
            refused = _in_word(sources.rulings(delta, change), AnswerWord.REFUSED)
            yield from refused or [kept or held]
        else:
            yield from _of_source(delta, change)


def _in_word(made: Iterable[Ruling], word: AnswerWord) -> list[Ruling]:
    return [ruling for ruling in made if ruling.word is word]


def _of_source(delta: Delta, change: Scene) -> Iterator[Ruling]:
    made = [*sources.rulings(delta, change), *sources.deleted(delta, change)]
    if settings.dependencies_changed(delta):
        detail = "what the project depends on was changed"
        noted = Answer(rule="dependency-added", path=delta.path, detail=detail)
        made.append(Ruling(path=delta.path, mechanism="settings: dependency-added", answer=noted))
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
    to_own = AnswerWord.REVIEW if left is None else AnswerWord.HELD
    for mark in added:
        answer = answered(
            to_own if mark in own else AnswerWord.NOTED,
            rule="suppression-added",
            path=delta.path,
            line=mark.line,
            detail=f"a suppression was added: {mark.text.splitlines()[0][:80]}",
        )
        rewrite = left if mark in own else None
        yield Ruling(path=delta.path, mechanism="ratchet", answer=answer, rewrite=rewrite)


def assess(case: Case) -> Judgement:
    """The judgement of a change, with what to restore."""
    made = rulings(case)
    refused, held = (_in_word(made, word) for word in (AnswerWord.REFUSED, AnswerWord.HELD))
    rewrites = {r.path: r.rewrite for r in held if r.rewrite is not None}
    whole = any(r.undo != "file" for r in refused)
    back = tuple(dict.fromkeys(r.path for r in refused if r.path in case.restorable))
    paths = [r.path for r in (*refused, *held) if r.path not in {*rewrites, *back}]
    lost = {r.mechanism for r in refused if r.undo == "nothing"}
    return Judgement(
        answers=tuple(_answers(made, notes_reviews=case.notes_reviews)),
        restore=None if whole else tuple(dict.fromkeys(paths)),
        reinstate=back,
        adds_dependencies=bool(back) and _has_new_manifest(case),
        rewrite={p: (case.after.mode(p) or "100644", left) for p, left in rewrites.items()},
        as_before=dict(chain.from_iterable(r.as_before.items() for r in made)),
        ends=_end(lost, case) if lost else None,
    )


def _answers(made: Sequence[Ruling], *, notes_reviews: bool) -> Iterator[Answer]:
    """The answers in the order of their words."""
    for word in AnswerWord:
        given = (ruling.answer for ruling in made if ruling.answer)
        in_word = (answer for answer in given if answer.word is word)
        as_notes = notes_reviews and word is AnswerWord.REVIEW
        yield from map(Answer.as_note, in_word) if as_notes else in_word


def _end(lost: Collection[str], case: Case) -> Verdict:
    """The verdict of a run that cannot be undone; new declared dependencies are for review."""
    is_for_review = lost == {"beside: dependency-changed"} and _has_new_manifest(case)
    return Verdict.NEEDS_REVIEW if is_for_review else Verdict.REJECTED


def _has_new_manifest(case: Case) -> bool:
    manifests = filter(settings.is_manifest, case.changed)
    return any(case.before.read(path) != case.after.read(path) for path in manifests)
