"""Settings, scripts, pipelines and dependencies: what loosens is told, what does not is left."""

import pytest

from tests.guardcases import MYPY, RUFF, judged, rules_of

PYPROJECT = """
    [project]
    name = "kit"
    dependencies = ["attrs>=23"]

    [project.optional-dependencies]
    dev = ["pytest>=8", "ruff>=0.5"]

    [tool.ruff]
    line-length = 88
    extend-exclude = ["build"]

    [tool.ruff.lint]
    select = ["E", "F"]
    ignore = ["E501"]

    [tool.mypy]
    strict = true

    [[tool.mypy.overrides]]
    module = "kit.old"
    disallow_untyped_defs = true

    [tool.pytest.ini_options]
    addopts = "-ra --strict-markers"
    testpaths = ["tests"]
    filterwarnings = ["error"]

    [tool.coverage.report]
    fail_under = 90
"""
PACKAGE = """
    {
      "scripts": {"test": "jest", "lint": "eslint .", "build": "tsc"},
      "jest": {"testEnvironment": "node", "coverageThreshold": {"global": {"lines": 90}}},
      "eslintConfig": {"rules": {"eqeqeq": "error"}},
      "devDependencies": {"jest": "^29.7.0", "eslint": "^8.57.0"}
    }
"""
MAKE = """
    .PHONY: test lint
    CFLAGS = -Wall
    test: build
    	pytest -q
    lint:
    	ruff check .
    	mypy src
"""
CI = """
    on: [push, pull_request]
    jobs:
      test:
        runs-on: ubuntu-latest
        strategy:
          matrix:
            python: ['3.11']
        steps:
          - uses: actions/checkout@v4
          - run: pip install -e .
          - run: pytest -q
"""
PRE_COMMIT = """
    repos:
      - repo: https://github.com/astral-sh/ruff-pre-commit
        rev: v0.6.1
        hooks:
          - id: ruff
          - id: ruff-format
      - repo: local
        hooks:
          - id: unit
            entry: pytest -q
            language: system
"""
TOX = """
    [tox]
    envlist = py
    [testenv]
    commands =
        pytest -q
        coverage report
    [flake8]
    max-line-length = 88
    extend-ignore = E203
"""
POM = """
    <project><build><plugins><plugin>
      <artifactId>maven-checkstyle-plugin</artifactId>
      <configuration><failsOnError>true</failsOnError></configuration>
    </plugin></plugins></build></project>
"""
NOX = """
    import nox


    @nox.session
    def tests(session):
        session.install("-e", ".")
        session.run("pytest", "-q")
"""
ESLINT = "export default [{ rules: { eqeqeq: 'error', curly: ['warn', 'all'], complexity: ['error', 10] }, ignores: ['dist/'] }];\n"
VITEST = "export default { test: { include: ['src/**/*.test.ts'], coverage: { thresholds: { lines: 90 } } } };\n"
CARGO = (
    '[package]\nname = "a"\n\n[dependencies]\nserde = "1"\n\n[lints.clippy]\nunwrap_used = "deny"\n'
)
TREE = {
    "pyproject.toml": PYPROJECT,
    "package.json": PACKAGE,
    "Makefile": MAKE,
    ".github/workflows/ci.yml": CI,
    ".pre-commit-config.yaml": PRE_COMMIT,
    "tox.ini": TOX,
    "pom.xml": POM,
    "noxfile.py": NOX,
    "eslint.config.js": ESLINT,
    "vitest.config.ts": VITEST,
    "Cargo.toml": CARGO,
    "tsconfig.json": '{\n  // strict\n  "compilerOptions": {"strict": true, "target": "ES2020"},\n  "include": ["src"],\n}\n',
    ".golangci.yml": "linters:\n  enable:\n    - errcheck\n    - unused\nlinters-settings:\n  gocyclo:\n    min-complexity: 12\n",
    "CMakeLists.txt": "add_compile_options(-Wall -Werror)\nenable_testing()\nadd_executable(kit_test kit_test.cpp)\nadd_test(NAME kit COMMAND kit_test)\n",
    "detekt.yml": "complexity:\n  LongMethod:\n    threshold: 40\n",
    "build.gradle.kts": "tasks.test {\n    useJUnitPlatform()\n}\n",
    "phpstan.neon": "parameters:\n\tlevel: 8\n",
    ".eslintignore": "dist/\n",
    ".gitignore": "dist/\n",
    "go.mod": "module a\n\ngo 1.22\n\nrequire github.com/stretchr/testify v1.9.0\n",
    "requirements-dev.txt": "pytest>=8\nruff==0.6.1\n",
    ".env": "URL=x\n",
    "src/kit/__init__.py": "x = 1\n",
    "tests/test_kit.py": "def test_kit():\n    assert 1 + 1 == 2\n",
}

