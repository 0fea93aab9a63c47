"""What `atlas init` sees in a project. Every layout is as small as its kind of project allows."""

import json
from collections.abc import Mapping

import pytest
from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.config.init.detect import choose, detect
from atlas_retry.config.init.values import Proposed

UV = """
[project]
name = "shop"
[dependency-groups]
dev = ["pytest>=8", "ruff", "mypy"]
[tool.ruff]
line-length = 100
[tool.ruff.format]
[tool.mypy]
files = ["src"]
[tool.pytest.ini_options]
"""
UV_GROUPS = """
[project]
name = "shop"
optional-dependencies = {typing = ["mypy"]}
[dependency-groups]
tests = ["pytest"]
[tool.uv]
[tool.mypy]
packages = "shop"
"""
POETRY = """
[tool.poetry]
name = "shop"
[tool.poetry.group.dev.dependencies]
pytest = "^8"
black = "*"
isort = "*"
flake8 = "*"
pylint = "*"
"""
HATCH = """
[project]
name = "shop"
[tool.hatch.envs.default.scripts]
test = "pytest {args}"
[tool.hatch.envs.style.scripts]
lint = ["ruff check ."]
fmt = "ruff format --check ."
"""
POE = """
[project]
name = "shop"
[dependency-groups]
dev = ["poethepoet"]
[tool.uv]
[tool.poe.tasks]
lint = "custom-linter"
typecheck.cmd = "custom-types"
test = {shell = "./run-tests"}
"""
HOOKS = """
repos:
  - repo: https://github.com/astral-sh/ruff-pre-commit
    hooks: [{id: ruff-check}, {id: ruff-format}]
  - repo: local
    hooks: [{id: types, entry: uv run mypy src, language: system}, {id: msg, stages: [commit-msg]}]
"""
NOX = """
import nox
@nox.session(python=["3.11", "3.12"])
def tests(session): session.run("pytest")
@nox.session(name="lint")
def run_linters(session): session.run("flake8")
def helper(): ...
"""
GRADLE = 'plugins { java; checkstyle; id("com.diffplug.spotless") version "6" }\n'
POM = """<project><build><plugins><plugin><artifactId>spotless-maven-plugin</artifactId></plugin>
<plugin><artifactId>maven-checkstyle-plugin</artifactId></plugin></plugins></build></project>"""
MAKEFILE = """
CC := gcc
.PHONY: lint test
lint: deps
\tshellcheck *.sh
fmt:
\tshfmt --diff .
test check:
\t./run-tests
"""
JUSTFILE = """
set shell := ["bash", "-c"]
alias t := test
@lint:
    shellcheck *.sh
test *args="":
    ./run-tests {{args}}
typecheck name:
    ./types {{name}}
"""
GEMFILE = 'source "https://rubygems.org"\ngem "rubocop", require: false\ngem "rspec"\n'


def package(scripts: Mapping[str, str], *packages: str, **more: str) -> str:
    return json.dumps({"scripts": scripts, "devDependencies": dict.fromkeys(packages, "*"), **more})


class Layout(Struct, frozen=True, dict=True):
    files: Mapping[str, str]

    def paths(self) -> list[str]:
        return sorted(self.files)

    def read(self, path: str) -> bytes | None:
        return self.files[path].encode() if path in self.files else None


def startable(proposed: Proposed) -> Proposed:
    return proposed


def chosen(files: Mapping[str, str]) -> list[Proposed]:
    return list(choose(detect(Layout(files)), startable))


