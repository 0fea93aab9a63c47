"""What a command line does: which tool, which slot, and how it only checks or only fixes.

Tables and text only; it starts nothing.
"""

import re

from msgspec import Struct

from atlas_retry.config.init.values import Slot

ASSIGNED = r"(?:[A-Za-z_]\w*=(?:'[^']*'|\"[^\"]*\"|\S*)\s+)*"
_VALUED = "group|only-group|extra|with|python|package|project|isolated|env-file|filter|C|p"
OPTIONS = rf"(?:--?(?:{_VALUED})[ =]\S+\s+|-{{1,2}}[\w-]+(?:=\S+)?\s+)*"
LAUNCHER = re.compile(
    r"(?:(?:uv|poetry|pdm|pipenv|rye|hatch|pixi) run|uvx|pipx run|npx|bunx"
    r"|(?:pnpm|npm|yarn|bundle|composer) exec|(?:pnpm|yarn) dlx|yarn run|yarn|pnpm|python[\d.]* -m"
    r"|coverage run -m|xvfb-run|cross-env|time"
    rf"|bun run|sudo|mise exec --|rtx exec --)\s+{OPTIONS}(?:--\s+)?"
)
"""What starts another program: taken off before the program is looked up."""
_PLACE = re.compile(r"(?:\./)?(?:node_modules/\.bin|vendor/bin|bin|\.venv/bin|venv/bin)/")

COMMANDS: tuple[tuple[Slot, str, str], ...] = (
    (Slot.HOOKS, "any", r"pre-commit run|prek|lefthook run"),
    (Slot.FORMAT, "python", r"ruff format|black|yapf|autopep8|isort|docformatter"),
    (Slot.FORMAT, "rust", r"cargo(?: \+\S+)? fmt|rustfmt|taplo (?:fmt|format)"),
    (Slot.FORMAT, "go", r"gofmt|go fmt|gofumpt|goimports|test -z .*gofmt.*"),
    (Slot.FORMAT, "js", r"prettier|biome format|dprint (?:check|fmt)|deno fmt"),
    (Slot.FORMAT, "", r"mix format|dotnet format|terraform fmt|tofu fmt|swift[ -]?format"),
    (Slot.FORMAT, "", r"clang-format|shfmt|stylua|zig fmt|nixfmt|alejandra|buf format|scalafmt"),
    (Slot.FORMAT, "php", r"php-cs-fixer|pint|ecs"),
    (Slot.LINT, "python", r"ruff(?! format)|flake8|pylint|pyflakes|pycodestyle|pydocstyle|bandit"),
    (Slot.LINT, "python", r"vulture|interrogate|check-manifest|validate-pyproject|twine check"),
    (Slot.LINT, "rust", r"cargo(?: \+\S+)? (?:clippy|deny|machete|udeps|hack clippy)"),
    (Slot.LINT, "go", r"golangci-lint|go vet|staticcheck|revive|gosec|go mod tidy -diff"),
    (Slot.LINT, "js", r"eslint|biome (?:check|lint|ci)|xo|standard|oxlint|stylelint|knip|publint"),
    (Slot.LINT, "js", r"deno lint"),
    (Slot.LINT, "elixir", r"mix (?:credo|deps\.unlock --check-unused|compile .*as-errors)"),
    (Slot.LINT, "terraform", r"(?:terraform|tofu) validate|tflint"),
    (Slot.LINT, "helm", r"helm lint|ct lint"),
    (Slot.LINT, "swift", r"swiftlint"),
    (Slot.LINT, "ruby", r"rubocop|standardrb"),
    (Slot.LINT, "php", r"phpcs"),
    (Slot.LINT, "any", r"codespell|typos|shellcheck|actionlint"),
    (Slot.LINT, "any", r"markdownlint|yamllint|hadolint|reuse"),
    (Slot.LINT, "any", r"cspell|vale|buf lint|zizmor|ls-lint"),
    (Slot.TYPES, "python", r"mypy|pyright|basedpyright|ty check|pyrefly"),
    (Slot.TYPES, "js", r"tsc|vue-tsc|svelte-check|tsgo|tsd|attw|deno check"),
    (Slot.TYPES, "", r"phpstan|psalm|srb tc|mix dialyzer|cargo check"),
    (Slot.TEST, "python", r"pytest|py\.test|unittest|coverage run"),
    (Slot.TEST, "python", r"(?:python\S* )?(?:\./)?manage\.py test"),
    (Slot.TEST, "go", r"go test|gotestsum|ginkgo"),
    (Slot.TEST, "rust", r"cargo(?: \+\S+)? (?:test|nextest run|llvm-cov|tarpaulin|hack test)"),
    (Slot.TEST, "js", r"vitest|jest|mocha|ava|tap|c8|nyc|node (?:\S+ )*--test|playwright test"),
    (Slot.TEST, "js", r"deno test|bun test|cypress run"),
    (Slot.TEST, "", r"mix test|dotnet test|swift test|ctest|rspec|rails test|phpunit|pest|bats"),
    (Slot.TEST, "", r"zig build test|busted|helm unittest|lein test|stack test|cabal (?:v2-)?test"),
    (Slot.TEST, "", r"meson test|bazel(?:isk)? test|sbt .*test"),
    (Slot.TEST, "", r"terraform test|dart test|flutter test"),
    (Slot.BUILD, "", r"cargo(?: \+\S+)? (?:build|doc)|go build"),
    (Slot.BUILD, "", r"dotnet build|swift build|mix compile"),
    (Slot.BUILD, "", r"mkdocs build|sphinx-build|vite build"),
    (Slot.BUILD, "", r"build|uv build|hatch build"),
)  # fmt: skip
"""Slot, language (empty: of the tool's own), and how the line begins."""
LANGUAGES = {
    "mix": "elixir", "deno": "deno", "tofu": "terraform", "ctest": "cpp", "rspec": "ruby",
    "rails": "ruby", "srb": "ruby", "phpunit": "php", "pest": "php", "phpstan": "php",
    "psalm": "php", "cargo": "rust", "sbt": "jvm",
}  # fmt: skip
"""By the first word, where the table names none and the word is not the language's own name."""
_KNOWN = tuple((slot, lang, re.compile(rf"({words})(?![\w.-])")) for slot, lang, words in COMMANDS)

