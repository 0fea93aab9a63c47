"""Scripts of tests with fixed places for what they write, read as if they made them. Pure."""

import re
from collections.abc import Collection

_MADE = re.compile(
    r"^[ \t]*(?:export |local |readonly )?(\w+)=[\"']?(?:\$\(|`)mktemp\b[^)`|;&<>]*[)`][\"']?"
    r"(?: \|\| exit [1-9]\d*)?[ \t]*$",
    re.MULTILINE,
)
_FIXED = re.compile(r"(?:/var)?/tmp(?:/[\w.-]+)*?/([\w.-]+)(?![\w./-])")
_ELSEWHERE = re.compile(
    r"/(?:var/)?(?:tmp|run|scratch)|/dev/shm|\$\{?(?:TMP(?:DIR)?|RUNNER_TEMP)\b"
)


def respelled(before: str, after: str, tracked: Collection[str]) -> tuple[str, str]:
    """Both texts of a script, where `mktemp` took the place of a path that the project lacks."""
    names = frozenset(_MADE.findall(after))
    for name in names:
        said = next(line[0] for line in _MADE.finditer(after) if line[1] == name)
        pattern = re.compile(
            rf"^[ \t]*(?:export |local |readonly )?{name}=[\"']?([^\s\"';|&()`]+)[\"']?[ \t]*$",
            re.MULTILINE,
        )
        old = pattern.search(before)
        if old and _is_free(old[1], tracked):
            before = before[: old.start()] + said + before[old.end() :]
    kept = {name for name in names if not re.search(rf"\b{name}=(?!.*mktemp)", before)}
    texts = (_tidied(text, kept) for text in (before, after))
    first, second = texts
    return _placed(first, second, kept)


def _is_free(path: str, tracked: Collection[str]) -> bool:
    """Whether nothing of the project lies there."""
    if _ELSEWHERE.match(path):
        return True
    bare = re.sub(r"^(?:\$\{?\w+\}?/|\./|\.\./)+", "", path).strip("/")
    plain = bool(bare) and "$" not in bare and not path.startswith("/") and ".." not in bare
    return plain and not any(f"/{bare}/" in f"/{held}/" for held in tracked)


def _tidied(text: str, names: Collection[str]) -> str:
    """Without the lines that only make or remove such a place."""
    place = rf"\"?\$\{{?(?:{'|'.join(names)})\}}?\"?" if names else r"(?!)"
    line = re.compile(
        rf"^[ \t]*(?:mkdir -p {place}|rm -r?f?r? {place}|rm -rf {place}(?: &&|;) mkdir -p {place}"
        rf"|trap [\"']rm -r?fr? (?:{place}[ ]?)+[\"'](?: (?:EXIT|INT|TERM|HUP|0|1|2|15))+)[ \t]*$",
        re.MULTILINE,
    )
    return line.sub("", text)


def _placed(before: str, after: str, names: Collection[str]) -> tuple[str, str]:
    """The files in such places by their names alone, where these tell them apart."""
    if not names or not _FIXED.search(before):
        return before, after
    made = re.compile(rf"\$\{{?(?:{'|'.join(names)})\}}?(?:/[\w.-]+)*?/([\w.-]+)(?![\w./-])")
    sides = []
    for text in (before, after):
        for pattern in (_FIXED, made):
            whole = {match[0]: match[1] for match in pattern.finditer(text)}
            if len({*whole.values()}) < len(whole):
                return before, after
        sides.append(made.sub(r"@scratch/\1", _FIXED.sub(r"@scratch/\1", text)))
    return sides[0], sides[1]
