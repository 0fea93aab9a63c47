"""Messages of tools that a toolchain is missing or too old: no edit of the code installs one."""

from collections.abc import Iterable

from atlas_retry.diagnostics.values import NotInstalled
from atlas_retry.patterns import regex

_NPM = r"(?:npm (?:ERR!|error) )"
_MAVEN = r"(?:\[(?:ERROR|WARNING)\] )?(?:Rule \d+: )?\S*"
ROWS: tuple[tuple[str, ...], ...] = (
    # Go: gover/toolchain.go of its command
    (r"(?:go: )?\S+ requires go >= (\S+) \(running go ([\w.]+)",
     "it needs Go {0}, and Go {1} runs here"),
    (r"go: download go(\S+) for \S+: toolchain not available",
     "it needs Go {0}, which is not installed and cannot be downloaded"),
    # rustup, errors.rs
    (r"error: toolchain '([^']+)' is not installed",
     "the toolchain {0} is not installed", "rustup toolchain install {0}"),
    (r"error: '(?:cargo-)?(\w+)(?:\.exe)?' is not installed for the toolchain '([^']+)'",
     "{0} is not installed for the toolchain {1}", "rustup component add {0} --toolchain {1}"),
    # Cargo, main.rs and cargo_compile
    (r"error: no such (?:sub)?command: `([\w-]+)`",
     "cargo-{0} is not installed", "cargo install cargo-{0}"),
    (r"error: rustc (\S+) is not supported by the following package",
     "a package needs a newer Rust than {0}, which runs here", "rustup update"),
    (r"(?:error: )?package `[^`]+` cannot be built because it requires rustc (\S+) or newer",
     "it needs Rust {0}", "rustup update"),
    (r" +this version of Cargo is older than the `(\d+)` edition",
     "Cargo is older than the edition {0}, which the project uses", "rustup update"),
    (r"error: the `-Z` flag is only accepted on the nightly channel of Cargo",
     "it needs a nightly toolchain of Rust",
     "rustup toolchain install nightly && rustup override set nightly"),
    # npm, error-message.js; pnpm, package-is-installable; Yarn 1
    (_NPM + r"notsup Required: +(\{.+\})", "it needs other versions of Node.js or npm: {0}"),
    (r" ?ERR_PNPM_UNSUPPORTED_ENGINE +(.+)", "it needs another version of Node.js or pnpm: {0}"),
    (r" ?ERR_PNPM_BAD_PM_VERSION +This project is configured to use v?(\S+) of pnpm",
     "it needs pnpm {0}", "corepack enable"),
    (r'error .+: The engine "(\w+)" is incompatible .+ Expected version "([^"]+)"',
     "it needs {0} {1}"),
    ((r"(?:error|Internal Error:|Usage Error:) ?This project(?:'s| is) .*"
      r"(?:packageManager\": \"|configured to use )(\w+)"),
     "it needs {0}, by Corepack", "corepack enable"),
    # Gradle, its launcher, variants and toolchains
    (r"(?:> )?Gradle requires JVM (\d+) or later to run",
     "Gradle needs a JDK of version {0} or later"),
    ((r"\s*> Dependency requires at least JVM runtime version (\d+)\. "
      r"This build uses a Java (\d+)"),
     "it needs a JDK of version {0} or later, and Java {1} runs here"),
    (r"\s*(?:> )?Cannot find a Java installation .*matching.*languageVersion=(\d+)",
     "it needs a JDK of version {0}"),
    # javac, also by Maven and Gradle; the enforcer plugin; the start scripts
    ((r"(?:\[ERROR\] .*|Caused by: .*|.*> )?error: "
      r"(?:release version|invalid (?:source|target) release:) (\d+)"),
     "it needs a JDK of version {0}"),
    (_MAVEN + r"Detected (JDK|Maven) [Vv]ersion:? (.+ is not in the allowed range \S+)",
     "it needs another version of {0}: {1}"),
    ((r"(?:ERROR: JAVA_HOME is not set and no 'java'"
      r"|The JAVA_HOME environment variable is not)"), "no JDK was found (JAVA_HOME)"),
    # tox, its environments of Python and their selection
    ((r"[\w.-]+: (?:failed with|skipped because) "
      r"could not find python interpreter.* (\S+)$"), "tox found no interpreter for {0}"),
    (r"ROOT: HandledError\| provided environments not found in configuration file",
     "tox has no environment of that name: see `tox list`"),
    # uv, uv-python; pip
    (r"error: No interpreter found for Python (.+) in ",
     "no Python {0} is installed", "uv python install"),
    (r"ERROR: Package '[^']+' requires a different Python: (\S+) not in '([^']+)'",
     "it needs Python {1}, and {0} runs here"),
    # Playwright, its registry; Cypress, errors.js
    ((r".*(?:browserType\.launch: )?Executable doesn't exist at "
      r"\S*(?:ms-playwright|chromium|firefox|webkit)"),
     "the browsers of Playwright are not installed", "npx playwright install"),
    (r"The cypress npm package is installed, but the Cypress binary is missing",
     "the Cypress binary is not installed", "npx cypress install"),
    # Bundler, RubyGems
    (r"Your Ruby version is (\S+), but your Gemfile specified (.+)",
     "it needs Ruby {1}, and {0} runs here"),
    (r"Run `bundle install` to install missing gems", "gems are not installed", "bundle install"),
    # Composer, platform_check.php; Mix; the .NET SDK
    (r"(?:.*: )?Your Composer dependencies require a PHP version \"([^\"]+)\"",
     "it needs PHP {0}"),
    ((r"\*\* \(Mix\) You're trying to run .+ on Elixir v(\S+) but .+ "
      r"it supports only Elixir (.+)"), "it needs Elixir {1}, and {0} runs here"),
    (r"Unchecked dependencies for environment (\w+):",
     "dependencies are not installed", "mix deps.get"),
    (r"A compatible .NET SDK was not found", "the .NET SDK of global.json is not installed"),
    (r".*error NETSDK1045: The current .NET SDK does not support targeting (.+?)\.",
     "the .NET SDK is too old for {0}"),
)  # fmt: skip
"""What a tool says at the start of a line; what is missing; what installs it, if that depends on
nothing else. The groups fill the two texts in."""
_ROWS = [(regex(said), sentence, "".join(how)) for said, sentence, *how in ROWS]
_WORDS = regex(
    r"requires|nightly|not (?:installed|available|supported)|no such|older than|Required|ERR_PNPM"
    r"|engine|Java|JVM|JAVA|JDK|release|Detected|interpreter|not found|different Python|Executable"
    r"|binary|Ruby version|bundle|PHP version|Elixir|Unchecked|SDK|configured to use|packageManager"
)
"""A line without one of these is none of the rows'."""


def outdated(lines: Iterable[str]) -> NotInstalled | None:
    """What the first such line says is missing, and how to install it."""
    for line in filter(_WORDS.search, lines):
        for pattern, sentence, install in _ROWS:
            if match := pattern.match(line):
                groups = match.groups(default="")
                command = install.format(*groups) or None
                said = f"{sentence.format(*groups)}: {command or 'install it'}"
                return NotInstalled(sentence=said, command=command)
    return None