JVM = re.compile(r"(?:\./)?(mvnw?|gradlew?)\b(.*)")
GOALS = (
    (Slot.FORMAT, r"(?:spotless|fmt|formatter):(?:check|apply|format|validate)"),
    (Slot.FORMAT, r"spotless(?:Check|Apply)|ktlint\w+"),
    (Slot.TEST, r"\b(?:test|verify|check|build|install|package|allTests)\b"),
    (Slot.LINT, r"checkstyle|pmd|spotbugs|detekt|lint"),
    (Slot.BUILD, r"\b(?:compile|assemble|javadoc)\b"),
)  # fmt: skip

CHECKS: tuple[tuple[str, str, str], ...] = (
    (r"ruff format|black|deno fmt|taplo (?:fmt|format)|docformatter", "", "--check"),
    (r"isort", "", "--check-only"),
    (r"cargo(?: \+\S+)? fmt", "", "--check"),
    (r"mix format", "", "--check-formatted"),
    (r"dotnet format", "", "--verify-no-changes"),
    (r"(?:terraform|tofu) fmt", "", "-check"),
    (r"swiftformat", "", "--lint"),
    (r"pint", "", "--test"),
    (r"php-cs-fixer fix", "", "--dry-run"),
    (r"prettier", "--write", "--check"),
    (r"yapf", "-i", "-d"),
    (r"clang-format", "-i", "--dry-run -Werror"),
    (r"shfmt", "-w", "-d"),
    (r"biome \w+", "--write", ""),
    (r"ruff check|eslint|xo|standard|standardrb|ecs check|stylelint", "--fix", ""),
    (r"oxlint|deno lint|swiftlint", "--fix", ""),
    (r"golangci-lint run", "--fix", ""),
    (r"rubocop", "-a", ""),
    (r"codespell", "-w", ""),
    (r".*spotless:", "apply", "check"),
    (r".*spotless", "Apply", "Check"),
    (r".*ktlint", "Format", "Check"),
)  # fmt: skip
"""How a line begins, the word that makes it change files, and the word that makes it only check."""
CHECK_WORDS = {
    "--check": r"--check|--diff|--list-different|-l(?= )|-c(?= )|--check-only",
    "--check-only": r"--check-only|--check|--diff|-c(?= )",
    "--dry-run -Werror": r"--dry-run -Werror|--dry-run|-n(?= )|-Werror",
    "--verify-no-changes": r"--verify-no-changes",
}
"""What also counts as such a word."""
FIX_WORDS = {"--write": r"--write|-w(?= )", "--fix": r"--fix", "-i": r"--in-place|-i|-ir"}
NAMED: tuple[tuple[Slot, str], ...] = (
    (Slot.HOOKS, r"pre-?commit|prek|hooks"),
    (Slot.TYPES, r"(?:check-?)?(?:typ(?:es?|ing|echeck)|type-?check(?:ing)?|test:types)"),
    (Slot.TYPES, r"mypy|pyright|ty|tsc"),
    (Slot.FORMAT, r"(?:check-?)?(?:fmt|format(?:ting)?|reformat)(?:[:-](?:check|all|js))*"),
    (Slot.FORMAT, r"(?:check-?)?(?:prettier|black)(?:[:-]check)?"),
    (Slot.LINT, r".*lint.*|flake8|ruff|clippy|vet|style|static(?:-?analysis)?"),
    (Slot.LINT, r"quality|cs|analyse|golangci-lint|verify|codespell|eslint"),
    (Slot.TEST, r"(?:.*[:_-])?(?:(?:doc)?tests?|unit(?:tests?)?|specs?)(?:[:_-].*)?"),
    (Slot.TEST, r"(?:.*[:_-])?(?:cov(?:erage)?|ci)(?:[:_-].*)?"),
    (Slot.TEST, r"py3?|py\d.*"),
    (Slot.BUILD, r"build(?:[:_-].*)?|compile|bundle|docs?(?:[:_-].*)?"),
)  # fmt: skip
"""What the name of a target, script or session says of its work."""


