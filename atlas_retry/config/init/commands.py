"""Understands a command line: its tool, its slot, its checking and fixing form.

Tables and text only; it starts nothing.
"""

import re

from msgspec import Struct

from atlas_retry.config.init.values import Slot
from atlas_retry.diagnostics.tools import ASSIGNED, bare
from atlas_retry.patterns import regex

CMAKE = "cmake -S . -B build && cmake --build build && ctest --test-dir build --output-on-failure"
_CARGO = r"(?:cargo|cross)(?: \+\S+)?"
_JVM = r"(?:\./)?(?:mvn|gradle)w?\b.*"


class ToolRow(Struct, frozen=True):
    """One tool: its purpose and options."""

    slot: Slot
    language: str
    """Empty: the program's own name."""
    start: str
    """Pattern of the start of the line."""
    writes: str = ""
    """Options that make it change files, joined by `|`; the first is the one to add."""
    checks: str = ""
    """Options that make it only check, likewise."""


TOOLS = (
    ToolRow(Slot.HOOKS, "any", r"pre-commit run|prek|lefthook run"),
    ToolRow(Slot.FORMAT, "python", r"ruff format|black|docformatter", "", "--check|--diff"),
    ToolRow(Slot.FORMAT, "python", r"isort", "", "--check-only|--check|--diff|-c"),
    ToolRow(Slot.FORMAT, "python", r"yapf|autopep8", "-i|--in-place|-ir", "-d"),
    ToolRow(Slot.FORMAT, "rust", rf"{_CARGO} fmt|rustfmt|taplo (?:fmt|format)", "", "--check"),
    ToolRow(Slot.FORMAT, "go", r"gofmt|go fmt|gofumpt|goimports|test -z .*gofmt.*"),
    ToolRow(Slot.FORMAT, "js", r"prettier", "--write|-w", "--check|--list-different|-l|-c"),
    ToolRow(Slot.FORMAT, "js", r"biome format", "--write"),
    ToolRow(Slot.FORMAT, "js", r"dprint (?:check|fmt)"),
    ToolRow(Slot.FORMAT, "deno", r"deno fmt", "", "--check"),
    ToolRow(Slot.FORMAT, "elixir", r"mix format", "", "--check-formatted"),
    ToolRow(Slot.FORMAT, "", r"dotnet format", "", "--verify-no-changes"),
    ToolRow(Slot.FORMAT, "terraform", r"(?:terraform|tofu) fmt", "", "-check"),
    ToolRow(Slot.FORMAT, "", r"swift[ -]?format", "", "--lint"),
    ToolRow(Slot.FORMAT, "", r"clang-format", "-i", "--dry-run -Werror|--dry-run|-n|-Werror"),
    ToolRow(Slot.FORMAT, "", r"shfmt", "-w", "-d|-l"),
    ToolRow(Slot.FORMAT, "", r"stylua|zig fmt|nixfmt|alejandra|buf format|scalafmt"),
    ToolRow(Slot.FORMAT, "php", r"php-cs-fixer fix", "", "--dry-run"),
    ToolRow(Slot.FORMAT, "php", r"pint", "", "--test"),
    ToolRow(Slot.FORMAT, "php", r"ecs check", "--fix"),
    ToolRow(Slot.FORMAT, "jvm", rf"{_JVM}spotless:(?:apply|check)", "apply", "check"),
    ToolRow(Slot.FORMAT, "jvm", rf"{_JVM}spotless(?:Apply|Check)", "Apply", "Check"),
    ToolRow(Slot.FORMAT, "jvm", rf"{_JVM}ktlint(?:Format|Check)", "Format", "Check"),
    ToolRow(Slot.FORMAT, "jvm", rf"{_JVM}(?:fmt|formatter):\w+"),
    ToolRow(Slot.LINT, "python", r"ruff(?: check)?", "--fix"),
    ToolRow(Slot.LINT, "python", r"flake8|pylint|pyflakes|pycodestyle|pydocstyle|bandit|vulture"),
    ToolRow(Slot.LINT, "python", r"interrogate|check-manifest|validate-pyproject"),
    ToolRow(
        Slot.LINT,
        "rust",
        rf"{_CARGO} (?:(?:hack )?clippy|deny|machete|udeps|audit|shear|semver-checks)",
    ),
    ToolRow(Slot.LINT, "go", r"golangci-lint run", "--fix"),
    ToolRow(Slot.LINT, "go", r"golangci-lint|go vet|staticcheck|revive|gosec|go mod tidy -diff"),
    ToolRow(Slot.LINT, "js", r"eslint|xo|standard|oxlint|stylelint", "--fix"),
    ToolRow(Slot.LINT, "js", r"biome (?:check|lint|ci)", "--write"),
    ToolRow(Slot.LINT, "js", r"knip|publint"),
    ToolRow(Slot.LINT, "deno", r"deno lint", "--fix"),
    ToolRow(Slot.LINT, "elixir", r"mix (?:credo|deps\.unlock --check-unused|compile .*as-errors)"),
    ToolRow(Slot.LINT, "terraform", r"(?:terraform|tofu) validate|tflint"),
    ToolRow(Slot.LINT, "helm", r"helm lint|ct lint"),
    ToolRow(Slot.LINT, "swift", r"swiftlint", "--fix"),
    ToolRow(Slot.LINT, "ruby", r"rubocop", "-a"),
    ToolRow(Slot.LINT, "ruby", r"standardrb", "--fix"),
    ToolRow(Slot.LINT, "php", r"phpcs|parallel-lint|php (?:-\S+ )*-l"),
    ToolRow(Slot.LINT, "any", r"codespell", "-w"),
    ToolRow(Slot.LINT, "any", r"typos|shellcheck|actionlint|markdownlint|yamllint|hadolint|reuse"),
    ToolRow(Slot.LINT, "any", r"cspell|vale|buf lint|zizmor|ls-lint"),
    ToolRow(Slot.TYPES, "python", r"mypy|pyright|basedpyright|ty check|pyrefly"),
    ToolRow(Slot.TYPES, "js", r"tsc|vue-tsc|svelte-check|tsgo|tsd|attw"),
    ToolRow(Slot.TYPES, "deno", r"deno check"),
    ToolRow(Slot.TYPES, "php", r"phpstan|psalm"),
    ToolRow(Slot.TYPES, "ruby", r"srb tc"),
    ToolRow(Slot.TYPES, "elixir", r"mix dialyzer"),
    ToolRow(Slot.TYPES, "rust", rf"{_CARGO} (?:(?:hack|msrv|minimal-versions) )?check"),
    ToolRow(Slot.TEST, "python", r"pytest|py\.test|unittest|coverage run"),
    ToolRow(Slot.CUSTOM, "python", r"coverage report|diff-cover"),
    ToolRow(Slot.TEST, "python", r"(?:python\S* )?(?:\./)?manage\.py test"),
    ToolRow(Slot.TEST, "go", r"go test|gotestsum|ginkgo"),
    ToolRow(
        Slot.TEST,
        "rust",
        rf"{_CARGO} (?:(?:hack |miri )?(?:test|nextest run)|llvm-cov|tarpaulin|careful test)",
    ),
    ToolRow(Slot.TEST, "js", r"vitest|jest|mocha|ava|tap|c8|nyc|node (?:\S+ )*--test"),
    ToolRow(Slot.TEST, "js", r"bun test|cypress run|playwright test"),
    ToolRow(Slot.TEST, "deno", r"deno test"),
    ToolRow(Slot.TEST, "elixir", r"mix (?:test|coveralls\S*)"),
    ToolRow(Slot.TEST, "ruby", r"rspec|rails test"),
    ToolRow(Slot.TEST, "php", r"phpunit|pest"),
    ToolRow(Slot.TEST, "cpp", r"ctest|meson test|cmake -S .*&& ctest"),
    ToolRow(Slot.TEST, "", r"dotnet test|swift test|bats|zig build test|busted|helm unittest"),
    ToolRow(Slot.TEST, "", r"lein test|stack test|cabal (?:v2-)?test|bazel(?:isk)? test"),
    ToolRow(Slot.TEST, "", r"terraform test|dart test|flutter test|sbt .*test"),
    ToolRow(Slot.TEST, "jvm", rf"{_JVM}\b(?:test|verify|check|build|install|package|allTests)"),
    ToolRow(Slot.LINT, "jvm", rf"{_JVM}(?<![\w.-])(?:checkstyle|pmd|spotbugs|detekt|lint)\S*"),
    ToolRow(Slot.BUILD, "jvm", rf"{_JVM}\b(?:compile|assemble|javadoc)"),
    ToolRow(Slot.BUILD, "rust", rf"{_CARGO} (?:(?:hack )?build|rustc|(?:rust)?doc|bench)"),
    ToolRow(Slot.BUILD, "", r"(?:go|dotnet|swift|mkdocs|vite) build|sphinx-build"),
    ToolRow(Slot.BUILD, "elixir", r"mix compile"),
    ToolRow(
        Slot.BUILD, "cpp", r"cmake(?! -E)|meson (?:setup|compile)|ninja|autoreconf|\./autogen\.sh"
    ),
    ToolRow(Slot.BUILD, "cpp", r"\./(?:configure|bootstrap)"),
    ToolRow(Slot.BUILD, "", r"(?:(?:uv|hatch|flit|poetry|pdm) )?build|twine check"),
    ToolRow(Slot.BUILD, "cpp", r"g?make(?: -\S+)*$"),
)
"""The first row with a matching start applies."""
_STARTS = tuple((tool, regex(rf"({tool.start})(?![\w.-])")) for tool in TOOLS)
WORDS = {
    Slot.HOOKS: "precommit prek hooks",
    Slot.TYPES: "types type typecheck typechecking typing mypy pyright ty tsc stan phpstan psalm",
    Slot.FORMAT: "format fmt formatting reformat prettier black",
    Slot.LINT: "lint linter linters lints eslint style flake ruff clippy vet analysis"
    " quality cs analyse golangci verify codespell standard xo biome rubocop shellcheck",
    Slot.TEST: "test tests unit unittest unittests doctest doctests jest vitest mocha spec specs"
    " rspec coverage cov ci py",
    Slot.BUILD: "build compile bundle docs doc all",
}
"""Words in the name of a target, script or session that tell its purpose, best first."""


