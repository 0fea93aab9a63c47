"""Rule on code that reads the data of its tests, and so prints what is expected of it."""

import posixpath
import re
from collections.abc import Iterator

from atlas_retry.guard import places
from atlas_retry.guard.case import Delta, Finding, Scene

_TEXT = re.compile(r"\"((?:\\.|[^\"\\\n])*)\"|'((?:\\.|[^'\\\n])*)'|`((?:\\.|[^`\\])*)`")
_EMBEDDED = re.compile(r"^//go:embed\s+(.+)$")
_READS = re.compile(
    r"(?i)open|read|load|exists|is_?file|include_(str|bytes)|embed|\bpath|with_(name|suffix)|resource"
    r"|fixture|golden|\bFile\b|import|require|\s/\s|join|slurp"
)
_BESIDE = re.compile(r"(^|/)(scripts?|tools?|bin|benchmarks?|benches|examples?|docs?|ci|\.\w+)/")
"""What serves the makers of the project, the tests' data included."""
_OF_MAKERS = re.compile(
    r"(^|/)(setup|noxfile|tasks|build|dodo|fabfile)\.\w+$|\.config\.[cm]?[jt]s$"
)


def read_by_code(scene: Scene) -> Iterator[Finding]:
    """Sources that newly name a file of test data, or a kind of file that only tests have."""
    data: frozenset[str] | None = None
    for delta in scene.files:
        if not _is_product(delta):
            continue
        told = [(number, text) for number, text in _fresh_texts(delta) if _could_be_path(text)]
        if not told:
            continue
        data = _data(scene) if data is None else data
        kinds = _kinds_of_tests(data, scene)
        for number, text in told:
            if _is_within(text, data) or places.suffix(text) in kinds:
                detail = f"reads the data of the tests: `{text[:60]}`"
                yield Finding(path=delta.path, line=number, detail=detail)


def _is_product(delta: Delta) -> bool:
    code = places.is_source(delta.path)
    aside = _BESIDE.search(delta.path) or _OF_MAKERS.search(delta.path)
    return code and not delta.is_deleted and not aside


def _fresh_texts(delta: Delta) -> Iterator[tuple[int, str]]:
    """Texts of new lines that read something, with the numbers of the lines."""
    old = {line.strip() for line in delta.old_text.splitlines()}
    for number, line in enumerate(delta.new_text.splitlines(), 1):
        bare = line.strip()
        embedded = _EMBEDDED.match(bare)
        if bare in old or (bare.startswith(("# ", "//", "*")) and not embedded):
            continue
        if embedded:
            yield from ((number, part) for part in embedded[1].split())
        elif _READS.search(bare):
            parts = ["".join(found) for found in _TEXT.findall(bare)]
            yield from ((number, part) for part in parts if part not in delta.old_text)
            if _FROM_HERE.search(bare) and len(parts) > 1:
                yield number, posixpath.join(*(part.strip("/") or "." for part in parts))


_FROM_HERE = re.compile(
    r"__file__|__dirname|import\.meta|CARGO_MANIFEST_DIR|cwd\(|__DIR__|\broot\b"
)


def _could_be_path(text: str) -> bool:
    return bool(re.fullmatch(r"[^\s<>|;,]+", text)) and ("/" in text or "." in text)


def _data(scene: Scene) -> frozenset[str]:
    """Files of the tests that are no code; fixtures of an application are its own."""
    return frozenset(path for path in scene.old_paths if places.is_golden(path) and _is_named(path))


_EXPECTED = re.compile(r"(^|/)(__snapshots__|goldens?|expected)/|\.(golden|snap|ambr|expected)/?$")


def _is_named(path: str) -> bool:
    """Whether a path says that it belongs to tests."""
    return places.is_test(path) or bool(_EXPECTED.search(path))


def _is_within(text: str, data: frozenset[str]) -> bool:
    """Whether a path leads to such a file or to a folder of them, from wherever it starts."""
    named = "/".join(step for step in text.split("/") if step not in ("", ".", ".."))
    if "/" not in named or not _is_named(f"{named}/"):
        return False
    return any(f"/{named}/" in f"/{path}/" for path in data)


def _kinds_of_tests(data: frozenset[str], scene: Scene) -> frozenset[str]:
    """Suffixes of expected output that no source of the project spoke of."""
    kinds = {s for path in data if (s := places.suffix(path)) and places.is_golden(f"x{s}")}
    sources = [p for p in scene.old_paths if places.is_source(p)]
    if not kinds:
        return frozenset()
    spoken = b"\n".join(scene.old(path) or b"" for path in sorted(sources))
    return frozenset(kind for kind in kinds if kind.encode() not in spoken)
