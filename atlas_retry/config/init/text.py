"""Chosen gates as a commented configuration; it decides nothing."""

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

import msgspec

from atlas_retry.config.init.values import Proposed
from atlas_retry.model import Kind

HEAD = """\
# Written by `atlas init`, to be read and changed by you. `atlas validate` runs these gates; each
# must exit 0. `atlas config show` lists every other key there is, with its value.
version: 1
"""
KEYS = {
    Kind.FORMAT: (
        "format",
        "Formatters. They change files, so they run first, one at a time.",
    ),
    Kind.LINT: ("lint", "Linters and type checkers, side by side with the tests."),
    Kind.TEST: ("test", "A run in which no test ran is no success."),
    Kind.PRE_COMMIT: ("pre_commit", "Hooks. They change files, so they run last, one at a time."),
    Kind.BUILD: ("build", "Builds; one attempt each, because they are usually deterministic."),
}


def configuration(choices: Iterable[Proposed], notes: Iterable[str] = ()) -> str:
    """The whole file. What cannot start here is a comment that says why."""
    every = tuple(choices)
    lines = [HEAD.rstrip(), *_comment(notes, "")]
    active = any(choice.obstacle is None for choice in every)
    lines.append("validation:" if active else "# validation:")
    for kind in KEYS:
        lines += _kind(kind, every)
    return "\n".join(lines) + "\n"


def _kind(kind: Kind, choices: tuple[Proposed, ...]) -> Iterator[str]:
    here = [choice for choice in choices if choice.slot.kind is kind]
    if not here:
        return
    key, words = KEYS[kind]
    yield f"  # {words}"
    active = any(choice.obstacle is None for choice in here)
    yield f"  {key}:" if active else f"  # {key}:"
    for choice in here:
        yield from _gate(choice)


def _gate(choice: Proposed) -> Iterator[str]:
    yield from _comment([f"{choice.reason}."], "    ")
    yield from _comment([choice.note] if choice.note else [], "    ")
    lines = _mapping(choice)
    if choice.obstacle is None:
        yield from (f"    {line}" for line in lines)
        return
    yield from _comment([f"Left out here: {choice.obstacle}."], "    ")
    yield from (f"    # {line}" for line in lines)


def _mapping(proposed: Proposed) -> Sequence[str]:
    keys = (
        ("run", proposed.run),
        ("fix", proposed.fix),
        ("recheck", proposed.recheck),
        ("required", None if proposed.required else False),
        ("writes", proposed.writes or None),
        ("cwd", proposed.cwd if proposed.cwd != "." else None),
        ("timeout", proposed.timeout),
        ("env", dict(proposed.env) or None),
    )
    # JSON is YAML: whatever a command holds, the parser reads it back as it was.
    lines = [
        f"{key}: {msgspec.json.encode(value).decode()}"
        for key, value in keys
        if value not in (None, "")
    ]
    return [("- " if number == 0 else "  ") + line for number, line in enumerate(lines)]


def _comment(sentences: Iterable[str], indent: str) -> Iterator[str]:
    for sentence in sentences:
        shown = "".join(c if c.isprintable() else " " for c in sentence)
        yield from (f"{indent}# {line}" for line in wrap(shown, 96 - len(indent)))