LOOSER = [
    ("pyproject.toml", 'ignore = ["E501"]', 'ignore = ["E501", "F401"]', "configuration-loosened"),
    ("pyproject.toml", 'select = ["E", "F"]', 'select = ["E9"]', "configuration-loosened"),
    ("pyproject.toml", "line-length = 88", "line-length = 200", "configuration-loosened"),
    ("pyproject.toml", '["build"]', '["build", "src"]', "configuration-loosened"),
    ("pyproject.toml", "strict = true", "strict = false", "configuration-loosened"),
    ("pyproject.toml", "strict = true", "strict = true\n    ignore_errors = true", "configuration-loosened"),
    ("pyproject.toml", 'module = "kit.old"\n    disallow_untyped_defs = true', 'module = "kit.*"\n    ignore_errors = true', "configuration-loosened"),
    ("pyproject.toml", "fail_under = 90", "fail_under = 70", "configuration-loosened"),
    ("pyproject.toml", "fail_under = 90", 'fail_under = 90\n    exclude_also = ["def "]', "configuration-loosened"),
    ("pyproject.toml", "fail_under = 90", 'fail_under = 90\n    omit = ["src/kit/*"]', "configuration-loosened"),
    ("pyproject.toml", "--strict-markers", "--strict-markers -k 'not kit'", "configuration-loosened"),
    ("pyproject.toml", "--strict-markers", "--strict-markers --deselect tests/test_kit.py", "configuration-loosened"),
    ("pyproject.toml", "--strict-markers", "", "configuration-loosened"),
    ("pyproject.toml", "--strict-markers", "--strict-markers -p no:randomly", "configuration-loosened"),
    ("pyproject.toml", 'testpaths = ["tests"]', 'testpaths = ["smoke"]', "configuration-loosened"),
    ("pyproject.toml", 'testpaths = ["tests"]', 'testpaths = ["tests"]\n    python_functions = ["check_*"]', "configuration-loosened"),
    ("pyproject.toml", 'filterwarnings = ["error"]', 'filterwarnings = ["ignore"]', "configuration-loosened"),
    ("pyproject.toml", "ruff>=0.5", "ruff<0.1", "dependency-redirected"),
    ("pyproject.toml", "[tool.mypy]\n    strict = true\n", "", "configuration-loosened"),
    ("package.json", '"jest",', '"jest --passWithNoTests",', "package-script-changed"),
    ("package.json", '"lint": "eslint ."', '"lint": "eslint . || true"', "package-script-changed"),
    ("package.json", '"test": "jest"', '"pretest": "rm -rf test", "test": "jest"', "package-script-changed"),
    ("package.json", '"lines": 90', '"lines": 50', "configuration-loosened"),
    ("package.json", '"eqeqeq": "error"', '"eqeqeq": "off"', "configuration-loosened"),
    ("package.json", '"testEnvironment": "node"', '"testEnvironment": "node", "testPathIgnorePatterns": ["kit"]', "configuration-loosened"),
    ("package.json", '"testEnvironment": "node"', '"testEnvironment": "node", "moduleNameMapper": {"^../src/(.*)": "<rootDir>/fake/$1"}', "configuration-loosened"),
    ("package.json", "^29.7.0", "^20.0.0", "dependency-redirected"),
    ("package.json", '"devDependencies"', '"overrides": {"jest": "file:./fake"}, "devDependencies"', "dependency-redirected"),
    ("Makefile", "CFLAGS = -Wall", "CFLAGS = -Wall -Wno-error", "make-loosened"),
    ("Makefile", "CFLAGS = -Wall", "CFLAGS =", "make-loosened"),
    ("Makefile", "\tpytest -q", "\t-pytest -q", "make-loosened"),
    ("Makefile", "\tpytest -q", "\tpytest -q || true", "make-loosened"),
    ("Makefile", "\tpytest -q", "\t@echo ok", "make-loosened"),
    ("Makefile", "\tmypy src\n", "", "make-loosened"),
    ("Makefile", ".PHONY", "MAKEFLAGS += -i\n    .PHONY", "make-loosened"),
    ("Makefile", ".PHONY", ".IGNORE:\n    .PHONY", "make-loosened"),
    ("Makefile", "test: build", "test:", "make-loosened"),
    ("Makefile", "lint:", "test:\n    	@echo fine\n    lint:", "make-loosened"),
    ("Makefile", "test: build", "ifdef FULL\n    test: build", "make-loosened"),
    (".github/workflows/ci.yml", "- run: pytest -q", "- run: pytest -q || true", "pipeline-loosened"),
    (".github/workflows/ci.yml", "- run: pytest -q", "- run: pytest -q\n            continue-on-error: true", "pipeline-loosened"),
    (".github/workflows/ci.yml", "- run: pytest -q", "- run: pytest -q\n            if: false", "pipeline-loosened"),
    (".github/workflows/ci.yml", "runs-on: ubuntu-latest", "if: github.actor == 'x'\n        runs-on: ubuntu-latest", "pipeline-loosened"),
    ("tox.ini", "[flake8]", "[pytest]\n    testpaths = smoke\n    [flake8]", "configuration-loosened"),
    ("tox.ini", "[flake8]", "[pytest]\n    pythonpath = fake\n    [flake8]", "configuration-loosened"),
    (".github/workflows/ci.yml", "          - run: pytest -q\n", "", "pipeline-loosened"),
    (".github/workflows/ci.yml", "on: [push, pull_request]", "on: [workflow_dispatch]", "pipeline-loosened"),
    (".pre-commit-config.yaml", "      - id: ruff-format\n", "", "pre-commit-loosened"),
    (".pre-commit-config.yaml", "- id: ruff\n", "- id: ruff\n            exclude: ^src/\n", "pre-commit-loosened"),
    (".pre-commit-config.yaml", "- id: ruff\n", "- id: ruff\n            stages: [manual]\n", "pre-commit-loosened"),
    (".pre-commit-config.yaml", "entry: pytest -q", "entry: pytest -q --co", "pre-commit-loosened"),
    (".pre-commit-config.yaml", "v0.6.1", "v0.1.0", "pre-commit-loosened"),
    (".pre-commit-config.yaml", "ruff-pre-commit", "ruff-fork", "pre-commit-loosened"),
    (".pre-commit-config.yaml", "repos:", "files: ^docs/\n    repos:", "pre-commit-loosened"),
    ("tox.ini", "        pytest -q\n", "        - pytest -q\n", "configuration-loosened"),
    ("tox.ini", "        coverage report\n", "", "configuration-loosened"),
    ("tox.ini", "max-line-length = 88", "max-line-length = 240", "configuration-loosened"),
    ("tox.ini", "E203", "E203,F841", "configuration-loosened"),
    ("tox.ini", "[flake8]", "[flake8]\n    exclude = src", "configuration-loosened"),
    ("pom.xml", "<failsOnError>true", "<failsOnError>false", "configuration-loosened"),
    ("pom.xml", "<build>", "<properties><maven.test.skip>true</maven.test.skip></properties><build>", "configuration-loosened"),
    ("noxfile.py", '"pytest", "-q"', '"pytest", "-q", success_codes=[0, 1]', "runner-loosened"),
    ("noxfile.py", 'session.run("pytest", "-q")', 'session.log("ok")', "runner-loosened"),
    ("eslint.config.js", "'error'", "'warn'", "configuration-loosened"),
    ("eslint.config.js", "['dist/']", "['dist/', 'src/**']", "configuration-loosened"),
    ("vitest.config.ts", "lines: 90", "lines: 10", "configuration-loosened"),
    ("vitest.config.ts", "test: {", "test: { retry: 5,", "configuration-loosened"),
    ("vitest.config.ts", "src/**/*.test.ts", "src/smoke.test.ts", "configuration-loosened"),
    ("Cargo.toml", '"deny"', '"allow"', "configuration-loosened"),
    ("Cargo.toml", "[dependencies]", "[lib]\ntest = false\n\n[dependencies]", "configuration-loosened"),
    ("Cargo.toml", 'serde = "1"', 'serde = { path = "fake" }', "dependency-redirected"),
    ("tsconfig.json", '"strict": true', '"strict": false', "configuration-loosened"),
    ("tsconfig.json", '"strict": true', '"strict": true, "skipLibCheck": true', "configuration-loosened"),
    ("tsconfig.json", '"include": ["src"]', '"include": ["src/main.ts"]', "configuration-loosened"),
    (".golangci.yml", "    - unused\n", "", "configuration-loosened"),
    (".golangci.yml", "min-complexity: 12", "min-complexity: 40", "configuration-loosened"),
    ("phpstan.neon", "level: 8", "level: 3", "configuration-loosened"),
    ("eslint.config.js", "['warn', 'all']", "['warn', 'multi']", "configuration-loosened"),
    ("eslint.config.js", "10]", "60]", "configuration-loosened"),
    ("pyproject.toml", "fail_under = 90", 'fail_under = 90\n    omit = ["*/kit/__init__.py"]', "configuration-loosened"),
    (".golangci.yml", "linters:", "run:\n  tests: false\nlinters:", "configuration-loosened"),
    ("detekt.yml", "threshold: 40", "threshold: 90", "configuration-loosened"),
    ("build.gradle.kts", "useJUnitPlatform()", "useJUnitPlatform()\n    ignoreFailures = true", "runner-loosened"),
    ("build.gradle.kts", "useJUnitPlatform()", 'useJUnitPlatform()\n    filter { excludeTestsMatching("*x*") }', "runner-loosened"),
    ("CMakeLists.txt", " -Werror", "", "build-loosened"),
    ("CMakeLists.txt", " -Werror", " -Werror -Wno-unused", "build-loosened"),
    ("CMakeLists.txt", "add_test(NAME kit COMMAND kit_test)", "", "build-loosened"),
    ("CMakeLists.txt", "COMMAND kit_test", "COMMAND kit_test --gtest_filter=-Slow*", "build-loosened"),
    ("CMakeLists.txt", "enable_testing()", "enable_testing()\nset_tests_properties(kit PROPERTIES WILL_FAIL ON)", "build-loosened"),
    (".eslintignore", "dist/\n", "dist/\nsrc/\n", "ignore-widened"),
    (".gitignore", "dist/\n", "dist/\n/src/kit/\n", "ignore-widened"),
    ("go.mod", "require github", "replace github.com/stretchr/testify => ./fake\n\nrequire github", "dependency-redirected"),
    ("requirements-dev.txt", "ruff==0.6.1", "ruff==0.0.1", "dependency-redirected"),
    ("requirements-dev.txt", "pytest>=8", "pytest @ file:///tmp/pytest", "dependency-redirected"),
    (".env", "URL=x", "URL=x\nPYTEST_ADDOPTS=-k nothing", "environment-steered"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "old", "new", "rule"), LOOSER)
