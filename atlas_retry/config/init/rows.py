"""Gates by language and tool, one row each. CI and scripts take precedence."""

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from atlas_retry.config.init.commands import CMAKE, understand
from atlas_retry.config.init.dependencies import (
    Where,
    manager_of,
    npm_packages,
    python_packages,
    python_start,
    wrapped,
)
from atlas_retry.config.init.values import Proposed, Slot
from atlas_retry.config.project import ProjectFiles, dig, table


class Row(Struct, frozen=True):
    """A gate and the files that indicate it."""

    language: str
    marks: str
    """Patterns of files at the top, or at any depth (`**/`); one of them is enough."""
    slot: Slot
    run: str
    when: str = ""
    """Pattern that must occur in the marks, or in what CI runs."""
    config: str = ""
    """Files, or tables in them (`FILE:TABLE`), one of which is enough instead."""
    package: str = ""
    """Dependency that the project must have; an unused configuration is not enough."""
    fix: str | None = None
    """The fixer, if `commands` does not have it."""
    weak: bool = False
    """Whether it is a default, which anything in the project replaces."""
    unless: str = ""
    """Word in CI or a task that excludes the row."""
    by: str = ""
    """Word that CI or a task must have."""


PRE_COMMIT = ".pre-commit-config.y*ml"
LEFTHOOK = "lefthook.y*ml .lefthook.y*ml"
HOOK_FILES = (*PRE_COMMIT.split(), *LEFTHOOK.split())
NO_PACKAGES = {"tests", "test", "docs", "examples"}
TEST_FILES = "test_*.py *_test.py **/tests/*.py **/test/*.py **/test_*.py"
PYTHON = "pyproject.toml setup.py setup.cfg requirements*.txt Pipfile tox.ini"
GO, RUST, MAVEN, GRADLE = "go.mod", "Cargo.toml", "pom.xml", "build.gradle* settings.gradle*"
RUBY, PHP, NET = "Gemfile", "composer.json", "*.sln *.slnx *.csproj *.fsproj"
DENO = "deno.json deno.jsonc"
PHPSTAN, PHPCS = "phpstan analyse --no-progress", "squizlabs/php_codesniffer"
MVN, GRADLEW = "mvn -B -ntp", "gradle --no-daemon"