class UnderstoodCommand(Struct, frozen=True, kw_only=True):
    """What one command line does."""

    slot: Slot
    tool: str
    """Its program, with the subcommand where the table names one."""
    language: str


def bare(line: str) -> str:
    """The line without what sets variables and starts other programs."""
    rest = re.sub(rf"^{ASSIGNED}", "", line.strip())
    while True:
        shorter = LAUNCHER.sub("", rest, count=1) if LAUNCHER.match(rest) else rest
        shorter = _PLACE.sub("", re.sub(rf"^{ASSIGNED}", "", shorter), count=1)
        if shorter in (rest, ""):
            return rest
        rest = shorter


def understand(line: str) -> UnderstoodCommand | None:
    """The tool that a line starts; None for one that is in no table: `echo`, `npm ci` ..."""
    rest = bare(line)
    if re.search(r"--(?:version|help)\b", rest):
        return None
    if jvm := JVM.match(rest):
        return _of_jvm(jvm[1].rstrip("w"), jvm[2])
    for slot, language, start in _KNOWN:
        if match := start.match(rest):
            word = match[1].split()[0]
            named = "deno" if word == "deno" else language or LANGUAGES.get(word, word)
            return UnderstoodCommand(slot=slot, tool=tool_name(match[1]), language=named)
    return None


def _of_jvm(tool: str, goals: str) -> UnderstoodCommand | None:
    slot = next((slot for slot, words in GOALS if re.search(words, goals)), None)
    return UnderstoodCommand(slot=slot, tool=tool, language="jvm") if slot else None


def only_asked_to_check(line: str) -> UnderstoodCommand | None:
    """A program in no table whose own option says that it only checks."""
    match = re.match(r"([\w.-]+) (?:[^|;&]* )?--check(?= |$)", bare(line))
    return UnderstoodCommand(slot=Slot.LINT, tool=match[1], language=match[1]) if match else None


def startable(body: str) -> str | None:
    """The checks that a target starts as one shell line; None where a part is the runner's own."""
    joined = re.sub(r"\\\n\s*", " ", body)
    lines = [" ".join(line.strip().lstrip("@-").split()) for line in joined.split("\n")]
    checks = [line for line in lines if understand(line)]
    opaque = any(re.search(r"[{}$]", line) for line in checks)
    return None if opaque else " && ".join(checks) or None


def tool_name(words: str) -> str:
    """As hooks and detectors name it."""
    plain = re.sub(r" \+\S+| run$| check$", "", words)
    return {"ruff format": "ruff-format", "go fmt": "gofmt"}.get(plain, plain)


def slot_of_name(name: str) -> Slot | None:
    """What a target of that name is for."""
    plain = name.lower()
    return next((slot for slot, words in NAMED if re.fullmatch(words, plain)), None)


def only_checks(line: str) -> str:
    """The line in its form that changes nothing; the same where it has none or is that already."""
    if re.fullmatch(r"go fmt (\S+)", bare(line)):
        return 'test -z "$(gofmt -l .)"'
    row = _row(line)
    if not row:
        return line
    head, writes, checks = row
    if checks and re.search(rf"(?:^|\s){_checking(checks)}(?:\s|$)", f"{line} "):
        return line
    changed = re.sub(rf"{_fixing(writes)}", checks, f"{line} ", count=1) if writes else line
    if writes or not checks:
        return re.sub(r"  +", " ", changed).strip()
    return line.replace(head, f"{head} {checks}", 1)


def fixer_of(line: str) -> str | None:
    """The line that fixes what the line checks; None where the tables know of none."""
    if "gofmt -l" in line:
        return "gofmt -w ."
    if re.match(r"cargo(?: \+\S+)? clippy", bare(line)) and "$" not in line:
        return f"{line.partition(' -- ')[0]} --fix --allow-dirty --allow-staged"
    row = _row(line)
    if not row or only_checks(line) != line:
        return None
    head, writes, checks = row
    if not checks:
        return f"{line} {writes}" if "--" not in line.split() else None
    without = re.sub(rf"(?:-- )?{_checking(checks)}(?=\s|$)", writes, f"{line} ", count=1)
    while without != (more := re.sub(rf"\s{_checking(checks)}(?=\s|$)", "", without)):
        without = more
    plain = re.sub(r"  +", " ", without).strip()
    return plain if plain != line and head in plain else None


def _row(line: str) -> tuple[str, str, str] | None:
    rest = bare(line)
    for start, writes, checks in CHECKS:
        match = re.match(rf"({start})(?![\w.-])|({start})(?={writes or '$'}|{checks or '$'})", rest)
        if match:
            return match[0], writes, checks
    return None


def _checking(word: str) -> str:
    return f"(?:{CHECK_WORDS.get(word, re.escape(word))})"


def _fixing(word: str) -> str:
    apart = r"(?<!\S)" if word.startswith("-") else ""
    return f"{apart}(?:{FIX_WORDS.get(word, re.escape(word))})"
