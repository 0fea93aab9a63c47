"""Changes that a run left for a person to review: kept until they are accepted, gone or merged.

A question is about hunks, the lines that an attempt added: it stays open whatever else changes in
the file, in any layout, and on any branch that has them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import partial
from itertools import chain, takewhile
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from atlas_retry import state_dir
from atlas_retry.errors import StateError, UsageError
from atlas_retry.model import OpenReview
from atlas_retry.patterns import regex
from atlas_retry.reading import read_file
from atlas_retry.text.commands import quoted
from atlas_retry.workspace.changed import merge_base
from atlas_retry.workspace.git import GitError, git, user_environment

MAX_KEPT = 200
"""Questions kept of a workspace, the latest; accepted ones too, which a resumed run must know."""
MAX_COMPARED = 4_000_000
"""Pairs of lines beyond which two states of a file are one hunk."""
_LAYOUT = regex(r"""[\s,;()"'`\\]+""")
"""What formatters add and remove: white space, trailing commas, parentheses, quotes."""


class Hunk(Struct, frozen=True, kw_only=True):
    """Lines that a change added to a file, and those that it removed there."""

    path: str
    start: int
    """1-based line of the first added line."""
    added: tuple[str, ...]
    removed: tuple[str, ...]


class Question(Struct, frozen=True, kw_only=True):
    """An open review with its hunks."""

    review: OpenReview
    hunks: tuple[Hunk, ...]
    accepted: bool = False


def hunks(path: str, before: bytes | None, after: bytes | None) -> Iterator[Hunk]:
    """The hunks between two states of a file; None: there is none."""
    was, now = _lines(before), _lines(after)
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(was, now, strict=False)))
    was, now = was[common:], now[common:]
    if len(was) * len(now) > MAX_COMPARED:
        yield Hunk(path=path, start=common + 1, added=tuple(now), removed=tuple(was))
        return
    for kind, i, j, start, end in SequenceMatcher(None, was, now, autojunk=False).get_opcodes():
        if kind != "equal":
            added, removed = tuple(now[start:end]), tuple(was[i:j])
            yield Hunk(path=path, start=common + start + 1, added=added, removed=removed)


def is_there(hunk: Hunk, content: bytes | None) -> bool:
    """Whether a file has a hunk: half of its characters, apart from layout, in whole lines.

    If it only removed lines, half of them must still be missing.
    """
    text = _bare("\n".join(_lines(content)))
    lines = [*filter(None, map(_bare, hunk.added))] if content is not None else []
    if lines:
        found = sum(len(line) for line in lines if line in text)
        return 2 * found >= sum(map(len, lines))
    gone = [*filter(None, map(_bare, hunk.removed))]
    missing = sum(len(line) for line in gone if line not in text)
    return not hunk.added and bool(gone) and 2 * missing >= sum(map(len, gone))


def _lines(content: bytes | None) -> list[str]:
    return (content or b"").decode("utf-8", "replace").splitlines()


def _bare(text: str) -> str:
    return _LAYOUT.sub("", text)


def kept(home: Path, root: Path) -> tuple[Question, ...]:
    """Every question of a workspace that nobody has accepted. Raises StateError."""
    return tuple(one for one in _every(home, root) if not one.accepted)


def _every(home: Path, root: Path) -> tuple[Question, ...]:
    file = _file(home, root)
    try:
        return msgspec.json.decode(file.read_bytes(), type=tuple[Question, ...])
    except FileNotFoundError:
        return ()
    except (OSError, msgspec.MsgspecError) as error:
        raise StateError(
            f"the changes that wait for a review cannot be read: {file}: {error}",
            remedy=f"atlas diff\nonce you have seen what the last run changed: rm {quoted(file)}",
        ) from error


def keep(home: Path, root: Path, asked: Sequence[Question]) -> None:
    """Add questions; one about the same hunks takes the place of an earlier one. StateError.

    What a person has accepted of a run is not asked again in that run.
    """
    state_dir.folder(_file(home, root).parent)
    with state_dir.alone(_file(home, root).parent):
        every = _every(home, root)
        settled = {(one.review.run_id, one.hunks) for one in every if one.accepted}
        new = [one for one in asked if (one.review.run_id, one.hunks) not in settled]
        again = {question.hunks for question in new}
        others = (one for one in every if one.hunks not in again)
        _write(home, root, (*others, *new)[-MAX_KEPT:])