INSTALLS = regex(r"""(?x)
      (?:(?!echo|printf)\S+[ ]+){1,4}install(?!\S)
    | (?:npm|pnpm|yarn|bun)[ ](?:i|ci|add)(?!\S)
    | (?:pdm|composer|poetry|uv)[ ](?:sync|update|require)(?!\S)
    | (?:(?:curl|wget)[ ].*\|[ ]*)?(?:sudo[ ]+)?(?:ba|z)?sh(?:[ ]-\w*s\b.*)?$
    """)
"""Start of a line that installs packages or programs, or runs a downloaded script from a pipe."""


PREPARES = regex(r"""(?x)(?:sudo(?:[ ]-\S+)*[ ])?(?:
      (?:echo|printf|cat|ls|cd|pushd|popd|mkdir|cp|mv|rm|touch|ln|chmod|chown|export|set|unset|source
        |\.|exit|return|true|:|sleep|date|env$|printenv|lscpu|nproc|pwd|which|whereis|type|uname|df|du|free|ps
        |kill|mount|umount
        |wait|trap|shopt|ulimit|umask|tar|unzip|gzip|curl|wget|jq|sed|awk|head|tail|tee|find|read|id
        |test[ ]-[defnsz]|\[\[?|git|gh|hub|ssh\S*|scp|rsync|gpg|aws|gcloud|az|kubectl|systemctl
        |service
        |apt|apt-get|apt-key|add-apt-repository|dpkg|brew|yum|dnf|apk|pacman|choco|snap|pip\S*|pipx
        |conda|mamba|micromamba|virtualenv|nvm|fnm|corepack|rustup|rbenv|asdf|sdk|sdkmanager|pecl
        |phpenv|update-alternatives|locale-gen|codecov|coveralls|goveralls|lcov|genhtml|gcovr
        |cc-test-reporter|sccache|ccache|psql|mysql\S*|createdb|redis-cli|semantic-release|dos2unix
        |swapon|install|fallocate|mkswap|modprobe|sysctl|zip|7z|xz|strip|patch|command|sha256sum|local
        |tr|sort|uniq|cut|wc|basename|dirname|realpath|readlink|seq|mktemp|stat|xargs$)
    | sudo[ ](?:-\S+[ ])*(?!-|\./|make|npm|pnpm|yarn|just|docker)\S+
    | docker[ ](?:pull|login|info|version|images|image|tag|push|load|save|start|stop|rm|ps|logs
        |network|volume|buildx|context|cp|(?:compose|-compose)[ ](?:up|down|pull|logs|ps|build))
    | docker-compose[ ](?:.*[ ])?(?:up|down|pull|logs|ps|build)
    | (?:npm|pnpm|yarn|bun)[ ]
      (?:publish|config|cache|set|version|login|whoami|pack|link|store|fetch)
    | (?:npm|pnpm|yarn)(?:[ ]--\S+)*$
    | (?:python[\d.]*[ ]-m[ ])?(?:venv|ensurepip|coverage[ ](?:combine|xml|html|lcov|json|erase))
    | (?:uv|poetry|pdm|pipenv|hatch|rye|pixi)[ ]
      (?:venv|python|pip|config|lock|cache|self|env|version)
    | cargo(?:[ ]\+\S+)?[ ](?:binstall|fetch|login|publish|update|generate-lockfile|metadata|clean
        |llvm-cov[ ]report|add|vendor|package)
    | go[ ](?:mod[ ](?:download|tidy$|verify)|get|env|clean|work)
    | make[ ](?:install|deps|setup|clean|distclean|bootstrap|prepare)
    | gem[ ]\S+|bundle[ ](?:config|update|lock|clean|info)
    | composer[ ](?:config|global|require|remove|show|bin[ ]\S+[ ](?:install|update|require))
    | mix[ ](?:deps|local|archive|hex)\S* | rebar3[ ](?:get-deps|update)
    | dotnet[ ](?:restore|tool|nuget|workload)|nuget
    | (?:terraform|tofu)[ ]init|helm[ ](?:repo|dep\w*)|twine[ ]upload|mise[ ]\S+|gradle[ ]wrapper
    | (?:npx|pnpm|yarn|bunx)[ ](?:exec[ ])?(?:playwright|cypress)[ ]install
    | (?:\S+[ ]){1,20}(?:[\w-]+:)?(?:publish|deploy|upload|setup)(?!\S)
    | cmake[ ]-E
    | tox[ ].*--notest(?!\S).*
    | \.?/?[\w./-]*(?:install|setup)[\w-]*\.(?:sh|py)(?!\S).*
    | (?:\S+[ ]){0,4}(?:--version|-VV?|--help|version)$
    | python[\d.]*[ ]-m[ ](?:site|sysconfig)$
    )(?!\S)
    | (?:.*>[ ]?)"?'?\$\{?GITHUB_(?:OUTPUT|ENV|PATH|STEP_SUMMARY)
    | (?:(?:ba|z)?sh[ ])?<\(curl
    """)
