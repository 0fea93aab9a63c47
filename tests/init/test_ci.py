"""What CI runs is what is proposed: the literal lines of every kind of CI file."""

from collections.abc import Mapping

import pytest

from atlas_retry.config.init import accounting
from atlas_retry.config.init.accounting import AccountedLine, Role
from atlas_retry.config.init.commands import CMAKE, fixer_of, installs, only_checks
from atlas_retry.config.init.detect import choose, detect
from atlas_retry.config.init.values import Proposed
from atlas_retry.config.project import ProjectFiles
from tests.init.test_detect import Layout, chosen, described, package, startable

GITHUB = ".github/workflows/ci.yml"
STEPS = "on: [push]\njobs:\n  a:\n    steps:\n"

FILES: dict[str, tuple[Mapping[str, str], list[str]]] = {
    "GitHub, flags and scopes as they stand": (
        {
            "setup.py": "",
            GITHUB: STEPS + "    - run: flake8 --exclude=build --ignore=E501\n"
            "    - run: |\n        pip install -r x.txt && pip install .\n"
            "        pytest tests \\\n          -x --cov shop\n"
            "    - run: ruff format --check shop tests\n",
        },
        [
            "format: ruff format --check shop tests | fix ruff format shop tests",
            "lint: flake8 --exclude=build --ignore=E501",
            "test: pytest tests -x --cov shop | recheck pytest tests -x --cov shop --lf --no-cov",
        ],
    ),
    "GitHub, actions and folders": (
        {
            "web/package.json": package({"lint": "eslint ."}),
            GITHUB: STEPS + "    - {uses: golangci/golangci-lint-action@v3, with: {args: -v}}\n"
            "    - {run: npm run lint, working-directory: web}\n"
            "    - {run: cd web && npx vitest run}\n",
        },
        [
            "lint: golangci-lint run -v | fix golangci-lint run -v --fix",
            "lint: npm run lint | fix npm run lint -- --fix | in web",
            "test: npx vitest run | in web",
        ],
    ),
    "GitHub, a matrix and variables": (
        {
            "Cargo.toml": "[package]\n",
            GITHUB: "on: push\nenv: {RUSTFLAGS: -Dwarnings, CARGO_TERM_COLOR: always}\njobs:\n"
            "  a:\n    strategy: {matrix: {flags: ['', --all-features]}}\n"
            "    steps: [{run: 'cargo test ${{ matrix.flags }}'}]\n"
            "  b: {runs-on: windows-latest, steps: [{run: cargo test --release}]}\n"
            "  publish: {steps: [{run: cargo build --release}]}\n",
        },
        [
            "test: cargo test | RUSTFLAGS=-Dwarnings",
            "test: cargo test --all-features | RUSTFLAGS=-Dwarnings",
            "build: cargo build --release | RUSTFLAGS=-Dwarnings",
        ],
    ),
    "GitHub, CTest without the lines that build": (
        {
            "CMakeLists.txt": "enable_testing()\n",
            GITHUB: STEPS + "    - {run: cmake --build build}\n"
            "    - {run: ctest -C $BUILD_TYPE, working-directory: build}\n"
            "    - {run: ctest, working-directory: build-static}\n",
        },
        [f"test: {CMAKE}"],
    ),
    "GitHub, a module of the project": (
        {
            "setup.py": "",
            "tests/__main__.py": "",
            "shop/__main__.py": "",
            GITHUB: STEPS + "    - run: python -m tests\n    - run: python -m shop --help\n"
            "    - run: python -m build\n",
        },
        ["test: python -m tests", "build: python -m build"],
    ),
    "GitHub, tests that are run again with coverage": (
        {
            "setup.py": "",
            GITHUB: STEPS + "    - run: uv run --group dev pytest tests/\n"
            "    - run: uv run --group dev coverage run --branch -m pytest tests/\n",
        },
        ["test: uv run --group dev pytest tests/ | recheck uv run --group dev pytest tests/ --lf"],
    ),
    "GitHub, words that are no booleans there": (
        {
            "go.mod": "",
            GITHUB: "on: [push]\nenv: {GO111MODULE: on, STRICT: no, RACE: true}\n"
            "jobs: {a: {steps: [{run: go test ./...}]}}\n",
        },
        ["test: go test ./... | GO111MODULE=on | RACE=true | STRICT=no"],
    ),
    "GitHub, what runs on a schedule is nobody's gate": (
        {GITHUB: "on: {schedule: [{cron: x}]}\njobs: {a: {steps: [{run: pytest}]}}\n"},
        [],
    ),
    "GitLab": (
        {
            "mix.exs": "",
            ".gitlab-ci.yml": "check:\n  before_script: [mix deps.get]\n"
            "  script: [mix format --check-formatted, mix test --cover]\n",
        },
        ["format: mix format --check-formatted | fix mix format", "test: mix test --cover"],
    ),
    "quoted variables and help": (
        {
            "Cargo.toml": "",
            ".github/workflows/ci.yml": "on: push\njobs:\n  a:\n    steps:\n"
            '    - run: RUSTFLAGS="--deny warnings" cargo clippy\n'
            "    - run: cargo deny --help\n    - run: cargo test\n",
        },
        [
            (
                'lint: RUSTFLAGS="--deny warnings" cargo clippy'
                ' | fix RUSTFLAGS="--deny warnings" cargo clippy --fix --allow-dirty --allow-staged'
            ),
            "test: cargo test",
        ],
    ),
    "a bare rake, composer exec, a target that checks": (
        {
            "Rakefile": "task default: :test\n",
            "Makefile": "vulncheck:\n\tscan\n",
            ".github/workflows/ci.yml": "on: push\njobs:\n  a:\n    steps:\n"
            "    - run: bundle exec rake\n    - run: make vulncheck\n"
            "    - run: composer exec phpunit -- --group fast\n",
        },
        [
            "lint: make vulncheck",
            "test: bundle exec rake",
            "test: composer exec phpunit -- --group fast",
        ],
    ),
    "CircleCI": (
        {
            "go.mod": "",
            ".circleci/config.yml": "jobs:\n  a:\n    steps:\n    - checkout\n"
            "    - run: go vet -composites=false ./...\n"
            "    - run: {name: tests, command: go test -race ./..., working_directory: .}\n",
        },
        [
            "lint: go vet -composites=false ./...",
            "test: go test -race ./...",
        ],
    ),
    "Azure": (
        {
            "a.sln": "",
            "azure-pipelines.yml": "stages:\n- jobs:\n  - steps:\n"
            "    - script: dotnet test -c Release\n      workingDirectory: .\n",
        },
        ["test: dotnet test -c Release"],
    ),
    "Maven's own goals": (
        {"pom.xml": "", GITHUB: STEPS + "    - run: mvn --batch-mode verify\n"},
        ["test: mvn --batch-mode verify"],
    ),
    "all lines of one tool; reporting differently is no other gate": (
        {
            "setup.py": "",
            GITHUB: STEPS + "    - run: pytest -v\n    - run: python -m pytest\n"
            "    - run: pytest --autocommit\n    - run: pytest --slow\n    - run: pytest --gui\n",
        },
        [
            "test: pytest -v | recheck pytest -v --lf",
            "test: pytest --autocommit | recheck pytest --autocommit --lf",
            "test: pytest --slow | recheck pytest --slow --lf",
            "test: pytest --gui | recheck pytest --gui --lf",
        ],
    ),
    "another system, where no job is on Linux": (
        {
            "package.json": package({"test": "ava"}),
            GITHUB: "on: push\njobs: {a: {runs-on: macos-latest, steps: [{run: npm test}]}}\n",
        },
        ["test: npm test"],
    ),
    "an exit code that is kept for later": (
        {
            "Makefile": "test:\n\tgo test ./...\n",
            GITHUB: STEPS + "    - run: make test || status=$?\n",
        },
        ["test: make test"],
    ),
    "scripts of the project, which are no tests by their name": (
        {
            "scripts/test.sh": "TZ=Asia/Tokyo run\n",
            "scripts/setup.sh": "fetch\n",
            "ci/tests.rb": "",
            GITHUB: STEPS + "    - run: ./scripts/setup.sh\n"
            "    - run: ./scripts/test.sh\n    - run: ruby ci/tests.rb --verbose\n",
        },
        ["custom: ./scripts/test.sh", "custom: ruby ci/tests.rb --verbose"],
    ),
    "targets and sessions": (
        {
            "setup.py": "",
            "Makefile": "lint:\n\truff check src\n",
            "tox.ini": "[testenv]\ncommands = pytest\n",
            GITHUB: STEPS + "    - run: make lint\n    - run: tox -e py${{ matrix.python }}\n",
        },
        ["lint: make lint", "test: tox -e py"],
    ),
}