PROJECTS: dict[str, tuple[dict[str, str], list[str]]] = {
    "uv": (
        {"pyproject.toml": UV, "uv.lock": "", "src/shop/__init__.py": ""},
        [
            "format: uv run ruff format .",
            "lint: uv run ruff check . | fix uv run ruff check . --fix",
            "lint: uv run mypy",
            "test: uv run pytest | recheck uv run pytest --lf",
        ],
    ),
    "uv, other groups and extras": (
        {"pyproject.toml": UV_GROUPS, "tests/test_a.py": ""},
        [
            "lint: uv run --extra typing mypy",
            "test: uv run --group tests pytest | recheck uv run --group tests pytest --lf",
        ],
    ),
    "poetry": (
        {"pyproject.toml": POETRY, "shop/__init__.py": "", "tests/__init__.py": ""},
        [
            "format: poetry run isort .",
            "format: poetry run black .",
            "lint: poetry run flake8",
            "lint: poetry run pylint shop",
            "test: poetry run pytest | recheck poetry run pytest --lf",
        ],
    ),
    "pdm": (
        {"pyproject.toml": "[dependency-groups]\ntest = ['pytest']\n", "pdm.lock": ""},
        ["test: pdm run pytest | recheck pdm run pytest --lf"],
    ),
    "hatch scripts": (
        {"pyproject.toml": HATCH},
        ["format: hatch run style:fmt", "lint: hatch run style:lint", "test: hatch run test"],
    ),
    "poe tasks": (
        {"pyproject.toml": POE},
        ["lint: uv run poe lint", "lint: uv run poe typecheck", "test: uv run poe test"],
    ),
    "setup.cfg and requirements": (
        {
            "setup.py": "from setuptools import setup\nsetup()\n",
            "setup.cfg": "[flake8]\nmax-line-length = 100\n[mypy]\nfiles = a.py\n[tool:pytest]\n",
            "requirements-dev.txt": "flake8\nmypy==1.0  # types\npytest>=7\n-r other.txt\n",
        },
        ["lint: flake8", "lint: mypy", "test: pytest | recheck pytest --lf"],
    ),
    "a configuration that nobody runs": (
        {"pyproject.toml": "[project]\ndependencies = ['attrs']\n[tool.black]\n[tool.isort]\n"},
        [],
    ),
    "a configuration that CI runs": (
        {
            "pyproject.toml": "[project]\ndependencies = ['attrs']\n[tool.black]\n[tool.mypy]\n",
            ".github/workflows/ci.yml": "on: push\njobs: {a: {steps: [{run: black --check .}, "
            "{run: mypy --strict shop}]}}\n",
        },
        ["format: black --check . | fix black .", "lint: mypy --strict shop"],
    ),
    "Pipfile": (
        {"Pipfile": "[dev-packages]\npytest = '*'\n"},
        ["test: pipenv run pytest | recheck pipenv run pytest --lf"],
    ),
    "unittest": (
        {"setup.py": "", "tests/test_a.py": "import unittest\n"},
        ["test: python -m unittest discover -s tests"],
    ),
    "plain tests and no word of how they run": (
        {"shop.py": "", "tests/test_a.py": "def test_a(): ...\n"},
        ["test: pytest | recheck pytest --lf"],
    ),
    "a threshold of coverage, which is for all tests": (
        {"tests/test_a.py": "def test_a(): ...\n", "pytest.ini": "addopts = --cov-fail-under=90\n"},
        ["test: pytest | recheck pytest --lf --no-cov"],
    ),
    "notebooks": (
        {"requirements.txt": "nbmake\n", "a.ipynb": "{}"},
        ["test: pytest --nbmake | recheck pytest --nbmake --lf"],
    ),
    "Elixir": (
        {"mix.exs": "{:credo}", ".formatter.exs": ""},
        ["format: mix format", "lint: mix credo", "test: mix test"],
    ),
    ".NET": ({"a.sln": ""}, ["test: dotnet test"]),
    "Swift": (
        {"Package.swift": "", ".swiftlint.yml": ""},
        ["lint: swiftlint | fix swiftlint --fix", "test: swift test"],
    ),
    "Deno": (
        {"deno.json": "{}", "a_test.ts": ""},
        ["format: deno fmt", "lint: deno lint | fix deno lint --fix", "test: deno test"],
    ),
    "CMake": (
        {"CMakeLists.txt": "enable_testing()\n"},
        [
            (
                "test: cmake -S . -B build && cmake --build build"
                " && ctest --test-dir build --output-on-failure"
            ),
        ],
    ),
    "Terraform": (
        {"main.tf": ""},
        [
            "format: terraform fmt -recursive",
            "lint: terraform init -backend=false -input=false && terraform validate",
        ],
    ),
    "Helm": ({"Chart.yaml": ""}, ["lint: helm lint ."]),
    "members of a Go workspace": (
        {"go.work": "", "a/go.mod": "", "b/go.mod": ""},
        [
            "format: go fmt ./... | in a",
            "format: go fmt ./... | in b",
            "lint: go vet ./... | in a",
            "lint: go vet ./... | in b",
            "test: go test ./... | in a",
            "test: go test ./... | in b",
        ],
    ),
    "members of an npm workspace": (
        {
            "package.json": json.dumps({"workspaces": ["packages/*"]}),
            "packages/a/package.json": package({"test": "x"}),
            "packages/b/package.json": package({"lint": "x"}),
        },
        [
            "lint: npm run lint --workspaces --if-present",
            "test: npm run test --workspaces --if-present",
        ],
    ),
    "Django": ({"requirements.txt": "django\n", "manage.py": ""}, ["test: python manage.py test"]),
    "tox alone": (
        {"tox.ini": "[tox]\n[testenv]\ncommands = ./t\n[testenv:lint]\ncommands = ./l\n"},
        ["lint: tox -e lint", "test: tox -e py"],
    ),
    "nox alone": ({"noxfile.py": NOX}, ["lint: nox -s lint", "test: nox -s tests"]),
    "hooks take over what they run": (
        {"pyproject.toml": UV, "uv.lock": "", ".pre-commit-config.yaml": HOOKS},
        [
            "test: uv run pytest | recheck uv run pytest --lf",
            "pre-commit: pre-commit run --all-files",
        ],
    ),
    "lefthook": (
        {"lefthook.yml": "pre-commit: {commands: {lint: {run: npx eslint .}}}\n"},
        ["pre-commit: lefthook run pre-commit --all-files"],
    ),
    "npm": (
        {
            "package.json": package(
                {"lint": "eslint .", "test": "NODE_ENV=test jest --ci", "format": "prettier -w ."},
                "jest",
            ),
            "package-lock.json": "{}",
        },
        [
            "format: npm run format",
            "lint: npm run lint | fix npm run lint -- --fix",
            "test: npm test",
        ],
    ),
    "pnpm": (
        {
            "package.json": package(
                {"lint": "run-s lint:*", "lint:fix": "x", "check": "tsc", "test": "vitest"}
            ),
            "pnpm-lock.yaml": "",
        },
        [
            "lint: pnpm run lint | fix pnpm run lint:fix",
            "lint: pnpm run check",
            "test: pnpm test",
        ],
    ),
    "yarn, tools without scripts": (
        {
            "package.json": package({}, "prettier", "eslint", "typescript", "jest"),
            "yarn.lock": "",
            "tsconfig.json": "{}",
            "eslint.config.js": "",
            ".prettierrc": "",
        },
        [
            "format: yarn run prettier --write .",
            "lint: yarn run eslint . | fix yarn run eslint . --fix",
            "lint: yarn run tsc --noEmit",
            "test: yarn run jest",
        ],
    ),
    "bun": (
        {"package.json": package({"test": "bun test"}, "@biomejs/biome"), "bun.lock": ""},
        ["lint: bunx biome check . | fix bunx biome check . --write", "test: bun run test"],
    ),
    "packageManager over lock file": (
        {
            "package.json": package({"test": "node --test"}, packageManager="pnpm@9.1.0"),
            "yarn.lock": "",
        },
        ["test: pnpm test"],
    ),
    "a lint script that writes": (
        {"package.json": package({"lint": "biome check --write .", "test": "x"})},
        ["lint: npm run lint | writes", "test: npm test"],
    ),
    "npm's own test placeholder": (
        {"package.json": package({"test": 'echo "Error: no test specified" && exit 1'})},
        [],
    ),
    "a format script that only checks": (
        {"package.json": package({"format": "prettier --check .", "test": "x"})},
        ["format: npm run format", "test: npm test"],
    ),
    "a build that CI runs": (
        {
            "package.json": package({"build": "vite build", "test": "x"}),
            ".github/workflows/ci.yml": "on: push\njobs: {a: {steps: [{run: npm run build}]}}\n",
        },
        ["test: npm test", "build: npm run build"],
    ),
    "Go": (
        {"go.mod": "module m\n"},
        ["format: go fmt ./...", "lint: go vet ./...", "test: go test ./..."],
    ),
    "Go with golangci-lint": (
        {"go.mod": "module m\n", ".golangci.yml": ""},
        [
            "format: go fmt ./...",
            "lint: golangci-lint run | fix golangci-lint run --fix",
            "test: go test ./...",
        ],
    ),
    "tox, and what it runs": (
        {"tox.ini": "[testenv]\ncommands =\n  {envpython} -m unittest \\\n {posargs:t}\n"},
        ["test: tox -e py"],
    ),
    "C with a program of tests": (
        {
            "a.c": "",
            "Makefile": "all: a-test\na-test: a.c\n\t$(CC) -o a-test a.c\n\t@echo run ./a-test\n",
        },
        ["test: make a-test && ./a-test"],
    ),
    "C with a target that runs them by its own name": (
        {"a.c": "", "Makefile": "test: a.c\n\t$(CC) -o $@ a.c\n\t./$@\n"},
        ["test: make test"],
    ),
    "C with a target that runs them": (
        {"a.c": "", "Makefile": "test: a.c\n\t$(CC) -o $@ a.c && ./test\n"},
        ["test: make test"],
    ),
    "Go with a lint target": (
        {"go.mod": "module m\n", "Makefile": "lint:\n\tstaticcheck ./...\n"},
        ["format: go fmt ./...", "lint: make lint", "test: go test ./..."],
    ),
    "Rust": (
        {"Cargo.toml": "[package]\nname = 'a'\n"},
        ["lint: cargo check --all-targets", "test: cargo test"],
    ),
    "Rust as its CI runs it": (
        {
            "Cargo.toml": "[workspace]\nmembers = ['a']\n",
            "rustfmt.toml": "",
            ".github/workflows/ci.yml": "on: push\njobs: {a: {steps: [\n"
            "{run: cargo clippy --workspace -- -D warnings},\n"
            "{run: 'cargo nextest run ${{ inputs.flags }}'}]}}\n",
        },
        [
            "format: cargo fmt --all",
            (
                "lint: cargo clippy --workspace -- -D warnings"
                " | fix cargo clippy --workspace --fix --allow-dirty --allow-staged"
            ),
            "test: cargo nextest run",
        ],
    ),
    "Maven": (
        {"pom.xml": POM, "mvnw": ""},
        [
            "format: ./mvnw -B -ntp spotless:apply",
            "lint: ./mvnw -B -ntp checkstyle:check",
            "test: ./mvnw -B -ntp test",
        ],
    ),
    "Gradle": (
        {"build.gradle.kts": GRADLE, "gradlew": ""},
        [
            "format: ./gradlew --no-daemon spotlessApply",
            "lint: ./gradlew --no-daemon check -x test",
            "test: ./gradlew --no-daemon test",
        ],
    ),
    "Composer": (
        {
            "composer.json": json.dumps(
                {
                    "require-dev": dict.fromkeys(
                        ("phpunit/phpunit", "phpstan/phpstan", "squizlabs/php_codesniffer"), "*"
                    ),
                    "scripts": {"stan": "@php vendor/bin/phpstan analyse -l 9", "all": ["@stan"]},
                }
            ),
        },
        [
            "lint: vendor/bin/phpcs | fix vendor/bin/phpcbf",
            "lint: composer run-script stan",
            "test: vendor/bin/phpunit",
        ],
    ),
    "Bundler": (
        {
            "Gemfile": GEMFILE,
            "spec/a_spec.rb": "",
            "spec/spec_helper.rb": "config.example_status_persistence_file_path = '.x'",
        },
        [
            "lint: bundle exec rubocop | fix bundle exec rubocop -a",
            "test: bundle exec rspec | recheck bundle exec rspec --only-failures",
        ],
    ),
    "a Rakefile": (
        {"Gemfile": 'gem "rake"\n', "Rakefile": "Rake::TestTask.new(:test)\n"},
        ["test: bundle exec rake test"],
    ),
    "make": ({"Makefile": MAKEFILE}, ["format: make fmt", "lint: make lint", "test: make test"]),
    "just": ({"justfile": JUSTFILE}, ["lint: just lint", "test: just test"]),
    "Task": (
        {"Taskfile.yml": "version: 3\ntasks: {lint: {cmds: [x]}, test: y, fmt: [z]}\n"},
        ["format: task fmt", "lint: task lint", "test: task test"],
    ),
    "autotools": ({"Makefile.am": "", "configure.ac": ""}, ["test: make check"]),
    "two languages side by side": (
        {"go.mod": "module m\n", "package.json": package({"test": "x"})},
        ["format: go fmt ./...", "lint: go vet ./...", "test: npm test", "test: go test ./..."],
    ),
    "parts below an empty root": (
        {
            "backend/pyproject.toml": "[dependency-groups]\ndev = ['pytest']\n",
            "web/app/package.json": package({"test": "x"}),
            "docs/package.json": package({"test": "x"}),
            "web/node_modules/package.json": package({"test": "x"}),
            "README.md": "",
        },
        ["test: pytest | recheck pytest --lf | in backend", "test: npm test | in web/app"],
    ),
    "nothing": ({"README.md": "# hello\n"}, []),
    "what cannot be parsed": (
        {"pyproject.toml": "[[[", "package.json": "{", ".pre-commit-config.yaml": "{"},
        ["pre-commit: pre-commit run --all-files"],
    ),
}


