"""Suppressions of checkers, which may become fewer but not more."""

import re
from functools import lru_cache
from itertools import chain

from msgspec import Struct

from atlas_retry.guard import decides, places
from atlas_retry.guard.case import Delta, Scene, unpaired
from atlas_retry.model import Kind
from atlas_retry.patterns import regex
from atlas_retry.source import nodes_of_types, text_of, tokens


def _marks(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(regex(pattern, re.IGNORECASE) for pattern in patterns)


MARKS: dict[str, tuple[re.Pattern[str], ...]] = {
    "lint": _marks(
        r"\bnoqa\b|\b(?:ruff|flake8)\s*:\s*(?:noqa|disable)",
        r"\bpylint:\s*(?:disable|skip-file)",
        r"\b(?:eslint|tslint:|oxlint|stylelint|standard|biome|deno-lint)-?(?:disable|ignore)",
        r"\beslint\s+[\w@/\-]+\s*:\s*(?:0|\"?off|1|\"?warn)",
        r"(?:^|\W)(?:nolint|NOLINT(?:NEXTLINE|BEGIN)?|lint:(?:file-)?ignore)\b",
        r"\b(?:NOSONAR|NOPMD|CHECKSTYLE[: ](?:OFF|SUPPRESS)|noinspection)\b",
        r"\bshellcheck\s+(?:disable|source=/dev/null)",
        r"\b(?:rubocop|standard|reek):(?:disable|todo)",
        r"\b(?:phpcs:|jshint\s+)(?:ignore|disable)|\b(?:hadolint|swiftlint|ktlint|detekt|yamllint)\W*(?:disable|ignore)",
        r"#!?\[\s*(?:allow|expect|cfg_attr\([^\]]*allow)\s*\(",
        r"@(?:file:)?Suppress(?:Warnings|FBWarnings|Lint)?\s*\(",
        r"#\s*pragma\s+(?:GCC|clang)\s+diagnostic\s+ignored|#\s*pragma\s+warning\s*\(?\s*disable",
        r"//go:build\b|//\s*\+build\b",
        r"\b(?:codespell|spell-checker|cspell):\s*(?:ignore|disable)",
        r"^(?:#!?\[|\[\[|__attribute__|__declspec|#\s*pragma\b).*(?:disable|suppress|no_?lint|system_header)",
    ),
    "type": _marks(
        r"\btype:\s*ignore",
        r"\bmypy:\s*(?:ignore|disable|allow|no-)",
        r"\b(?:based)?pyright:\s*(?:ignore|basic|report\w+\s*=\s*(?:false|none))",
        r"\b(?:pyre-(?:ignore|fixme)|pytype:\s*disable|ty:\s*ignore)",
        r"@ts-(?:ignore|expect-error|nocheck)",
        r"@(?:typing\.)?no_type_check\b",
        r"@?(?:phpstan-ignore|psalm-suppress)",
    ),
    "coverage": _marks(
        r"\bpragma:?\s*no\s*(?:cover|branch)|\bnocover\b|\bexcovr?_(?:line|start)",
        r"\b(?:LCOV|GCOVR?|GRCOV)_EXCL_|:nocov:",
        r"\b(?:istanbul|c8|v8|node:coverage)\s+(?:ignore|disable)|\bcodeCoverageIgnore",
        r"#\[\s*(?:coverage\(off\)|no_coverage)|@(?:lombok\.)?Generated\b",
    ),
    "format": _marks(
        r"\b(?:fmt|yapf|autopep8|isort):\s*(?:off|skip|disable)",
        r"\b(?:prettier-ignore|dprint-ignore|clang-format\s+off|rustfmt::skip)|@formatter:off",
    ),
    "sanitizer": _marks(r"no_?sanitize|#!?\[\s*sanitize\b|\bgo:norace\b"),
    "security": _marks(
        r"\b(?:nosec|nosemgrep|gitleaks:allow|trufflehog:ignore|checkov:skip|tfsec:ignore)\b",
    ),
}
"""Patterns of suppressions by kind of checker."""
_TOOLS = {
    "type": regex(r"\b(mypy|(based)?pyright|tsc|vue-tsc|pyre|pytype|ty|phpstan|psalm)\b"),
    "coverage": regex(r"--cov|\b(coverage|nyc|c8)\b|tarpaulin|llvm-cov|-cover\b|jacoco"),
    "sanitizer": regex(r"(?i)\b([atlm]|ub)san\b|sanitiz|\bgo test\b.*-race\b"),
    "security": regex(r"\b(bandit|semgrep|gosec|gitleaks|trivy|checkov)\b"),
}

_FAILURES = {
    "coverage": regex(r"(?i)\bcoverage\b.*\b(fail|less|below|threshold)|\bfail.*\bcoverage\b"),
    "sanitizer": regex(r"Sanitizer"),
}
"""Messages of tools that the settings of a test runner may start."""


@lru_cache(maxsize=1)
def kinds_failing(scene: Scene) -> frozenset[str]:
    """Kinds of suppressions that the failed gates know."""
    kinds: set[str] = set()
    for result in scene.case.failing:
        of_command = _kinds_of(result.command)
        if result.kind in (Kind.LINT, Kind.PRE_COMMIT) and not of_command:
            kinds |= {"lint", "type", "security"}
        if result.kind in (Kind.BUILD, Kind.CUSTOM):
            kinds |= {"lint", "type"}
        if result.kind is Kind.FORMAT:
            kinds.add("format")
        output = result.stdout + result.stderr
        kinds.update(kind for kind, failure in _FAILURES.items() if failure.search(output))
        behind = "\n".join(decides.reached([result.command], scene).lines)
        kinds |= of_command | _kinds_of(behind)
    return frozenset(kinds)


def _kinds_of(line: str) -> set[str]:
    """Kinds of suppressions of the tools in a shell line."""
    return {kind for kind, tools in _TOOLS.items() if tools.search(line)}


_NAME = regex(r"[\w@/:=-]{2,}")
_AROUND_RULE = regex(r"^-W(error=|no-)?|^.*::")


def silences(mark: "Suppression", path: str, scene: Scene) -> bool:
    """Whether a suppression silences a failure: by a gate's kind, or by a reported rule."""
    named = {_AROUND_RULE.sub("", name) for name in _NAME.findall(mark.text)}
    problems = chain.from_iterable(result.diagnostics for result in scene.case.failing)
    of_checkers = (one for one in problems if not one.test_id)
    of_rules = [one for one in of_checkers if one.rule_id]
    rules = {_AROUND_RULE.sub("", one.rule_id or "") for one in of_rules}
    is_reported = path in {one.path for one in of_rules} or not named.isdisjoint(rules)
    kinds = kinds_failing(scene) | ({"lint", "type"} if is_reported else set())
    return mark.kind in kinds


class Suppression(Struct, frozen=True, kw_only=True):
    """A new suppression."""

    kind: str
    line: int
    text: str


def added(delta: Delta) -> tuple[Suppression, ...]:
    """The new suppressions of a file; narrowing an existing one is allowed."""
    is_read = places.is_code(delta.path) or places.name(delta.path) == "Dockerfile"
    added_text = "\n".join(line for _, line in delta.added_lines)
    if not is_read or _silenced(added_text) is None:
        return ()
    old, new = delta.both(_remarks)
    gone, came = unpaired(old, new, lambda was, now: was[1] == now[1])
    broad = (one for one in gone if _NAMES_NO_RULE.search(one[1]))
    _, left = unpaired(broad, came, lambda was, now: now[1].startswith(was[1]))
    silenced = ((_silenced(text), line, text) for line, text in left)
    return tuple(Suppression(kind=k, line=line, text=text) for k, line, text in silenced if k)


_NAMES_NO_RULE = regex(r"(?i)(noqa|ignore|nosec|nolint|disable(-[a-z-]+)?|cover)$")


def _silenced(text: str) -> str | None:
    """Kind of checker that a text silences, if any."""
    kinds = (kind for kind in MARKS if any(pattern.search(text) for pattern in MARKS[kind]))
    return next(kinds, None)


def _remarks(path: str, source: bytes) -> list[tuple[int, str]]:
    """Comments, attributes and annotations with their lines."""
    if tokens.root(path, source) is None:
        lines = source.decode("utf-8", "replace").splitlines()
        return [(n, f"#{line.partition('#')[2]}".strip()) for n, line in enumerate(lines, 1)]
    nodes = nodes_of_types(path, source, _REMARKS)
    return [(node.start_point[0] + 1, text_of(node).strip()) for node in nodes]


_REMARKS = regex(
    r"comment|^((inner_)?attribute_item|(marker_)?annotation|preproc_(call|def)|decorator|attribute_(specifier|declaration)|ms_declspec_modifier)$"
)


def without(delta: Delta, marks: tuple[Suppression, ...]) -> bytes | None:
    """The file without these suppressions; None if one cannot be removed."""
    lines = delta.new_text.splitlines(keepends=True)
    for mark in marks:
        line, first = lines[mark.line - 1], mark.text.splitlines()[0]
        if len(mark.text.splitlines()) > 1 or first not in line:
            return None
        rest = line.replace(first, "", 1)
        lines[mark.line - 1] = rest.rstrip() + "\n" if rest.strip() else ""
    return "".join(lines).encode()