def accounts_of(files: Mapping[str, str]) -> tuple[AccountedLine, ...]:
    project = ProjectFiles(Layout(files))
    return accounting.accounts(project, accounting.jobs_of_ci(project))


def gates_of(files: Mapping[str, str]) -> list[Proposed]:
    return [each.gate for each in accounts_of(files) if each.gate]


@pytest.mark.parametrize(("files", "expected"), FILES.values(), ids=FILES.keys())
def test_gates_are_the_lines_that_ci_runs(files: Mapping[str, str], expected: list[str]) -> None:
    assert [described(proposed) for proposed in chosen(files)] == expected


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("npm ci", {"package.json": package({"ci": "eslint ."})}),
        ("make clean", {"Makefile": "clean:\n\tpytest\n"}),
        ("uv sync --check", {}),
    ],
    ids=["node", "make", "a package manager"],
)
def test_install_and_cleanup_lines_of_ci_are_not_gates(line: str, files: Mapping[str, str]) -> None:
    in_ci = {**files, GITHUB: STEPS + f"    - run: {line}\n"}
    assert gates_of(in_ci) == []


INSTALL_LINES = {
    "python3 -m pip install -U -r x.txt": True,
    "uv pip install -e .": True,
    "go install x@latest": True,
    "sudo apt-get install -y x": True,
    "mvn install": False,
    "echo install x": False,
    "pytest -k install": False,
    "node install.js": False,
}