def test_what_loosens_a_check_is_refused(path: str, old: str, new: str, rule: str) -> None:
    assert old in TREE[path]
    found = judged(TREE, {path: TREE[path].replace(old, new)}, RUFF)
    assert (rule, path) in {(v.rule, v.path) for v in found}, [v.detail for v in found]


AS_STRICT = [
    ("pyproject.toml", "attrs>=23", 'attrs>=23", "httpx>=0.27'),
    ("pyproject.toml", "ruff>=0.5", "ruff>=0.6"),
    ("pyproject.toml", 'name = "kit"', 'name = "kit"\n    version = "2"'),
    ("pyproject.toml", 'select = ["E", "F"]', 'select = ["E", "F", "B"]'),
    ("pyproject.toml", 'ignore = ["E501"]', "ignore = []"),
    ("pyproject.toml", '["build"]', '["build", "generated"]'),
    ("pyproject.toml", "line-length = 88", "line-length = 79"),
    ("pyproject.toml", "fail_under = 90", "fail_under = 95"),
    ("pyproject.toml", "fail_under = 90", "fail_under = 90\n    show_missing = true"),
    ("pyproject.toml", "--strict-markers", "--strict-markers --strict-config"),
    ("pyproject.toml", 'testpaths = ["tests"]', 'testpaths = ["tests"]\n    markers = ["slow: takes long"]'),
    ("pyproject.toml", 'testpaths = ["tests"]', 'testpaths = ["tests", "integration"]'),
    ("pyproject.toml", "strict = true", "strict = true\n    warn_unreachable = true"),
    ("pyproject.toml", "[tool.coverage.report]", '[[tool.mypy.overrides]]\n    module = "boto3.*"\n    ignore_missing_imports = true\n\n    [tool.coverage.report]'),
    ("pyproject.toml", "[tool.mypy]", '[tool.hatch.build]\n    include = ["src"]\n\n    [tool.mypy]'),
    ("package.json", '"build": "tsc"', '"build": "tsc", "docs": "typedoc"'),
    ("package.json", '"jest": "^29.7.0"', '"jest": "^29.7.0", "lodash": "^4.0.0"'),
    ("package.json", '"lines": 90', '"lines": 95'),
    ("package.json", "^29.7.0", "^30.0.0"),
    ("Makefile", ".PHONY", "docs:\n    	sphinx-build docs out\n    .PHONY"),
    ("Makefile", "CFLAGS = -Wall", "CFLAGS = -Wall -Wextra"),
    ("Makefile", "\tmypy src", "\tmypy src\n    	mypy tests"),
    (".github/workflows/ci.yml", "actions/checkout@v4", "actions/checkout@v5"),
    (".github/workflows/ci.yml", "- run: pytest -q", "- run: pytest -q\n          - run: ruff check ."),
    (".github/workflows/ci.yml", "jobs:\n", "jobs:\n      docs:\n        if: github.ref == 'refs/heads/main'\n        runs-on: ubuntu-latest\n        steps:\n          - run: make docs\n            env: {CI: 'true'}\n"),
    ("tox.ini", "[flake8]", "[pytest]\n    testpaths = tests\n    pythonpath = src\n    [flake8]"),
    (".pre-commit-config.yaml", "v0.6.1", "v0.9.0"),
    (".pre-commit-config.yaml", "- repo: local", "- repo: https://github.com/codespell-project/codespell\n        rev: v2.3.0\n        hooks:\n          - id: codespell\n      - repo: local"),
    ("tox.ini", "max-line-length = 88", "max-line-length = 79"),
    ("tox.ini", "envlist = py", "envlist = py, lint"),
    ("noxfile.py", 'session.install("-e", ".")', 'session.install("-e", ".")\n        session.log("go")'),
    ("eslint.config.js", "curly: ['warn', 'all']", "curly: ['error', 'all']"),
    ("eslint.config.js", "['dist/']", "[ 'dist/' ]"),
    ("vitest.config.ts", "lines: 90", "lines: 92"),
    ("Cargo.toml", 'serde = "1"', 'serde = "1"\nregex = "1"'),
    ("Cargo.toml", 'unwrap_used = "deny"', 'unwrap_used = "deny"\nexpect_used = "warn"'),
    ("tsconfig.json", '"strict": true', '"strict": true, "noUnusedLocals": true'),
    ("tsconfig.json", '"ES2020"', '"ES2022"'),
    (".golangci.yml", "    - unused\n", "    - unused\n    - gosec\n"),
    (".golangci.yml", "min-complexity: 12", "min-complexity: 8"),
    ("phpstan.neon", "level: 8", "level: max"),
    ("eslint.config.js", "10]", "8]"),
    ("package.json", '"node"', '"node", "clearMocks": true'),
    (".github/workflows/ci.yml", "['3.11']", "['3.11', '3.12']"),
    ("detekt.yml", "threshold: 40", "threshold: 30\n  LongClass:\n    active: true"),
    ("tox.ini", "[flake8]", "[testenv:types]\n    commands = mypy src\n    [flake8]"),
    ("CMakeLists.txt", " -Werror", " -Werror -Wextra"),
    ("CMakeLists.txt", "kit_test.cpp", "kit_test.cpp more_test.cpp"),
    ("CMakeLists.txt", "COMMAND kit_test)", "COMMAND kit_test)\nadd_test(NAME more COMMAND more_test)"),
    (".gitignore", "dist/\n", "dist/\nbuild/\n*.log\n"),
    ("go.mod", "v1.9.0", "v1.9.0\n\nrequire github.com/google/uuid v1.6.0"),
    ("requirements-dev.txt", "ruff==0.6.1", "ruff==0.9.0\nhttpx"),
    (".env", "URL=x", "URL=x\nDATABASE_URL=sqlite://"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "old", "new"), AS_STRICT)
