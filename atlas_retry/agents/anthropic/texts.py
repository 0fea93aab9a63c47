"""An answer that the model wrote as text instead of a call: JSON, or blocks of code. Pure.

It becomes the arguments of the tool, so every check of those holds for it as well.
"""

import re
from typing import Final

import msgspec

from atlas_retry.agents.answers import decoded, whole_object
from atlas_retry.agents.anthropic.wire import FixAnswer, FixedFile
from atlas_retry.patterns import regex

_BLOCK: Final = regex(
    r"^(?P<mark>```|~~~)[ \t]*(?P<info>[^\n`]*)\n(?P<code>.*?)^(?P=mark)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
_NAME: Final = regex(r"[\w.@+-]+(?:/[\w.@+-]+)*\.\w+|(?:[\w.@+-]+/)+[\w.@+-]+")
"""A path: it has a folder or an ending."""


def written(text: str, file: FixedFile | None) -> bytes | None:
    """The answer in the text as arguments of the tool; None if there is none.

    `file` is the one that was asked for again: a block of code without a path is that one.
    """
    blocks = [*_BLOCK.finditer(text)]
    objects = [block["code"] for block in blocks] or [whole_object(text)]
    whole = next(filter(_is_answer, objects), None)
    if whole:
        return whole.encode("utf-8", "replace")
    files = []
    asked = file.path if file and len(blocks) == 1 else None
    for block in blocks:
        path = _path_in(block["info"], text[: block.start()]) or asked
        if path is None:
            return None  # which file it is would be a guess
        action = file.action if file and file.path == path else "modify"
        files.append(FixedFile(path=path, action=action, content=block["code"]))
    if not files:
        return None
    told = _BLOCK.sub("", text).strip()
    return msgspec.json.encode(FixAnswer(success=True, diagnosis=told, files=tuple(files)))


def _is_answer(text: str) -> bool:
    return (decoded(text, dict[str, object]) or {}).keys() >= {"success", "files"}


def _path_in(info: str, before: str) -> str | None:
    """The path of a block: after its language, or alone in the last line before it."""
    last = before.rstrip().rpartition("\n")[2]
    said = (*info.split()[1:], last.strip("#*:` \t"))
    names = (words.rpartition("=")[2].strip("\"'") for words in said)
    return next(filter(_NAME.fullmatch, names), None)
