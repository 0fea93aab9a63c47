"""Problems that a failing checker reported, hidden from it instead of fixed."""

from collections.abc import Iterator

from atlas_retry.guard import ratchet
from atlas_retry.guard.case import Delta, Scene, Seen, lines, more_often, newly
from atlas_retry.patterns import regex
from atlas_retry.source import nodes_of_types, text_of

_ESCAPES = {
    "js": r"""
      \bas\s+(any|never|unknown\s+as)\b | [:=<|&]\s*any\b(?!\() | \bany\s*[>\[|]
    | ^\s*declare\s+global\b | [\w)\]]!(\s*[.;,)\[\]]|$) | \bFunction\b\s*[;,)=]
    """,
    "py": r"""
      \bcast\( | (:|=|->|\[|,|\|)\s*(typing\.)?Any\b | \btyping\.Any\b
    | \bno_type_check\b | (?<![\w.])getattr\([\w.]+,\s*["']\w+["']\) | \bglobals\(\)\[
    """,
    "php": r"[:(,|]\s*\??mixed\b",
    "rs": r"\bunsafe\s*\{ | \btransmute\b",
    "c": r"\b(const|reinterpret)_cast\b | [^\w\s)]\s*\(\s*(const\s+)?void\s*\*\s*\)\s*[\w(&*]",
}
_HIDDEN = {"py": r"""
      ^[ \t]*(if|elif)\b .* \bnot\s+(typing\.)?TYPE_CHECKING\b
    | ^[ \t]*if\b .* \bTYPE_CHECKING\b .* :\s*\n (?!\s*((from|import)\b|\#))
    """}  # fmt: skip
"""Conditions under which a type checker sees other code than what runs."""
_DISCARDS = regex(r"""(?x)
    ^( let\s+_\w*\s*(:[^=]+)?= | _(\s*,\s*_)*\s*:?= | \(void\) | void\b )\s*
    | ( \.ok\(\) | \.catch\(\s*\(?\w*\)?\s*=>\s*(\{\s*\}|null|undefined)\s*\) ) (?=;?$)
    """)


def hidden(delta: Delta, scene: Scene) -> Iterator[Seen]:
    """Line and description of what hides a problem from a failing lint or type gate."""
    kinds = ratchet.kinds_failing(scene)
    if "type" in kinds:
        yield from _typed_away(delta, scene)
    if kinds & {"lint", "type"}:
        yield from _the_same(delta, scene)


def _typed_away(delta: Delta, scene: Scene) -> Iterator[Seen]:
    escapes = dict(lines(_ESCAPES, "the type checker is silenced, not satisfied")(delta, scene))
    known, now = delta.both(_asserted)
    for line, asserted in more_often(now, (text for _, text in known)):
        if asserted != "const":
            shown = f"asserts a type that is not checked: `{asserted[:80]}`"
            escapes.setdefault(line, shown)
    yield from escapes.items()
    shown = "the type checker is shown other code than what runs"
    yield from ((line, shown) for line in newly(delta, _HIDDEN))


def _asserted(path: str, source: bytes) -> list[tuple[int, str]]:
    """Line and type of each assertion of a type."""
    nodes = nodes_of_types(path, source, regex("^as_expression$"))
    return [(node.end_point.row + 1, text_of(node.children[-1])) for node in nodes]


def _the_same(delta: Delta, scene: Scene) -> Iterator[Seen]:
    """Statements that come back with their value thrown away, unless the gate proposes that."""
    old, new = delta.old_text.splitlines(), delta.new_text.splitlines()
    gone = {_plain(line) for _, line in more_often(enumerate(old), new)}
    for number, line in delta.added_lines:
        statement = line.strip()
        discards, bare = _DISCARDS.search(statement), _DISCARDS.sub("", statement)
        if discards and "(" in bare and _plain(bare) in gone:
            proposed = _HELP.findall("".join(r.stdout + r.stderr for r in scene.case.failing))
            if not any(discards[0].strip() in text for text in proposed):
                yield number, f"throws away what the checker wants to be used: `{statement[:80]}`"


_HELP = regex(r"(?im)^\W*help: (.*)")  # rustc 1.95, for `unused_must_use`


def _plain(line: str) -> str:
    return line.strip().rstrip(";").replace(" ", "")