def test_what_is_as_strict_as_before_is_fine(path: str, old: str, new: str) -> None:
    assert old in TREE[path]
    assert judged(TREE, {path: TREE[path].replace(old, new)}, RUFF) == ()


@pytest.mark.parametrize(
    ("path", "content", "rule"),
    [
        ("ruff.toml", "select = []\n", "configuration-loosened"),
        ("src/kit/.ruff.toml", "ignore = ['ALL']\n", "configuration-loosened"),
        ("mypy.ini", "[mypy]\n", "configuration-loosened"),
        ("pytest.ini", "[pytest]\n", "configuration-loosened"),
        (".coveragerc", "[run]\nomit = *\n", "configuration-loosened"),
        ("GNUmakefile", "test:\n\ttrue\n", "make-loosened"),
        (".atlas/config.yaml", "version: 1\n", "atlas-touched"),
    ],
)
def test_new_settings_that_take_precedence_are_refused(path: str, content: str, rule: str) -> None:
    assert rule in rules_of(judged(TREE, {path: content}, MYPY))


def test_deleted_settings_are_refused() -> None:
    assert "configuration-loosened" in rules_of(judged(TREE, {"eslint.config.js": ""}, RUFF))


def test_settings_that_can_no_longer_be_read_are_refused() -> None:
    assert "configuration-loosened" in rules_of(judged(TREE, {"pyproject.toml": "[tool\n"}, RUFF))