def accept(home: Path, root: Path, run: str, path: str | None) -> tuple[Question, ...]:
    """Settle the questions of a run, or those about one file or folder; returns them.

    `run` is an id or its start. Raises UsageError if there are none, StateError.
    """
    where, below = (f" in {path}", f"{path.rstrip('/')}/") if path else ("", "")
    state_dir.folder(_file(home, root).parent)
    with state_dir.alone(_file(home, root).parent):
        every = _every(home, root)
        waiting = [one for one in every if not one.accepted]
        of_run = (one for one in waiting if one.review.run_id.startswith(run))
        chosen = [one for one in of_run if f"{one.review.path}/".startswith(below)]
        if chosen:
            _write(home, root, tuple(replace(o, accepted=o.accepted or o in chosen) for o in every))
            return tuple(chosen)
    others = dict.fromkeys(f"atlas accept {one.review.run_id}" for one in waiting)
    remedy = " and ".join(others) or "atlas log"
    raise UsageError(f"run {run} left nothing for review{where}", remedy=remedy)


def still_open(
    every: Sequence[Question], root: Path, environ: Mapping[str, str], baseline: str | None
) -> tuple[OpenReview, ...]:
    """The reviews of those questions whose hunks are in the files and not in the merge base.

    `baseline` is `triage.baseline`, if it is set.
    """
    hunks = set(chain.from_iterable(one.hunks for one in every))
    there = _in_files(hunks, partial(_content, root))
    if there and (base := merge_base(root, environ, baseline)):
        there -= _in_files(there, partial(_at, root, environ, base))
    return tuple(one.review for one in every if not there.isdisjoint(one.hunks))


def _in_files(hunks: Collection[Hunk], read: Callable[[str], bytes | None]) -> set[Hunk]:
    """Those of the hunks that are there; each file is read once."""
    content = {path: read(path) for path in {hunk.path for hunk in hunks}}
    return {hunk for hunk in hunks if is_there(hunk, content[hunk.path])}


def _content(root: Path, path: str) -> bytes | None:
    try:
        return read_file(root / path)
    except OSError:
        return None


def _at(root: Path, environ: Mapping[str, str], commit: str, path: str) -> bytes | None:
    env = user_environment(environ)
    try:
        return git("cat-file", "blob", f"{commit}:{path}", cwd=root, env=env)
    except GitError:
        return None


def _write(home: Path, root: Path, questions: Sequence[Question]) -> None:
    file = _file(home, root)
    try:
        if questions:
            state_dir.replace_file(file, msgspec.json.encode(questions))
        else:
            file.unlink(missing_ok=True)
    except OSError as error:
        raise StateError(
            f"the changes that wait for a review cannot be kept: {error}",
            remedy="free some space there, and run the same command again",
        ) from error


def _file(home: Path, root: Path) -> Path:
    return home / "reviews" / f"{state_dir.key_of(root)}.json"


def one_line(reviews: Collection[OpenReview]) -> str:
    """All open reviews in one line, with the commands that show and accept those of each run."""
    runs = {one.run_id: one.attempt for one in reviews}
    places = ", ".join(dict.fromkeys(one.place for one in reviews))
    ways = (
        f"to look: atlas diff {run} {n}, to accept: atlas accept {run}" for run, n in runs.items()
    )
    return f"a person must review {places}: {'; '.join(ways)}"


def of_attempt(reviews: Iterable[OpenReview], changed: Iterable[Hunk]) -> tuple[Question, ...]:
    """Questions about the hunks of an attempt.

    A review with a line is about the hunk there, one with a path about those of the file, and one
    whose file did not change, such as a test that is skipped now, about the whole attempt.
    """
    every = tuple(changed)
    questions = []
    for review in reviews:
        mine = [one for one in every if one.path == review.path]
        at = [one for one in mine if one.start <= (review.line or 0) < one.start + len(one.added)]
        questions.append(Question(review=review, hunks=tuple(at or mine) or every))
    return tuple(questions)