ROWS = (
    Row("python", PYTHON, Slot.FORMAT, "isort .", package="isort",
        config="pyproject.toml:tool.isort .isort.cfg"),
    Row("python", PYTHON, Slot.FORMAT, "black .", package="black",
        config="pyproject.toml:tool.black"),
    Row("python", PYTHON, Slot.FORMAT, "yapf -ir .", package="yapf",
        config="pyproject.toml:tool.yapf .style.yapf"),
    Row("python", PYTHON, Slot.FORMAT, "ruff format .", r"\bruff format\b",
        "pyproject.toml:tool.ruff.format"),
    Row("python", PYTHON, Slot.LINT, "ruff check .", package="ruff",
        config="pyproject.toml:tool.ruff ruff.toml .ruff.toml"),
    Row("python", PYTHON, Slot.LINT, "flake8", package="flake8",
        config="setup.cfg:flake8 tox.ini:flake8 .flake8"),
    Row("python", PYTHON, Slot.LINT, "pylint", package="pylint",
        config="pyproject.toml:tool.pylint .pylintrc pylintrc"),
    Row("python", PYTHON, Slot.LINT, "codespell", package="codespell",
        config="pyproject.toml:tool.codespell setup.cfg:codespell .codespellrc"),
    Row("python", PYTHON, Slot.TYPES, "mypy", package="mypy",
        config="pyproject.toml:tool.mypy setup.cfg:mypy mypy.ini .mypy.ini"),
    Row("python", PYTHON, Slot.TYPES, "pyright", package="pyright",
        config="pyproject.toml:tool.pyright pyrightconfig.json"),
    Row("python", PYTHON, Slot.TYPES, "basedpyright", package="basedpyright",
        config="pyproject.toml:tool.basedpyright"),
    Row("python", PYTHON, Slot.TYPES, "ty check", package="ty",
        config="pyproject.toml:tool.ty ty.toml"),
    Row("python", PYTHON, Slot.TYPES, "pyrefly check", package="pyrefly",
        config="pyproject.toml:tool.pyrefly pyrefly.toml"),
    Row("python", PYTHON, Slot.TEST, "pytest --nbmake", package="nbmake"),
    Row("python", PYTHON, Slot.TEST, "pytest", package="pytest",
        config="pyproject.toml:tool.pytest setup.cfg:tool:pytest tox.ini:pytest pytest.ini"
        " .pytest.ini pytest.toml conftest.py"),
    Row("python", "manage.py", Slot.TEST, "python manage.py test", unless="pytest"),
    Row("python", TEST_FILES, Slot.TEST, "python -m unittest discover", r"\bunittest\b", weak=True,
        unless="pytest"),
    Row("python", TEST_FILES, Slot.TEST, "pytest", r"(?m)^(?:async )?def test|^class Test",
        weak=True, unless="pytest"),
    Row("js", ".prettierrc* prettier.config.*", Slot.FORMAT, "prettier --write .",
        package="prettier"),
    Row("js", "package.json", Slot.LINT, "biome check .", package="@biomejs/biome"),
    Row("js", "package.json", Slot.LINT, "xo", package="xo"),
    Row("js", "package.json", Slot.LINT, "standard", package="standard"),
    Row("js", "eslint.config.* .eslintrc*", Slot.LINT, "eslint .", package="eslint"),
    Row("js", "tsconfig.json", Slot.TYPES, "tsc --noEmit", package="typescript"),
    Row("js", "package.json", Slot.TEST, "vitest run", package="vitest"),
    Row("js", "package.json", Slot.TEST, "jest", package="jest"),
    Row("go", GO, Slot.FORMAT, "go fmt ./...", weak=True),
    Row("go", GO, Slot.LINT, "golangci-lint run", "golangci-lint", ".golangci.*"),
    Row("go", GO, Slot.LINT, "go vet ./...", weak=True),
    Row("go", GO, Slot.TEST, "go test ./..."),
    Row("rust", RUST, Slot.FORMAT, "cargo fmt --all", "cargo fmt", "rustfmt.toml .rustfmt.toml"),
    Row("rust", RUST, Slot.LINT, "cargo clippy --all-targets", r"lints\.clippy|cargo clippy",
        "clippy.toml .clippy.toml"),
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
    Row("ruby", RUBY, Slot.LINT, "standardrb", r"[\"']standard[\"']", ".standard.yml"),
    Row("ruby", RUBY, Slot.LINT, "rubocop", "rubocop", ".rubocop.yml"),
    Row("ruby", RUBY, Slot.TYPES, "srb tc", "sorbet"),
    Row("ruby", RUBY, Slot.TEST, "rspec", "rspec", ".rspec"),
    Row("ruby", RUBY, Slot.TEST, "rails test", config="bin/rails"),
    Row("ruby", "Rakefile", Slot.TEST, "rake test", r"TestTask|task :?\"?test"),
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
    Row("swift", "Package.swift", Slot.LINT, "swiftlint", config=".swiftlint.yml"),
    Row("swift", "Package.swift", Slot.TEST, "swift test"),
    Row("deno", DENO, Slot.FORMAT, "deno fmt"),
    Row("deno", DENO, Slot.LINT, "deno lint"),
    Row("deno", DENO, Slot.TEST, "deno test", config="**/*_test.ts **/*.test.ts **/*_test.js"),
    Row("cpp", "CMakeLists.txt", Slot.TEST, CMAKE, r"enable_testing|include\s*\(CTest"),
    Row("terraform", "*.tf", Slot.FORMAT, "terraform fmt -recursive"),
    Row("terraform", "*.tf", Slot.LINT, "terraform init -backend=false -input=false && "
        "terraform validate"),
    Row("terraform", "*.tf", Slot.TEST, "terraform test", config="**/*.tftest.hcl"),
    Row("helm", "Chart.yaml", Slot.LINT, "helm lint ."),
    Row("any", PRE_COMMIT, Slot.HOOKS, "prek run --all-files", unless="pre-commit", by="prek"),
    Row("any", PRE_COMMIT, Slot.HOOKS, "pre-commit run --all-files"),
    Row("any", LEFTHOOK, Slot.HOOKS, "lefthook run pre-commit --all-files", "pre-commit:"),
)  # fmt: skip
"""For tests and hooks only the first matching row of a language counts."""