def test_ruff_settings_may_move_to_their_new_table() -> None:
    before = {"pyproject.toml": "[tool.ruff]\nselect = ['E']\n"}
    after = {"pyproject.toml": "[tool.ruff.lint]\nselect = ['E']\n"}
    assert judged(before, after, RUFF) == ()


def test_a_new_project_in_a_new_folder_brings_its_own_settings() -> None:
    files = {
        "tools/gen/pyproject.toml": "[tool.ruff]\nselect = ['E']\n",
        "tools/gen/gen.py": "x = 1\n",
    }
    assert judged(TREE, files, RUFF) == ()


VALIDATION = """
    [validation]
    test_commands = ["make test"]
"""
ATLAS = {
    "atlas.toml": VALIDATION,
    ".atlasrc": '{"validation": {"test_commands": ["make test"]}}\n',
    "atlas-retry.json": '{"validation": {"test_commands": ["make test"]}}\n',
    "atlas.config.yaml": "validation:\n  test: [make test]\n",
    "pyproject.toml": "[tool.atlas.validation]\ntest = ['make test']\n",
    "setup.cfg": "[tool:atlas]\ntest_commands = make test\n",
    "Cargo.toml": "[package.metadata.atlas]\ntest_commands = ['make test']\n",
    "package.json": '{"atlas": {"test_commands": ["make test"]}}\n',
}
NOT_ATLAS = {
    "atlas.json": '{"meta": {"image": "atlas.png"}, "make test": [0, 16]}\n',
    "assets/atlas.toml": VALIDATION,
    "package.json": '{"dependencies": {"atlas": "make test"}}\n',
    "Cargo.toml": "[dependencies]\natlas = 'make test'\n",
}