"""Start of a line that installs, moves files, talks to servers or reports: it checks nothing."""


RUNS = regex(r"""(?x)
    (?:cargo|cross|mix|mvn|\./mvnw|gradle|\./gradlew|dotnet|sbt|lein|stack|cabal|dune|zig|swift
      |bazel(?:isk)?|deno|rebar3|flutter|dart|rake)[ ]
    | go[ ](?:run|generate|tool|list|fix)[ ]
    | docker(?:[ ]compose|-compose)?[ ](?:.*[ ])?(?:run|build)[ ]
    """)
"""Start of a line that runs a build tool, or a container: it fails the job if that fails."""


HANDS_OUT = regex(
    r"(?:\./)?(?:mvn|gradle)w? (?:.* )?[\w:-]*?"
    r"(?:deploy|publish\w*|release|upload\w*)(?::\S+)?(?!\S)"
)
"""A line of Maven or Gradle that deploys or publishes, whatever it checks before."""


def runs_a_tool(line: str) -> bool:
    """Whether a line starts a build tool, or a program of the project by a launcher."""
    plain = re.sub(rf"^{ASSIGNED}", "", line.strip())
    return bool(RUNS.match(plain)) or bare(plain) != plain


def only_prepares(line: str) -> bool:
    """Whether a line is set-up, which CI needs on an empty machine; `understand` has precedence."""
    plain = re.sub(r"\s*\|\|\s*(?:true|:)$", "", re.sub(rf"^{ASSIGNED}", "", line.strip()))
    starts = (plain, bare(plain))
    is_set_up = any(PREPARES.match(each) or INSTALLS.match(each) for each in starts)
    is_set_up = is_set_up or not plain or HANDS_OUT.match(plain) is not None
    return is_set_up and understand(line) is None and not re.match(r"git (?:diff|status)\b", plain)


