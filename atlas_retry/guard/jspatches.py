"""Parts of JavaScript's test libraries that are replaced at run time. Reads lines, runs nothing."""

import re
from collections.abc import Iterator

from atlas_retry.guard import places
from atlas_retry.guard.case import Delta, Finding, Scene
from atlas_retry.guard.jslibraries import LIBRARY, SUFFIXES, bindings
from atlas_retry.guard.words import words

_GLOBALS = words("expect it describe chai jest vi QUnit")
"""What runners hand to tests without an import, and no variable is usually called."""
_CHECKS = re.compile(
    r"(ok|fail|equals?|match|throws|rejects|assert|expect|test|it|run|prototype|should|resolves"
    r"|(not|deep|strict|partial|loose|same|does[A-Z]|to[A-Z]|is[A-Z]|if[A-Z])\w*)$"
)
"""Parts of the libraries by which tests assert; a part of another name is an addition."""
_REQUIRED = r"require\(\s*['\"](?:node:)?(?:assert(?:/strict)?|test|chai|expect|vitest)['\"]\s*\)"
_ALIAS = re.compile(
    r"\b(?:const|let|var)\s+([\w$]+)\s*=\s*([\w$]+)(?:\.\w+)?\s*;?\s*$", re.MULTILINE
)
_OVERWRITTEN = re.compile(r"\boverwrite(Method|Property|ChainableMethod)\(")
_UNHEARD = re.compile(
    r"process\.(on|once)\(\s*['\"](uncaughtException|unhandledRejection)\w*['\"]\s*,"
    r"\s*(\([^)]*\)|\w+)\s*=>\s*(\{\s*\}|undefined|null|void 0)\s*\)"
)


def patched(scene: Scene) -> Iterator[Finding]:
    """`assert.equal = () => {}`, wherever it stands, in each of its spellings."""
    for delta in scene.files:
        if places.suffix(delta.path) not in SUFFIXES or delta.is_deleted:
            continue
        old = {line.strip() for line in delta.old_text.splitlines()}
        lines = delta.new_text.splitlines()
        for number in sorted(_replacing(delta)):
            bare = lines[number - 1].strip()
            if bare not in old and not bare.startswith(("//", "*")):
                detail = f"replaces a part of the test library: `{bare[:80]}`"
                yield Finding(path=delta.path, line=number, detail=detail)


def _replacing(delta: Delta) -> set[int]:
    """Numbers of the lines on which a part is replaced."""
    text = delta.new_text
    one, whole = _patterns(delta)
    found = [m for pattern in (whole, _OVERWRITTEN, _UNHEARD) for m in pattern.finditer(text)]
    found += [m for m in one.finditer(text) if any(p and _CHECKS.match(p) for p in m.groups())]
    return {text.count("\n", 0, match.start()) + 1 for match in found}


def _names(delta: Delta) -> frozenset[str]:
    """What stands for a test library in a file, aliases included."""
    text = delta.new_text
    bound = bindings(text)
    found = {name for name, (origin, _) in bound.items() if LIBRARY.match(origin)}
    declared = re.compile(r"\b(?:const|let|var|function|class)\s+([\w$]+)")
    found |= _GLOBALS - bound.keys() - set(declared.findall(text))
    found |= {alias for alias, name in _ALIAS.findall(text) if name in found}
    return frozenset(found)


def _patterns(delta: Delta) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What replaces one part, named in a group, and what replaces any part of it."""
    names = "|".join((_REQUIRED, *sorted(map(re.escape, _names(delta)))))
    library = rf"(?<![\w$.'\"])(?:{names})(?:\.(?:strict|prototype|default|Assertion))*"
    by_call = (
        r"(?:Object\.defineProperty|Reflect\.(?:set|defineProperty)|\w*[mM]ock\.method"
        r"|(?:sinon|sandbox|jest|vi|td|t)\.(?:stub|spyOn|replace|mock\.method))"
    )
    one = (
        rf"{library}(?:\.([\w$]+)|\[\s*['\"`](\w+)['\"`]\s*\])\s*=(?![=>])"
        rf"|{by_call}\(\s*{library}\s*,\s*['\"`](\w+)['\"`]|\bdelete\s+{library}\.(\w+)"
    )
    whole = (
        rf"{library}\[\s*[A-Za-z_$]\w*\s*\]\s*=(?![=>])|{library}\.prototype\.\w+\s*=(?![=>])"
        rf"|\bObject\.(?:assign|defineProperties)\(\s*{library}\s*,"
    )
    return re.compile(one), re.compile(whole)
