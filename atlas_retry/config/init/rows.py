"""What a language brings along: one row a gate. Only where the project itself names no command."""

import re
from collections.abc import Iterator

from msgspec import Struct

from atlas_retry.config.init.commands import ASSIGNED, understand
from atlas_retry.config.init.project import ProjectFiles, strings, table
from atlas_retry.config.init.values import Need, Proposed, Slot

INSTALL = {
    "bundle": "gem install bundler && bundle install",
    "cargo": "install Rust (rustup.rs)",
    "cargo-clippy": "rustup component add clippy",
    "cargo-fmt": "rustup component add rustfmt",
    "cargo-nextest": "cargo install cargo-nextest",
    "go": "install Go",
    "java": "install a JDK",
    "mix": "install Elixir",
    "dotnet": "install the .NET SDK",
    "mvn": "install Maven",
    "gradle": "install Gradle",
}
"""How to get a program; otherwise `install NAME`."""
ALSO = {
    "cargo fmt": "cargo-fmt",
    "cargo clippy": "cargo-clippy",
    "cargo nextest": "cargo-nextest",
    "golangci-lint": "go",
    "mvn": "java",
    "gradle": "java",
    "vendor/bin": "php",
}
"""A program that a line needs beside its first word."""
WRAPPERS = {"mvn": "mvnw", "gradle": "gradlew"}
TIMEOUTS = {"rust": "20m", "jvm": "20m", "cpp": "20m", "swift": "20m"}
OTHERWISE = "10m"


class Row(Struct, frozen=True):
    """A file that marks the language, and what that brings along."""

    language: str
    marks: str
    """Patterns of files at the top, any of which will do."""
    slot: Slot
    run: str
    when: str = ""
    """What the marked files have to hold, or CI has to run, as a pattern."""
    config: str = ""
    """Patterns of files at the top, or deep in it (`**/`), any of which will do as well."""
    fix: str | None = None
    weak: bool = False
    """A default: anything that the project itself says replaces it."""


GO, RUST, MAVEN, GRADLE = "go.mod", "Cargo.toml", "pom.xml", "build.gradle* settings.gradle*"
RUBY, PHP, NET = "Gemfile", "composer.json", "*.sln *.slnx *.csproj *.fsproj"
DENO = "deno.json deno.jsonc"
CMAKE = "cmake -S . -B build && cmake --build build && ctest --test-dir build --output-on-failure"
PHPSTAN, PHPCS = "phpstan analyse --no-progress", "squizlabs/php_codesniffer"
MVN, GRADLEW = "mvn -B -ntp", "gradle --no-daemon"