def described(proposed: Proposed) -> str:
    more = (
        f"fix {proposed.fix}" if proposed.fix else "",
        f"recheck {proposed.recheck}" if proposed.recheck and not proposed.files else "",
        "writes" if proposed.writes else "",
        f"in {proposed.cwd}" if proposed.cwd != "." else "",
        *(f"{name}={value}" for name, value in proposed.env),
    )
    return " | ".join(filter(None, (f"{proposed.slot.kind}: {proposed.run}", *more)))


@pytest.mark.parametrize(("files", "expected"), PROJECTS.values(), ids=PROJECTS.keys())
def test_init_proposes_the_gates_of_a_project(files: dict[str, str], expected: list[str]) -> None:
    assert [described(proposed) for proposed in chosen(files)] == expected


@pytest.mark.parametrize("files", [files for files, _ in PROJECTS.values()], ids=PROJECTS.keys())
def test_every_proposed_gate_has_a_reason(files: dict[str, str]) -> None:
    assert all(proposed.reason for proposed in chosen(files))


# what cannot start


def without(*programs: str) -> dict[str, list[Proposed]]:
    """Choices for a project with tools, hooks and a Makefile where these programs are missing."""
    files = {
        "pyproject.toml": UV,
        "uv.lock": "",
        ".pre-commit-config.yaml": HOOKS,
        "Makefile": "test:\n\t./t\nlint:\n\t./l\n",
    }

    def tried(proposed: Proposed) -> Proposed:
        program = proposed.run.split()[0]
        return replace(proposed, obstacle=f"{program} missing" if program in programs else None)

    gates: dict[str, list[Proposed]] = {"start": [], "idle": []}
    for choice in choose(detect(Layout(files)), tried):
        gates["idle" if choice.obstacle else "start"].append(choice)
    return gates


def runs(choices: list[Proposed]) -> list[str]:
    return [choice.run for choice in choices]


def test_tools_replace_a_pre_commit_that_cannot_start() -> None:
    gates = without("pre-commit")
    assert runs(gates["idle"]) == ["pre-commit run --all-files"]
    assert runs(gates["start"]) == [
        "uv run ruff format .",
        "uv run ruff check .",
        "uv run mypy",
        "uv run pytest",
    ]


def test_make_target_replaces_tools_that_cannot_start() -> None:
    gates = without("uv")
    assert runs(gates["start"]) == ["make test", "pre-commit run --all-files"]
    assert runs(gates["idle"]) == ["uv run pytest"]


def test_gates_without_a_replacement_are_proposed_although_they_cannot_start() -> None:
    gates = without("uv", "make", "pre-commit")
    assert gates["start"] == []
    assert runs(gates["idle"]) == [
        "uv run ruff format .",
        "uv run ruff check .",
        "uv run mypy",
        "uv run pytest",
        "pre-commit run --all-files",
    ]