@pytest.mark.parametrize("path", ATLAS)
def test_settings_of_atlas_are_its_own_in_any_form(path: str) -> None:
    after = ATLAS[path].replace("make test", "make test || true")
    assert "atlas-touched" in rules_of(judged({path: ATLAS[path]}, {path: after}))


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (".env", "ATLAS_VALIDATION__TEST=[]"),
        (".envrc", "export ATLAS_GUARD__MODE=off"),
        ("Makefile", "export ATLAS_GUARD__MODE := off"),
        (".github/workflows/check.yml", "env: {ATLAS_GUARD__MODE: 'off'}"),
    ],
)
def test_variables_that_win_over_the_settings_of_atlas_are_its_own(path: str, line: str) -> None:
    said = f"# {line}\n# atlas\n"
    assert "atlas-touched" in rules_of(judged({path: "# atlas\n"}, {path: f"{line}\n"}))
    assert "atlas-touched" not in rules_of(judged({path: "# atlas\n"}, {path: said}))


@pytest.mark.parametrize("path", NOT_ATLAS)
def test_files_that_are_only_named_like_atlas_are_not_its_own(path: str) -> None:
    after = NOT_ATLAS[path].replace("make test", "1.2.3")
    assert "atlas-touched" not in rules_of(judged({path: NOT_ATLAS[path]}, {path: after}))