def propose(project: ProjectFiles) -> Iterator[Proposed]:
    """The gates of all rows that apply."""
    asked = {"python": python_packages(project), "js": npm_packages(project)}
    taken: set[tuple[str, Slot]] = set()
    for row in ROWS:
        place = (row.language, row.slot)
        why = None if place in taken else _why(project, row, asked.get(row.language, {}))
        if not why:
            continue
        known = understand(row.run)
        yield Proposed(
            slot=row.slot,
            run=_start(project, row) + _with_target(project, row.run, why),
            fix=row.fix,
            reason=why,
            tool=known.tool if known else row.run.partition(" ")[0],
            language=row.language,
            weak=row.weak,
        )
        if row.slot in (Slot.TEST, Slot.HOOKS) or row.language == "js":
            taken.add(place)


def _why(project: ProjectFiles, row: Row, asked: Mapping[str, Where]) -> str | None:
    """Reason for the gate; None if the row does not apply."""
    mark, config = _there(project, row.marks), _there(project, row.config)
    is_marked = mark or (row.package and config)
    is_other = row.unless and project.runs(row.unless)
    is_not_run = row.by and not project.runs(row.by)
    if not is_marked or is_other or is_not_run:
        return None
    if row.package:
        return _asked_for(project, row, asked, config)
    if config or not row.when:
        return config or (None if row.config else mark)
    return _where_said(project, row)


def _where_said(project: ProjectFiles, row: Row) -> str | None:
    """Where `when` matches: in the marks, else in CI and tasks."""
    words = re.compile(row.when)
    # Python's manifests name tools for many reasons
    marks = row.marks.split() if row.marks != PYTHON else ()
    also = project.below("*.gemspec", "*.gradle", "*.gradle.kts", "gradle/*.toml")
    for path in sorted({*project.files_like(*marks), *also}):
        if match := words.search(project.text(path)):
            return f"{path} has {match[0]}"
    match = words.search(project.automation) if row.marks != TEST_FILES else None
    return f"CI or a task runs {match[0]}" if match else None


def _asked_for(
    project: ProjectFiles, row: Row, asked: Mapping[str, Where], config: str | None
) -> str | None:
    if row.package in asked:
        where, group = asked[row.package]
        return config or f"{row.package} is listed in {group or 'the dependencies'} ({where})"
    is_run = not asked or row.slot is Slot.TEST or project.runs(row.package)
    return config if is_run else None


def _there(project: ProjectFiles, patterns: str) -> str | None:
    """The first of these files and tables that exists, in words."""
    for pattern in patterns.split():
        path, _, section = pattern.partition(":")
        if section:
            is_toml = path == "pyproject.toml"
            tables = project.pyproject if is_toml else project.ini(path)
            if dig(tables, *(section.split(".") if is_toml else [section])) is not None:
                return f"{path} has [{section}]"
        elif known := pattern if project.has(pattern) else next(project.files_like(pattern), None):
            return f"{known} exists"
    return None


def hooks_text(project: ProjectFiles) -> str:
    """Text of the project's hook files, without comments."""
    texts = map(project.text, project.files_like(*HOOK_FILES))
    return re.sub(r"(?m)#.*$", "", "\n".join(texts))


def _start(project: ProjectFiles, row: Row) -> str:
    if row.language == "js":
        return manager_of(project).program
    if row.language == "ruby":
        return "bundle exec " if project.has(RUBY) else ""
    package = row.package or row.run.partition(" ")[0]
    packages = python_packages(project)
    if row.language != "python" and package not in packages:
        return ""
    start = python_start(project, package)
    is_apart = row.slot in (Slot.FORMAT, Slot.LINT) and package not in packages
    return "uvx " if is_apart and start.startswith("uv ") else start


def _with_target(project: ProjectFiles, run: str, why: str) -> str:
    """The command with its target, for tools that need one."""
    mypy = table(project.pyproject, "tool", "mypy")
    ini = project.ini("mypy.ini").get("mypy", {}) or project.ini("setup.cfg").get("mypy", {})
    is_configured = bool({"files", "packages", "modules"} & mypy.keys()) or "files" in ini
    if run == "pylint" or (run == "mypy" and not is_configured):
        inits = project.below("*/__init__.py")
        packages = {path.partition("/")[0] for path in inits} - NO_PACKAGES
        has_src = any(path.startswith("src/") for path in project.paths)
        return f"{run} {'src' if has_src else ' '.join(sorted(packages)) or '.'}"
    folder = why.partition(" ")[0].rpartition("/")[0]
    if "unittest" in run and folder and not project.has(f"{folder}/__init__.py"):
        # it searches only packages: any other folder must be given
        return f"{run} -s {folder}"
    return wrapped(project, run)