class UnderstoodCommand(Struct, frozen=True, kw_only=True):
    """Tool and purpose of one command line."""

    slot: Slot
    tool: str
    """Program, with the subcommand if the table has one."""
    language: str


def understand(line: str) -> UnderstoodCommand | None:
    """The tool that a line starts; None if it is not in the table: `echo`, `npm ci` ..."""
    rest = bare(line)
    if re.search(r"--(?:version|help)\b", rest) or HANDS_OUT.match(rest):
        return None
    tool, start = _tool_of(rest)
    if tool is None:
        return None
    program = start.split()[0].removeprefix("./")
    name = program.rstrip("w") if tool.language == "jvm" else tool_name(start)
    return UnderstoodCommand(slot=tool.slot, tool=name, language=tool.language or program)


def _tool_of(rest: str) -> tuple[ToolRow | None, str]:
    """The row of a bare line, and the matched start of the line."""
    matches = ((tool, start.match(rest)) for tool, start in _STARTS)
    return next(((tool, match[1]) for tool, match in matches if match), (None, ""))


def installs(line: str) -> bool:
    """Whether a line installs and checks nothing; Maven's `install` also runs the tests."""
    return bool(INSTALLS.match(line)) and understand(line) is None


def tool_name(words: str) -> str:
    """The tool's name in hooks and detectors."""
    plain = re.sub(r" \+\S+| run$| check$", "", words)
    return {"ruff format": "ruff-format", "go fmt": "gofmt"}.get(plain, plain)


