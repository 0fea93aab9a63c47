"""Comments and attributes that tell a checker to look away; counted, may only fall."""

import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator

from atlas_retry.guard import places
from atlas_retry.guard.case import Finding, Scene
from atlas_retry.guard.treechecks import text_of, walk
from atlas_retry.guard.wholefile import is_narrowed, whole_file
from atlas_retry.syntax import language_of, parse

_CODES = r"[ \t]*[:=(\[]?[ \t]*([\w@/.,:\- ]*)"
_COMMENTS: tuple[tuple[str, str], ...] = (
    ("ruff: noqa", r"\b(?:ruff|flake8)\s*:\s*(?:noqa|disable)\b" + _CODES),
    ("noqa", r"(?<!ruff:)(?<!ruff: )(?<!flake8: )(?<!flake8:)\bnoqa\b" + _CODES),
    ("type: ignore", r"\btype:\s*ignore\b" + _CODES),
    ("mypy", r"\bmypy:\s*([\w\-=, \"]+)"),
    ("pyright", r"\b(?:based)?pyright:\s*(?:ignore|basic|report\w+\s*=\s*\w+)" + _CODES),
    ("pyre/pytype", r"\b(?:pyre-(?:ignore|fixme)|pytype:\s*disable|ty:\s*ignore)" + _CODES),
    ("pylint: disable", r"\bpylint:\s*(?:disable(?:-next|-msg)?|skip-file)" + _CODES),
    ("no cover", r"\b(?:pragma:?\s*no\s*(?:cover|branch)|nocover|excovr?_(?:line|start))\b()"),
    ("not covered", r"\b(?:(?:LCOV|GCOVR?|GRCOV)_EXCL_\w+|(?<=:)nocov(?=:))\b()"),
    ("formatter off", r"\b(?:fmt:\s*(?:off|skip)|yapf:\s*disable|autopep8:\s*off|clang-format\s+off"
                      r"|prettier-ignore(?:-start)?|dprint-ignore|gofmt:off|rustfmt::skip"
                      r"|isort:\s*(?:skip(?:_file)?|off)|@formatter:off|biome-ignore)\b" + _CODES),
    ("security off", r"\b(?:nosec|nosemgrep|noqa-secret|gitleaks:allow|trufflehog:ignore|lgtm"
                     r"|pragma:\s*allowlist[ -]secret|checkov:skip|tfsec:ignore)\b" + _CODES),
    ("eslint-disable", r"\b(?:eslint|tslint:|oxlint|stylelint|jslint|jshint|standard|biome"
                       r"|deno-lint)-?(?:disable|ignore)(?:-next-line|-line|-file)?\b" + _CODES),
    ("eslint rule", r"^\W*eslint\s+([\w@/\-]+\s*:\s*(?:0|\"?off\"?|1|\"?warn\"?))"),
    ("ts-ignore", r"@ts-(?:ignore|expect-error|nocheck)\b()"),
    ("coverage ignore", r"\b(?:istanbul|c8|v8|node:coverage)\s+(?:ignore|disable)\b" + _CODES),
    ("nolint", r"(?:^|\W)(?:nolint|NOLINT(?:NEXTLINE|BEGIN)?|lint:(?:file-)?ignore|#nosec)"
               + _CODES),
    ("NOSONAR", r"\b(?:NOSONAR|NOPMD|CHECKSTYLE[: ](?:OFF|SUPPRESS)|noinspection|NOCHECKSTYLE)\b"
                + _CODES),
    ("shellcheck disable", r"\bshellcheck\s+(?:disable|source=/dev/null)" + _CODES),
    ("rubocop", r"\b(?:rubocop|standard|reek):(?:disable|todo)" + _CODES),
    ("php ignore", r"@?(?:phpstan-ignore|psalm-suppress|phpcs:(?:ignore|disable)|codingStandards"
                   r"Ignore|codeCoverageIgnore)[\w\-]*" + _CODES),
    ("other linter", r"\b(?:hadolint\s+ignore|yamllint\s+disable|markdownlint-disable|luacheck:\s*"
                     r"ignore|swiftlint:disable|ktlint-disable|detekt|vale\s+off|cspell:\s*(?:disable|"
                     r"ignore)|codespell:ignore|spell-checker:\s*ignore|sourcery\s+skip|vulture:|"
                     r"buf:lint:ignore|actionlint-disable|dialyzer|credo:disable)" + _CODES),
)  # fmt: skip
_PATTERNS = tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in _COMMENTS)
_ATTRIBUTES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("allow", re.compile(r"#!?\[\s*(?:allow|expect|cfg_attr\([^\]]*allow)\s*\(([\w:, ]*)")),
    ("formatter off", re.compile(r"#!?\[\s*(rustfmt::skip|cfg_attr\([^\]]*rustfmt)")),
    (
        "coverage off",
        re.compile(r"#\[\s*(coverage\(off\)|cfg_attr\([^\]]*no_coverage|no_coverage)"),
    ),
    (
        "SuppressWarnings",
        re.compile(r"@(?:file:)?Suppress(?:Warnings|FBWarnings|Lint)?\s*\(([^)]*)"),
    ),
    ("Generated", re.compile(r"@(?:lombok\.)?(Generated|ExcludeFromJacocoGeneratedReport)\b")),
    ("no_type_check", re.compile(r"@(?:typing\.)?(no_type_check)\b")),
    ("pragma", re.compile(r"#\s*pragma\s+(?:GCC|clang)\s+diagnostic\s+ignored\s+\"([^\"]+)")),
    ("pragma", re.compile(r"#\s*pragma\s+warning\s*\(?\s*disable\s*:?\s*([\w, ]+)")),
)
_OF_DATA = frozenset({"other linter", "security off", "formatter off", "eslint-disable"})
"""What comments of data and prose can silence; the rest they can only speak of."""
_OWN_LINTERS = frozenset(
    (".yml", ".yaml", ".md", ".tf", ".toml", ".css", ".scss", ".html", ".sql", ".proto", ".cfg")
)