@pytest.mark.parametrize(("line", "expected"), INSTALL_LINES.items())
def test_install_lines_are_recognised(line: str, *, expected: bool) -> None:
    assert installs(line) is expected


@pytest.mark.parametrize(
    "line",
    [
        "mvn -B -V -ntp -e deploy -DskipTests -Dpmd.skip",
        "mvn clean verify deploy",
        "mvn release:perform",
        "./gradlew check publishToMavenCentral",
        "gradle :core:publish",
    ],
)
def test_what_hands_something_out_is_never_a_gate(line: str) -> None:
    assert gates_of({GITHUB: STEPS + f"    - run: {line}\n"}) == []


@pytest.mark.parametrize("name", ["package", "build", "docs"])
def test_a_packaging_target_is_labelled_build(name: str) -> None:
    files = {
        "Makefile": f"{name}:\n\tsome-packer\n\ttwine check dist/*\n",
        GITHUB: STEPS + f"    - run: make {name}\n",
    }
    assert [gate.slot for gate in gates_of(files)] == ["build"]


def test_a_line_that_needs_values_of_ci_is_left_out_with_the_reason() -> None:
    files = {GITHUB: STEPS + "    - run: pytest $SELECTED\n    - run: echo $HOME\n"}
    left_out, set_up = accounts_of(files)
    assert (left_out.role, left_out.reason) == (
        Role.LEFT_OUT,
        "it needs $SELECTED, which only CI has",
    )
    assert set_up.role is Role.SET_UP


def test_only_one_of_two_formatters_for_a_language_is_proposed() -> None:
    files = {
        "pyproject.toml": "[dependency-groups]\ndev = ['black', 'ruff']\n"
        "[tool.black]\n[tool.ruff.format]\n"
    }
    formats = [c for c in choose(detect(Layout(files)), startable) if c.slot == "format"]
    assert [c.run for c in formats if not c.obstacle] == ["black ."]
    assert [c.obstacle for c in formats if c.obstacle] == [
        "black formats the same files; two formatters disagree"
    ]


CHECKED = {
    "ruff format .": "ruff format --check .",
    "uv run black src": "uv run black --check src",
    "cargo fmt --all": "cargo fmt --check --all",
    "npx prettier --write .": "npx prettier --check .",
    "ruff check --fix src": "ruff check src",
    "go fmt ./...": 'test -z "$(gofmt -l . 2>&1 | tee /dev/stderr)"',
    "terraform fmt -recursive": "terraform fmt -check -recursive",
    "./gradlew --no-daemon spotlessApply": "./gradlew --no-daemon spotlessCheck",
    "mvn -B -ntp spotless:apply": "mvn -B -ntp spotless:check",
    "black --check .": "black --check .",
    "pytest -q": "pytest -q",
}


@pytest.mark.parametrize(("line", "expected"), CHECKED.items())
def test_a_fixing_command_is_turned_into_one_that_only_checks(line: str, expected: str) -> None:
    assert only_checks(line) == expected


FIXED = {
    "black --check --diff .": "black .",
    "cargo fmt --all -- --check": "cargo fmt --all",
    "cargo clippy -- -D warnings": "cargo clippy --fix --allow-dirty --allow-staged",
    "prettier -c src": "prettier --write src",
    "mix format --check-formatted": "mix format",
    "ruff check src": "ruff check src --fix",
    "codespell docs --ignore-words x.txt": "codespell docs --ignore-words x.txt -w",
    "pytest": None,
}


@pytest.mark.parametrize(("line", "expected"), FIXED.items())
def test_a_check_is_given_its_fixing_command(line: str, expected: str | None) -> None:
    assert fixer_of(line) == expected