ROWS = (
    Row("go", GO, Slot.FORMAT, "go fmt ./...", weak=True),
    Row("go", GO, Slot.LINT, "golangci-lint run", "golangci-lint", ".golangci.*",
        fix="golangci-lint run --fix"),
    Row("go", GO, Slot.LINT, "go vet ./...", weak=True),
    Row("go", GO, Slot.TEST, "go test ./..."),
    Row("rust", RUST, Slot.FORMAT, "cargo fmt --all", "cargo fmt", "rustfmt.toml .rustfmt.toml"),
    Row("rust", RUST, Slot.LINT, "cargo clippy --all-targets", r"lints\.clippy|cargo clippy",
        "clippy.toml .clippy.toml",
        fix="cargo clippy --all-targets --fix --allow-dirty --allow-staged"),
    Row("rust", RUST, Slot.LINT, "cargo check --all-targets", weak=True),
    Row("rust", RUST, Slot.TEST, "cargo nextest run --workspace", "cargo nextest"),
    Row("rust", RUST, Slot.TEST, "cargo test --workspace", r"\[workspace"),
    Row("rust", RUST, Slot.TEST, "cargo test"),
    Row("jvm", MAVEN, Slot.FORMAT, f"{MVN} spotless:apply", "spotless-maven-plugin"),
    Row("jvm", MAVEN, Slot.FORMAT, f"{MVN} fmt:format", "fmt-maven-plugin"),
    Row("jvm", MAVEN, Slot.FORMAT, f"{MVN} formatter:format", "formatter-maven-plugin"),
    Row("jvm", MAVEN, Slot.LINT, f"{MVN} checkstyle:check", "maven-checkstyle-plugin"),
    Row("jvm", MAVEN, Slot.LINT, f"{MVN} compile pmd:check", "maven-pmd-plugin"),
    Row("jvm", MAVEN, Slot.LINT, f"{MVN} compile spotbugs:check", "spotbugs-maven-plugin"),
    Row("jvm", MAVEN, Slot.TEST, f"{MVN} test"),
    Row("jvm", GRADLE, Slot.FORMAT, f"{GRADLEW} spotlessApply", "spotless"),
    Row("jvm", GRADLE, Slot.FORMAT, f"{GRADLEW} ktlintFormat", "ktlint"),
    Row("jvm", GRADLE, Slot.LINT, f"{GRADLEW} check -x test",
        "checkstyle|pmd|spotbugs|detekt|ktlint|spotless|errorprone"),
    Row("jvm", GRADLE, Slot.TEST, f"{GRADLEW} allTests", "multiplatform"),
    Row("jvm", GRADLE, Slot.TEST, f"{GRADLEW} test"),
    Row("ruby", RUBY, Slot.LINT, "bundle exec standardrb", r"[\"']standard[\"']", ".standard.yml",
        fix="bundle exec standardrb --fix"),
    Row("ruby", RUBY, Slot.LINT, "bundle exec rubocop", "rubocop", ".rubocop.yml",
        fix="bundle exec rubocop -a"),
    Row("ruby", RUBY, Slot.TYPES, "bundle exec srb tc", "sorbet"),
    Row("ruby", RUBY, Slot.TEST, "bundle exec rspec", "rspec", ".rspec"),
    Row("ruby", RUBY, Slot.TEST, "bundle exec rails test", config="bin/rails"),
    Row("ruby", "Rakefile", Slot.TEST, "bundle exec rake test", r"TestTask|task :?\"?test"),
    Row("php", PHP, Slot.FORMAT, "vendor/bin/php-cs-fixer fix", "friendsofphp/php-cs-fixer"),
    Row("php", PHP, Slot.FORMAT, "vendor/bin/pint", "laravel/pint", "pint.json"),
    Row("php", PHP, Slot.FORMAT, "vendor/bin/ecs check --fix", "easy-coding-standard", "ecs.php"),
    Row("php", PHP, Slot.LINT, "vendor/bin/phpcs", PHPCS, "phpcs.xml* .phpcs.xml*",
        fix="vendor/bin/phpcbf"),
    Row("php", PHP, Slot.TYPES, f"vendor/bin/{PHPSTAN}", "phpstan/phpstan", "phpstan.neon*"),
    Row("php", PHP, Slot.TYPES, "vendor/bin/psalm --no-progress", "vimeo/psalm"),
    Row("php", PHP, Slot.TEST, "vendor/bin/pest", "pestphp/pest"),
    Row("php", PHP, Slot.TEST, "vendor/bin/simple-phpunit", "symfony/phpunit-bridge"),
    Row("php", PHP, Slot.TEST, "vendor/bin/phpunit", "phpunit/phpunit", "phpunit.xml*"),
    Row("elixir", "mix.exs", Slot.FORMAT, "mix format", config=".formatter.exs"),
    Row("elixir", "mix.exs", Slot.LINT, "mix credo", ":credo", ".credo.exs"),
    Row("elixir", "mix.exs", Slot.TYPES, "mix dialyzer", ":dialyxir"),
    Row("elixir", "mix.exs", Slot.TEST, "mix test"),
    Row("dotnet", NET, Slot.FORMAT, "dotnet format", config=".editorconfig"),
    Row("dotnet", NET, Slot.TEST, "dotnet test"),
    Row("swift", "Package.swift", Slot.FORMAT, "swift format -i -r .", config=".swift-format"),
    Row("swift", "Package.swift", Slot.LINT, "swiftlint", config=".swiftlint.yml",
        fix="swiftlint --fix"),
    Row("swift", "Package.swift", Slot.TEST, "swift test"),
    Row("deno", DENO, Slot.FORMAT, "deno fmt"),
    Row("deno", DENO, Slot.LINT, "deno lint", fix="deno lint --fix"),
    Row("deno", DENO, Slot.TEST, "deno test", config="**/*_test.ts **/*.test.ts **/*_test.js"),
    Row("cpp", "CMakeLists.txt", Slot.TEST, CMAKE, r"enable_testing|include\s*\(CTest"),
    Row("terraform", "*.tf", Slot.FORMAT, "terraform fmt -recursive"),
    Row("terraform", "*.tf", Slot.LINT, "terraform init -backend=false -input=false && "
        "terraform validate"),
    Row("terraform", "*.tf", Slot.TEST, "terraform test", config="**/*.tftest.hcl"),
    Row("helm", "Chart.yaml", Slot.LINT, "helm lint ."),
)  # fmt: skip
"""Of the rows of one language and slot only the first for the tests: one run shows them all."""