def parts_of_name(name: str) -> list[str]:
    """The words of a name, without versions: `test` and `py` for `test:py312`."""
    plain = name.lower().replace("pre-commit", "precommit")
    return [part.rstrip("0123456789.") for part in re.split("[:_-]", plain)]


def slot_of_name(name: str) -> Slot | None:
    """The purpose of a target with this name."""
    parts = parts_of_name(name)
    for slot, words in WORDS.items():
        if not set(words.split()).isdisjoint(parts):
            return slot
    return Slot.LINT if "lint" in name.lower() else None


def only_checks(line: str) -> str:
    """The line in its checking form; unchanged if it has none or already is in it."""
    if re.fullmatch(r"go fmt (\S+)", bare(line)):
        return 'test -z "$(gofmt -l . 2>&1 | tee /dev/stderr)"'  # names the files, then fails
    tool, start = _tool_of(bare(line))
    if tool is None or re.search(_words(tool.checks), line):
        return line
    checks = tool.checks.partition("|")[0]
    if tool.writes:
        return _tidied(re.sub(_words(tool.writes), checks, line, count=1))
    return line.replace(start, f"{start} {checks}", 1) if checks else line


def fixer_of(line: str) -> str | None:
    """The line that fixes what the line checks; None if the table has none."""
    if "gofmt -l" in line:
        return "gofmt -w ."
    if re.match(r"cargo(?: \+\S+)? clippy", bare(line)) and "$" not in line:
        return f"{line.partition(' -- ')[0]} --fix --allow-dirty --allow-staged"
    tool, _ = _tool_of(bare(line))
    if tool is None or only_checks(line) != line:
        return None
    writes = tool.writes.partition("|")[0]
    if not tool.checks:
        return f"{line} {writes}" if writes and "--" not in line.split() else None
    first, *others = re.split(_words(tool.checks), line)
    fixed = first.removesuffix("-- ") + writes + "".join(others)
    return _tidied(fixed) if others else None


def _words(options: str) -> str:
    """Pattern of any of the options, as whole words, or of the end of a Gradle task."""
    if not options:
        return r"(?!)"
    return rf"(?<!\S)(?:{options})(?!\S)" if options.startswith("-") else rf"(?:{options})(?!\w)"


def _tidied(line: str) -> str:
    return re.sub(r"  +", " ", line).strip()