def suppressions(scene: Scene) -> Iterator[Finding]:
    """Suppressions that there are more of than before, by kind and code, over all files."""
    before: Counter[str] = Counter()
    after: Counter[str] = Counter()
    places_of: dict[str, list[tuple[str, int]]] = {}
    for delta in scene.files:
        old = [key for key, _ in _found(delta.path, delta.before)]
        new = _found(delta.path, delta.after)
        gone = whole_file(delta.before) - whole_file(delta.after)
        before.update(old)
        fresh = Counter(old)
        for key, line in new:
            fresh[key] -= 1
            if fresh[key] < 0 and is_narrowed(key, gone):
                continue
            after[key] += 1
            if fresh[key] < 0:
                places_of.setdefault(key, []).append((delta.path, line))
    added = after - before
    narrowed = Counter({key: n for key, n in (before - after).items() if key.endswith(" ")})
    for key, count in added.items():
        for path, line in places_of.get(key, [])[:count]:
            blanket = key.split("\t")[0] + "\t "
            if narrowed[blanket] > 0 and not key.endswith("\t "):
                narrowed[blanket] -= 1
                continue
            shown = key.replace("\t", " ").strip()
            yield Finding(
                path=path,
                line=line,
                detail=f"a suppression was added: {shown}; there may be fewer, not more",
            )


def _found(path: str, source: bytes | None) -> list[tuple[str, int]]:
    """Kind and code of every suppression with its line; a blanket one has an empty code."""
    if source is None or not (places.is_code(path) or places.suffix(path) in _OWN_LINTERS
                              or places.name(path) in ("Dockerfile", "Makefile")):  # fmt: skip
        return []
    found: list[tuple[str, int]] = []
    of_data = places.suffix(path) in _OWN_LINTERS
    patterns = [row for row in _PATTERNS if not of_data or row[0] in _OF_DATA]
    for text, line in _comments(path, source):
        for kind, pattern in patterns:
            for match in pattern.finditer(text):
                found += [(f"{kind}\t{code}", line) for code in _codes(match[1])]
    code = source.decode("utf-8", "replace")
    for kind, pattern in _ATTRIBUTES:
        for match in pattern.finditer(code):
            line = code.count("\n", 0, match.start()) + 1
            found += [(f"{kind}\t{c}", line) for c in _codes(match[1])]
    return found


def _codes(text: str) -> list[str]:
    said = re.split(r"\s--\s|\s{2,}|\s-\s|\s//", text)[0]
    words = [word for word in re.split(r"[\s,]+", said.strip(" \"'{}[]()")) if word]
    return [word.strip("\"'{}()") for word in words if re.search(r"\w", word)][:12] or [" "]


def _comments(path: str, source: bytes) -> Iterator[tuple[str, int]]:
    """Text and line of the comments: by tokens for Python, by syntax else, by lines at worst."""
    if places.suffix(path) in (".py", ".pyi"):
        try:
            yield from _python_comments(source)
        except (tokenize.TokenError, SyntaxError, ValueError):
            yield from _by_lines(source)
        return
    if places.suffix(path) in (".md", ".html"):
        yield from _in_prose(source)
        return
    tree = parse(language_of(path, source), source)
    if tree is None:
        yield from _by_lines(source)
        return
    for node in walk(tree.root_node):
        if "comment" in node.type:
            yield text_of(node), node.start_point[0] + 1


def _python_comments(source: bytes) -> list[tuple[str, int]]:
    tokens = tokenize.tokenize(io.BytesIO(source).readline)
    return [(t.string, t.start[0]) for t in tokens if t.type == tokenize.COMMENT]


def _in_prose(source: bytes) -> Iterator[tuple[str, int]]:
    """Comments of HTML: whatever else stands in a text is said to people."""
    text = source.decode("utf-8", "replace")
    for found in re.finditer(r"<!--.*?-->", text, re.DOTALL):
        yield found[0], text.count("\n", 0, found.start()) + 1


def _by_lines(source: bytes) -> Iterator[tuple[str, int]]:
    for number, line in enumerate(source.decode("utf-8", "replace").splitlines(), 1):
        found = re.search(r"(#|//|/\*|<!--|--|;).*$", line)
        if found:
            yield found[0], number