def propose(project: ProjectFiles) -> Iterator[Proposed]:
    """What the rows bring whose mark is there."""
    tested: set[str] = set()
    for row in ROWS:
        why = _why(project, row)
        if why and not (row.slot is Slot.TEST and row.language in tested):
            tested |= {row.language} if row.slot is Slot.TEST else set()
            yield _proposed(project, row, why)


def _why(project: ProjectFiles, row: Row) -> str | None:
    mark = project.first(*row.marks.split())
    if not mark:
        return None
    if config := _configured(project, row.config.split()):
        return f"{config} is there"
    if not row.when:
        return None if row.config else f"{mark} is there"
    words = re.compile(row.when)
    files = {mark, *project.below("*.gemspec", "*.gradle", "*.gradle.kts", "gradle/*.toml")}
    holder = next((path for path in sorted(files) if words.search(project.text(path))), None)
    if holder:
        return f"{holder} has {words.search(project.text(holder))[0]}"  # type: ignore[index]
    found = words.search(project.automation)
    return f"CI or a task runs {found[0]}" if found else None


def _configured(project: ProjectFiles, patterns: list[str]) -> str | None:
    deep = [pattern.removeprefix("**/") for pattern in patterns if pattern.startswith("**/")]
    here = [pattern for pattern in patterns if not pattern.startswith("**/")]
    known = next((path for path in here if project.has(path)), None)
    return known or project.first(*here) or next(iter(project.below(*deep) if deep else ()), None)


def _proposed(project: ProjectFiles, row: Row, why: str) -> Proposed:
    run = _own_script(project, row.run) or _wrapped(project, row.run)
    found = understand(row.run)
    remembers = row.run.endswith("rspec") and "example_status_persistence_file_path" in (
        project.text("spec/spec_helper.rb") + project.text("spec/rails_helper.rb")
    )
    return Proposed(
        slot=row.slot,
        run=run,
        fix=row.fix,
        recheck=f"{run} --only-failures" if remembers else None,
        reason=why,
        needs=needs_of(run),
        tool=found.tool if found else row.run.partition(" ")[0],
        language=row.language,
        timeout=TIMEOUTS.get(row.language, OTHERWISE) if row.slot is not Slot.FORMAT else None,
        weak=row.weak,
    )


def _wrapped(project: ProjectFiles, run: str) -> str:
    """The line with the project's own wrapper, where that is there."""
    program, _, rest = run.partition(" ")
    own = WRAPPERS.get(program)
    return f"./{own} {rest}" if own and project.has(own) else run


def _own_script(project: ProjectFiles, run: str) -> str | None:
    """Composer's script that does nothing but start the program."""
    program = run.partition(" ")[0].rpartition("/")[2]
    called = re.compile(rf"(?:@php )?(?:[\w./-]*/)?{re.escape(program)}(?: [^&|;]*)?")
    for name, body in table(project.json("composer.json"), "scripts").items():
        lines = list(strings(body))
        if len(lines) == 1 and called.fullmatch(lines[0]):
            return f"composer run-script {name}"
    return None


def needs_of(line: str) -> tuple[Need, ...]:
    """The programs that a line needs to start, the first word first."""
    line = re.sub(rf"^{ASSIGNED}", "", line)
    program = line.partition(" ")[0]
    if program in ("test", "cd", "[", "set"):
        program = "gofmt" if "gofmt" in line else ""
    also = [more for start, more in ALSO.items() if line.removeprefix("./").startswith(start)]
    wrapper = program.startswith("./") and program[2:] in WRAPPERS.values()
    names = [*also, *(["java"] if wrapper else [])]
    needs = [Need(program=name, remedy=INSTALL.get(name, f"install {name}")) for name in names]
    if "/" in program:
        remedy = "composer install" if program.startswith("vendor/bin/") else ""
        own = Need(path=program.removeprefix("./"), remedy=remedy)
    else:
        own = Need(program=program or "sh", remedy=INSTALL.get(program, f"install {program}"))
    return (*needs, own)
