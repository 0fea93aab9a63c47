"""Which files decide, by name, by the part that moved and by what a gate runs."""

from inspect import Parameter, signature
from pathlib import Path

import pytest
from msgspec import Struct
from msgspec.structs import replace

from atlas_retry import guard
from atlas_retry.guard import case as values
from atlas_retry.guard import decides, judge, places, settings
from atlas_retry.guard.judge import folders, seals
from atlas_retry.guard.judge.seals import PROTECTED, protected
from atlas_retry.patterns import words
from atlas_retry.settings import GuardSettings, Settings
from atlas_retry.text import reinstalling
from atlas_retry.text.documents import flat, parse
from tests.guardcases import answers, case, failed, judged

FILES = {
    "pipeline-changed": """
        .github/workflows/ci.yml .github/actions/a/action.yml .gitlab-ci.yml .gitlab/ci/a.yml
        .circleci/config.yml azure-pipelines.yml Jenkinsfile .travis.yml .drone.yml
        bitbucket-pipelines.yml .buildkite/pipeline.yml appveyor.yml .cirrus.yml .woodpecker/a.yml
        .husky/pre-commit .githooks/pre-push lefthook.yml .lefthook.yml .pre-commit-config.yaml
        .pre-commit-hooks.yaml .lintstagedrc.json codecov.yml .codecov.yml tests/.gitlab-ci.yml
        """,
    "settings-changed": """
        ruff.toml .ruff.toml mypy.ini .mypy.ini pytest.ini .pytest.ini pytest.toml tox.ini tox.toml
        .coveragerc .coveragerc.toml .flake8 pylintrc .pylintrc .isort.cfg .bandit bandit.yaml
        pyrightconfig.json pyre.toml ty.toml .pycodestyle .pydocstyle .yapfrc .style.yapf
        .eslintrc.json eslint.config.mjs .prettierrc prettier.config.js biome.jsonc tsconfig.json
        tsconfig.build.json jsconfig.json deno.jsonc jest.config.ts vitest.config.ts
        vitest.workspace.ts vite.config.js karma.conf.js playwright.config.ts cypress.config.js
        ava.config.js babel.config.js .babelrc .mocharc.yml .nycrc .c8rc.json .taprc .stylelintrc
        stylelint.config.js .xo-config.json .swcrc webpack.config.js rollup.config.js
        tsup.config.ts .commitlintrc.json commitlint.config.js .golangci.yml golangci.toml
        staticcheck.conf .testcoverage.yml go.work clippy.toml .clippy.toml rustfmt.toml
        .rustfmt.toml deny.toml tarpaulin.toml nextest.toml .cargo/config.toml
        .config/nextest.toml rust-toolchain.toml .rubocop.yml .rubocop_todo.yml .rspec .simplecov
        .standard.yml .reek.yml .minitest.rb phpunit.xml.dist phpstan.neon psalm.xml
        .php-cs-fixer.php phpcs.xml infection.json5 pest.php checkstyle.xml pmd.xml
        spotbugs-exclude.xml junit-platform.properties testng.xml .clang-tidy .clang-format
        .shellcheckrc shellcheckrc .yamllint .markdownlint.json .markdownlintignore .hadolint.yaml .swiftlint.yml
        detekt.yml .scalafmt.conf .editorconfig sonar-project.properties _typos.toml .typos.toml
        typos.toml .codespellrc .jshintrc .jscsrc .tflint.hcl buf.yaml .env .env.test .envrc .npmrc
        .yarnrc.yml .python-version .nvmrc .tool-versions mise.toml sitecustomize.py
        usercustomize.py a.pth
        """,
    "recipe-changed": """
        Makefile makefile GNUmakefile rules.mk justfile Justfile .justfile Taskfile.yml noxfile.py
        Rakefile Earthfile dodo.py tasks.py Dockerfile Dockerfile.ci docker-compose.yml compose.yaml
        gulpfile.js Gruntfile.js lerna.json nx.json turbo.json mvnw gradlew mvnw.cmd gradlew.bat
        .mvn/jvm.config gradle/libs.versions.toml gradle.properties settings.gradle.kts
        """,
    "lock-changed": """
        uv.lock poetry.lock pdm.lock Pipfile.lock package-lock.json npm-shrinkwrap.json yarn.lock
        pnpm-lock.yaml bun.lock bun.lockb Cargo.lock go.sum go.work.sum Gemfile.lock composer.lock
        mix.lock gradle.lockfile packages.lock.json .terraform.lock.hcl .gitmodules
        """,
    "ignore-changed": """
        .gitignore .gitattributes .eslintignore .prettierignore .stylelintignore .dockerignore
        .npmignore .rgignore .ignore .gitleaksignore .semgrepignore
        .trivyignore .nycignore .git-blame-ignore-revs
        """,
    "test-changed": """
        test/a.py tests/a.js Test/A.cs Tests/A.swift src/__tests__/a.js spec/a.rb specs/a.js
        testing/a.go testdata/a.json test-data/a.json test_data/a.json testutil/a.go testutils/a.ts
        test-utils/a.ts test_utils/a.py Shop.Tests/A.cs Shop.Test/A.cs ShopTests/A.swift
        UnitTests/A.swift e2e/a.ts integration-test/a.js integration-tests/a.js
        integration_test/a.go integration_tests/a.rs checks/a.py acceptance/a.py login.feature
        src/__snapshots__/a.txt src/__mocks__/a.js src/__fixtures__/a.json fixtures/a.json
        goldens/a.txt golden/a.txt cassettes/a.yaml snapshots/a.txt test_a.py test.py test.js
        test.ts test.cjs test.mjs test.rb tests.py a_test.go a_tests.py a.test.js a-test.js
        a.tests.ts a.test-d.ts a.spec.ts a-spec.js a_spec.rb a.cy.ts ATest.java ATests.java
        ATestCase.java AIT.java ASpec.java TestA.java ATest.kt ATests.kt ASpec.kt ATest.scala
        ATests.scala ASpec.scala ATest.groovy ASpec.groovy ATest.php ATests.php ATestCase.php
        ATest.cs ATests.cs ATests.swift ATest.swift conftest.py a.bats a.snap a.golden a.ambr
        a.approved.txt a.expected a.stdout a.stderr a.t
        """,
}
NOT_DECIDING = """
    src/app.py README.md docs/a.md .env.example .env.sample .env.template latest.py contest.py
    src/attest.js manifest.yaml assets/logo.svg data/rows.csv lib/checks/a.py src/inspect.py
    protest.java LICENSE
    """


@pytest.mark.parametrize(("rule", "path"), [(r, p) for r, t in FILES.items() for p in t.split()])
def test_a_deciding_file_is_recognised_by_name(rule: str, path: str) -> None:
    assert answers(judged({path: "<a>1</a>\n"}, {path: "<a>2</a>\n"})) == {"held": {rule}}


@pytest.mark.parametrize("path", NOT_DECIDING.split())
def test_any_other_file_is_kept(path: str) -> None:
    assert answers(judged({path: "<a>1</a>\n"}, {path: "<a>2</a>\n"})) == {}


@pytest.mark.parametrize("path", ["tests/ruff.toml", "tests/data/.gitignore", "fixtures/Makefile"])
def test_settings_among_test_data_count_as_tests(path: str) -> None:
    assert answers(judged({path: "x\n"}, {path: "y\n"})) == {"held": {"test-changed"}}


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        ("a.py", True),
        ("tests/a.py", True),
        ("ruff.toml", True),
        ("pyproject.toml", True),
        (".github/workflows/ci.yml", True),
        ("uv.lock", False),
        (".gitignore", False),
        ("tests/a.log", False),
        ("a.txt", False),
    ],
)
def test_code_and_settings_are_files_no_tool_writes(path: str, counts: bool) -> None:
    assert decides.is_code_or_setting(path) is counts


CODE = """
    .py .pyi .pyx .js .jsx .mjs .cjs .ts .tsx .mts .cts .go .rs .java .kt .kts .scala .rb .rake
    .php .c .h .cc .cpp .cxx .hpp .hh .cs .swift .sh .bash .zsh .bats .vue .svelte .lua .pl .pm
    .ex .exs .dart .m .mm .zig .groovy .clj .hs .ml .erl .r .jl .sql .proto .graphql .PY
    """
CACHED = """
    src/__pycache__/a.pyc .pytest_cache/x .mypy_cache/x .ruff_cache/x .hypothesis/x .coverage
    .coverage.host.12 .eslintcache a.tsbuildinfo .nyc_output/x htmlcov/a.html target/x .tox/x
    .nox/x .gradle/x .vite/x node_modules/.cache/x node_modules/.vite/x .DS_Store
    """
PROSE = """
    a.md a.rst a.adoc a.txt LICENSE COPYING AUTHORS CHANGELOG.md CHANGES NEWS README docs/README.md
    """


def test_paths_are_classified_by_name() -> None:
    assert all(places.is_code(f"src/a{suffix}") for suffix in CODE.split())
    assert all(places.is_source(f"src/a{suffix}") for suffix in CODE.split() if suffix != ".bats")
    assert not any(map(places.is_code, ("a.txt", "py", "a.json", "Makefile")))
    assert not places.is_source("tests/a.py")
    assert all(places.is_prose(path) for path in PROSE.split())
    prose = (
        "requirements.txt",
        "requirements-dev.txt",
        "constraints.txt",
        "CMakeLists.txt",
        "a.py",
    )
    assert not any(map(places.is_prose, prose))


@pytest.mark.parametrize("path", CACHED.split())
def test_tool_caches_are_never_charged(path: str) -> None:
    assert answers(judged({path: "1"}, {path: "2"})) == {}
    assert [r.mechanism for r in guard.rulings(case({path: "1"}, {path: "2"}))] == [
        "places: a cache of a tool"
    ]


# --- shared files ---------------------------------------------------------------------------------

PARTS = [
    ("pyproject.toml", "[build-system]\nrequires = 'a'\n", "[build-system]\nrequires = 'b'\n", "`build-system.requires`"),
    ("pyproject.toml", "[tool.ruff]\na = 1\n", "[tool.ruff]\na = 2\n", "`tool.ruff.a`"),
    ("pyproject.toml", "[tool.poetry.scripts]\na = 1\n", "[tool.poetry.scripts]\na = 2\n", "`tool.poetry.scripts.a`"),
    ("pyproject.toml", "[tool.uv.sources]\na = 1\n", "[tool.uv.sources]\na = 2\n", "`tool.uv.sources.a`"),
    ("pyproject.toml", "[tool.hatch.envs.a]\na = 1\n", "[tool.hatch.envs.a]\na = 2\n", "`tool.hatch.envs.a.a`"),
    ("pyproject.toml", "[tool.poetry.source]\na = 1\n", "[tool.poetry.source]\na = 2\n", "`tool.poetry.source.a`"),
    ("pyproject.toml", "[tool.uv]\nindex = 1\n", "[tool.uv]\nindex = 2\n", "`tool.uv.index`"),
    ("pyproject.toml", "[tool.uv]\nindexes = 1\n", "[tool.uv]\nindexes = 2\n", "`tool.uv.indexes`"),
    ("pyproject.toml", "[tool.uv]\noverride = 1\n", "[tool.uv]\noverride = 2\n", "`tool.uv.override`"),
    ("pyproject.toml", "[tool.pdm]\noverrides = 1\n", "[tool.pdm]\noverrides = 2\n", "`tool.pdm.overrides`"),
    ("pyproject.toml", "[tool.rye]\nenv = 1\n", "[tool.rye]\nenv = 2\n", "`tool.rye.env`"),
    ("pyproject.toml", "", "tool = 1\n", "`tool`"),
    ("package.json", '{"jest": {"a": 1}}', '{"jest": {"a": 2}}', "`jest.a`"),
    ("package.json", '{"scripts": {"a": 1}}', '{"scripts": {"a": 2}}', "`scripts.a`"),
    ("package.json", '{"overrides": {"a": 1}}', '{"overrides": {"a": 2}}', "`overrides.a`"),
    ("setup.cfg", "[tool:pytest]\na = 1\n", "[tool:pytest]\na = 2\n", "`tool:pytest.a`"),
    ("Cargo.toml", "[lints]\na = 1\n", "[lints]\na = 2\n", "`lints.a`"),
    ("Cargo.toml", "[profile.test]\na = 1\n", "[profile.test]\na = 2\n", "`profile.test.a`"),
    ("Cargo.toml", "[patch.a]\na = 1\n", "[patch.a]\na = 2\n", "`patch.a.a`"),
    ("Cargo.toml", "[replace]\na = 1\n", "[replace]\na = 2\n", "`replace.a`"),
    ("Cargo.toml", "[[test]]\nname = 'a'\n", "[[test]]\nname = 'b'\n", "`test.[0].name`"),
    ("Cargo.toml", "[[bench]]\nname = 'a'\n", "[[bench]]\nname = 'b'\n", "`bench.[0].name`"),
    ("Cargo.toml", "[workspace.lints]\na = 1\n", "[workspace.lints]\na = 2\n", "`workspace.lints.a`"),
    ("Cargo.toml", "[dev-dependencies]\na = 1\n", "[dev-dependencies]\na = 2\n", "`dev-dependencies.a`"),
    ("Cargo.toml", "[target.x.dev-dependencies]\na = 1\n", "[target.x.dev-dependencies]\na = 2\n", "`target.x.dev-dependencies.a`"),
    ("Cargo.toml", "[package]\n", "[package]\nautotests = false\n", "`package.autotests`"),
    ("Cargo.toml", "[package]\n", "[package]\nautobins = false\n", "`package.autobins`"),
    ("Cargo.toml", "[lib]\n", "[lib]\ndoctest = false\n", "`lib.doctest`"),
    ("Cargo.toml", "[lib]\n", "[lib]\nharness = false\n", "`lib.harness`"),
    ("Cargo.toml", "[lib]\n", "[lib]\ntest = false\n", "`lib.test`"),
    ("Cargo.toml", "[[bin]]\nname = 'a'\n", "[[bin]]\nname = 'a'\ntest = false\n", "`bin.[0].test`"),
    ("composer.json", '{"scripts": 1}', '{"scripts": 2}', "`scripts`"),
    ("composer.json", '{"config": 1}', '{"config": 2}', "`config`"),
    ("composer.json", '{"repositories": 1}', '{"repositories": 2}', "`repositories`"),
    ("composer.json", '{"extra": 1}', '{"extra": 2}', "`extra`"),
    ("composer.json", '{"autoload-dev": 1}', '{"autoload-dev": 2}', "`autoload-dev`"),
    ("pom.xml", "<project><profiles>a</profiles></project>", "<project><profiles>b</profiles></project>", "`project/profiles`"),
    ("pom.xml", "<project><reporting>a</reporting></project>", "<project><reporting>b</reporting></project>", "`project/reporting`"),
    ("pom.xml", "<project><repositories>a</repositories></project>", "<project><repositories>b</repositories></project>", "`project/repositories`"),
    ("pom.xml", "<project><pluginRepositories>a</pluginRepositories></project>", "<project><pluginRepositories>b</pluginRepositories></project>", "`project/pluginrepositories`"),
    ("pom.xml", "<p><properties><skipTests>0</skipTests></properties></p>", "<p><properties><skipTests>1</skipTests></properties></p>", "`p/properties/skiptests`"),
    ("pom.xml", "<p><properties><argLine>0</argLine></properties></p>", "<p><properties><argLine>1</argLine></properties></p>", "`p/properties/argline`"),
    ("package.json", '{"dependencies": {"a": "1"}}', '{"dependencies": {"a": "file:../a"}}', "`dependencies.a`"),
    ("package.json", '{"dependencies": {"a": "1"}}', '{"dependencies": {"a": "link:../a"}}', "`dependencies.a`"),
    ("package.json", '{"dependencies": {"a": "1"}}', '{"dependencies": {"a": "npm:b@1"}}', "`dependencies.a`"),
    ("package.json", '{"dependencies": {"a": "1"}}', '{"dependencies": {"a": "https://b/a.tgz"}}', "`dependencies.a`"),
    ("pyproject.toml", "[project]\ndependencies = ['a']\n", "[project]\ndependencies = ['a @ git+ssh:b']\n", "`project.dependencies`"),
    ("package.json", "{}", "{", "a file that cannot be read"),
    ("go.mod", "module a\n", "module a\nexclude b v1\n", "`exclude b v1`"),
    ("go.mod", "module a\n", "module a\ntoolchain go1\n", "`toolchain go1`"),
    ("go.mod", "module a\n", "module a\ntool b\n", "`tool b`"),
    ("go.mod", "module a\n", "module a\n\tb => ../b\n", "`b => ../b`"),
    ("CMakeLists.txt", "a\n", "a\nenable_testing()\n", "`enable_testing()`"),
    ("CMakeLists.txt", "a\n", "a\nadd_compile_options(-Wall)\n", "`add_compile_options(-Wall)`"),
    ("CMakeLists.txt", "a\n", "a\nfile(WRITE tests/a b)\n", "`file(WRITE tests/a b)`"),
    ("meson.build", "a\n", "a\ntest('b')\n", "`test('b')`"),
    ("setup.py", "a\n", "a\nopen('tests/a', 'w')\n", "`open('tests/a', 'w')`"),
    ("build.gradle", "a\n", "a\njacoco {}\n", "`jacoco {}`"),
    ("build.gradle.kts", "a\n", "a\nignoreFailures = true\n", "`ignoreFailures = true`"),
    ("setup.py", "a\n", "a\ncmdclass = b\n", "`cmdclass = b`"),
    ("Gemfile", "a\n", "a\ngem 'b', path: 'c'\n", "`gem 'b', path: 'c'`"),
    ("Package.swift", "a\n", "a\n.testTarget()\n", "`.testTarget()`"),
    ("mix.exs", "a\n", "a\naliases: b\n", "`aliases: b`"),
    ("mix.exs", "a\ntest: b\n", "a\n", "`test: b`"),
    ("mix.exs", "a\n", f"a\ntest{'x' * 60}\n", f"`test{'x' * 56}`"),
    ("requirements.txt", "a\n", "a\n-r other.txt\n", "`-r other.txt`"),
    ("requirements.txt", "a\n", "a\nb @ https://c\n", "`b @ https://c`"),
    ("requirements.txt", "a\n", "file:b\n", "`file:b`"),
    ("requirements.txt", "a\n", f"-{'x' * 60}\n", f"`-{'x' * 59}`"),
    ("requirements-dev.txt", "a==1\nb==1\n", "a==1\n", "`b==1`"),
    ("requirements-test.txt", "a==2\n", "a==1\n", "`a==2`"),
    ("requirements.lint.txt", "a==2\n", "a==1\n", "`a==2`"),
    ("constraints.txt", "a==2\n", "a==1\n", "`a==2`"),
]  # fmt: skip
OWN = [
    ("package.json", '{"repository": "http://a"}', '{"repository": "https://a/b.git"}'),
    ("Cargo.toml", "[package]\nrepository = 'https://a'\n", "[package]\nrepository = 'https://b'\n"),
    ("pyproject.toml", "[project.urls]\nDocs = 'https://a'\n", "[project.urls]\nDocs = 'https://b'\n"),
    ("setup.cfg", "[metadata]\nurl = https://a\n", "[metadata]\nurl = https://b\n"),
    ("pyproject.toml", "[project]\nversion = '1'\n", "[project]\nversion = '2'\n"),
    ("pyproject.toml", "[dependency-groups]\na = ['b']\n", "[dependency-groups]\na = ['b', 'c']\n"),
    *(("pyproject.toml", f"[tool.{tool}]\na = 1\n", f"[tool.{tool}]\na = 2\n")
      for tool in ("poetry", "pdm", "hatch", "setuptools", "flit", "uv", "rye", "scikit-build",
                   "maturin", "commitizen")),
    *(("package.json", "{}", f'{{"{key}": 1}}') for key in (
        "name", "version", "description", "main", "module", "exports", "imports", "types",
        "typings", "files", "bin", "man", "keywords", "author", "contributors", "maintainers",
        "license", "repository", "homepage", "bugs", "funding", "sideEffects", "browser", "private",
        "dependencies", "peerDependencies", "optionalDependencies", "devDependencies",
        "publishConfig", "unpkg", "jsdelivr", "peerDependenciesMeta", "engines", "directories",
        "typesVersions")),
    *(("setup.cfg", f"[{section}]\na = 1\n", f"[{section}]\na = 2\n") for section in (
        "metadata", "options", "options.extras_require", "bumpversion", "bumpversion:file",
        "bdist_wheel", "sdist", "egg_info")),
    ("Cargo.toml", "[package]\nversion = '1'\n", "[package]\nversion = '2'\n"),
    ("Cargo.toml", "[dependencies.a]\nfeatures = ['b']\n", "[dependencies.a]\nfeatures = ['c']\n"),
    ("pom.xml", "<p><version>1</version></p>", "<p><version>2</version></p>"),
    ("pom.xml", "<p><properties><java>1</java></properties></p>", "<p><properties><java>2</java></properties></p>"),
    ("composer.json", '{"require": 1}', '{"require": 2}'),
    ("setup.cfg", "\n", "[metadata]\nname = a\n"),
    ("pyproject.toml", None, "[project]\nname = 'a'\n"),
    ("package.json", '{"dependencies": {"a": "file:b"}}', '{"dependencies": {}}'),
    ("go.mod", "module a\n", "module a\n\nrequire replacement v1\n"),
    ("requirements.txt", "a==1\nb==1\n", "a==2\n"),
    ("requirements-dev.txt", "a==1\n\n", "a==1\nb==2\n"),
    ("setup.py", "a\n", "a\nversion = 2\n"),
    ("Gemfile", "gem 'a'\n", "gem 'a'\ngem 'b'\n"),
]  # fmt: skip


def deciding_part(path: str, before: str | None, after: str) -> str | None:
    there = {path: before} if before is not None else {}
    (delta,) = values.scene(case(there, {path: after})).deltas
    assert settings.is_shared(path)
    return settings.deciding_part(delta)


@pytest.mark.parametrize(("path", "before", "after", "what"), PARTS)
def test_the_deciding_section_of_a_shared_file_is_named(
    path: str, before: str, after: str, what: str
) -> None:
    assert deciding_part(path, before, after) == what


@pytest.mark.parametrize(("path", "before", "after"), OWN)
def test_other_sections_of_a_shared_file_are_kept(
    path: str, before: str | None, after: str
) -> None:
    assert deciding_part(path, before, after) is None


@pytest.mark.parametrize("path", ["a.py", "requirements.in", "my-requirements.txt"])
def test_other_files_are_not_shared(path: str) -> None:
    assert not settings.is_shared(path)
    (delta,) = values.scene(case({}, {path: "tests\n"})).deltas
    assert settings.deciding_part(delta) is None


MANIFESTS = """
    pyproject.toml package.json Cargo.toml pom.xml go.mod Gemfile composer.json setup.cfg setup.py
    package-lock.json yarn.lock pnpm-lock.yaml uv.lock poetry.lock Pipfile.lock go.sum Cargo.lock
    """.replace("Pipfile.lock", "Pipfile requirements.txt constraints-dev.txt")


def test_dependency_manifests_are_recognised() -> None:
    assert all(settings.is_manifest(f"sub/{name}") for name in MANIFESTS.split())
    assert not any(map(settings.is_manifest, ("Makefile", "a.py", "requirements.md")))


PACKAGE = '{"name": "x", "version": "1", "dependencies": {"a": "1"}}'
CARGO = '[package]\nname = "x"\n\n[dependencies]\na = "1"\n'
PYPROJECT = '[project]\nname = "x"\ndependencies = ["a"]\n'


@pytest.mark.parametrize(
    ("path", "before", "after", "noted"),
    [
        ("package.json", PACKAGE, PACKAGE.replace('"a": "1"', '"a": "1", "b": "2"'), True),
        ("package.json", PACKAGE, PACKAGE.replace('"a": "1"', '"a": "2"'), True),
        ("package.json", PACKAGE, PACKAGE.replace('"version": "1"', '"version": "2"'), False),
        ("package.json", PACKAGE, PACKAGE.replace(", ", ",\n"), False),
        ("package.json", PACKAGE, '{"broken', True),
        ("a.json", PACKAGE, PACKAGE.replace('"a": "1"', '"a": "2"'), False),
        ("Cargo.toml", CARGO, CARGO + "\n[features]\nexact = []\n", False),
        ("Cargo.toml", CARGO, CARGO + 'b = { version = "1" }\n', True),
        ("Cargo.toml", CARGO, CARGO + "\n[target.'cfg(unix)'.dependencies]\nc = \"1\"\n", True),
        ("pyproject.toml", PYPROJECT, PYPROJECT.replace('"a"', '"a", "b"'), True),
        ("pyproject.toml", PYPROJECT, PYPROJECT + "[dependency-groups]\ndev = ['b']\n", True),
        ("pyproject.toml", PYPROJECT, PYPROJECT + "description = 'y'\n", False),
        ("setup.cfg", "[metadata]\nname = x\n", "[metadata]\nname = y\n", False),
        ("setup.cfg", "", "[options]\ninstall_requires =\n    b\n", True),
        ("go.mod", "module x\n", "module x\n\nrequire a v1\n", True),
    ],
)
def test_changed_dependencies_are_noted_and_other_parts_of_a_manifest_are_not(
    path: str, before: str, after: str, noted: bool
) -> None:
    (delta,) = values.scene(case({path: before}, {path: after})).deltas
    assert settings.dependencies_changed(delta) is noted


NODE, OF_WEB = "node_modules/a/index.js", "web/node_modules/a/index.js"
BIG = ".venv/lib/python3.11/site-packages/cv2/cv2.so"
PIP = reinstalling.Distribution(
    name="cv", version="1.0", environment="/a b", has_pip=True, is_of_uv=False
)
NEITHER = replace(PIP, environment=".venv", has_pip=False)
UV = replace(NEITHER, is_of_uv=True)
FORCE = "install --force-reinstall --no-deps cv==1.0"
BY_UV = "uv pip install --python .venv/bin/python --reinstall --no-deps cv==1.0"
BOTH = f"pip --python .venv/bin/python {FORCE} && rm -rf node_modules && npm install"


@pytest.mark.parametrize(
    ("paths", "there", "owner", "remedy"),
    [
        ([NODE], ["npm-shrinkwrap.json"], None, "npm ci"),
        ([NODE], ["yarn.lock"], None, "rm -rf node_modules && yarn install"),
        ([NODE], ["pnpm-lock.yaml"], None, "rm -rf node_modules && pnpm install"),
        ([NODE], ["bun.lock"], None, "rm -rf node_modules && bun install"),
        ([NODE], ["package-lock.json", "yarn.lock", "uv.lock"], None, "npm ci"),
        ([OF_WEB], ["web/package-lock.json"], None, "(cd web && npm ci)"),
        ([OF_WEB], ["package-lock.json"], None, "npm ci"),
        ([OF_WEB], [], None, "(cd web && rm -rf node_modules && npm install)"),
        ([BIG], [], PIP, f"'/a b/bin/python' -m pip {FORCE}"),
        ([BIG], ["uv.lock"], UV, BY_UV),
        ([BIG, NODE], [], NEITHER, BOTH),
        ([BIG], ["uv.lock"], None, None),
        (["vendor/units.py"], ["package-lock.json"], None, None),
        (["vendor/units.py", NODE], ["package-lock.json"], None, None),
        (["/home/a/.gitconfig"], [], None, None),
        (["a/.git"], ["package-lock.json"], None, None),
        ([NODE, "a/.git"], ["package-lock.json"], None, None),
    ],
)  # fmt: skip
def test_the_remedy_follows_what_installed_the_file(
    paths: list[str],
    there: list[str],
    owner: reinstalling.Distribution | None,
    remedy: str | None,
) -> None:
    by_path = {BIG: owner} if owner else {}
    asked = f"reinstall what is named above: {remedy}" if remedy else None
    given = reinstalling.remedy(paths, new=(), there=there, by_path=by_path)
    assert given == (asked or "restore what is named above by hand")


# --- documents ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "text", "value"),
    [
        ("a.json", '{"a": 1, /* no */ "b": [2,], // no\n}', {("a",): 1, ("b",): ("2",)}),
        ("a.jsonc", '{"a": "//b,]"}', {("a",): "//b,]"}),
        ("a.json5", '{"a": "\\"/*"}', {("a",): '"/*'}),
        (".eslintrc", '\n{"a": 1}', {("a",): 1}),
        (".prettierrc", "a: 1", {("a",): 1}),
        (".npmrc", "a=1", None),
        (".flake8", "[a]\nb = 1\n", {("a", "b"): "1"}),
        (".coveragerc", "a = 1\nB\n", {("top", "a"): "1", ("top", "B"): None}),
        ("pylintrc", "[a]\nb: 1", {("a", "b"): "1"}),
        (".pylintrc", "[a]\nb = 1", {("a", "b"): "1"}),
        (".pydocstyle", "[a]\nb = 1", {("a", "b"): "1"}),
        (".bandit", "[a]\nb = 1", {("a", "b"): "1"}),
        (".editorconfig", "root = true\n[*]\na = 1", {("top", "root"): "true", ("*", "a"): "1"}),
        ("a.ini", "[a]\nb = 1\n[a]\nb = 2", {("a", "b"): "2"}),
        ("a.cfg", "[a]\nb\n  c\n", None),
        ("a.yaml", "a: [1, 2]", {("a",): ("1", "2")}),
        ("a.yml", "a: {}", {("a",): {}}),
        (".clang-tidy", "a: 1", {("a",): 1}),
        (".clang-format", "a: 1", {("a",): 1}),
        (".yamllint", "a: 1", {("a",): 1}),
        ("a.toml", "a = 1", {("a",): 1}),
        ("a.toml", "a =", None),
        ("a.yaml", "a: [", None),
        ("a.json", "[" * 100_000, None),
        ("a.txt", "a: 1", None),
        ("a.xml", "<a b='1'><c>2</c><c>3</c> <d/>4</a>", {("a/@b",): ("1",), ("a/c",): ("2", "3"), ("a",): ("4",)}),
        ("a.json", "[]", {("",): ()}),
        ("a.json", "1", {("",): 1}),
        ("a.json", "{}", {}),
        ("a.yaml", "- {id: x}\n- 2\n- [1]", {("[0]", "id"): "x", ("[1]",): 2, ("[2]",): ("1",)}),
    ],
)  # fmt: skip
def test_a_document_is_parsed_by_its_name(
    path: str, text: str, value: dict[tuple[str, ...], object] | None
) -> None:
    document = parse(path, text.encode())
    assert (None if document is None else flat(document)) == value


# --- what a gate runs -----------------------------------------------------------------------------

PROJECT = {
    **dict.fromkeys(
        ("check.py", "tools/check.sh", "tools/inner.sh", "tools/check", "scripts/a.py", "src/a.py",
         "lib/a.sh", "app/a.py", "cmd/a.go", "pkg/a.py", "internal/a.py", "packages/a.js",
         "scripts/__init__.py", "named/__init__.py", "named/cli.py", "tools/mod.py", "tests/run.sh",
         "tools/recipe.sh", "tools/hook.sh", "tools/tox.sh", "tools/pre.sh", "tools/data.txt"),
        "x\n",
    ),
    "tools/check.sh": "# sh tools/data.txt\n\nsh tools/inner.sh\n",
    "tests/run.sh": "sh tools/inner.sh\n",
    "tools/check.py": "sh tools/inner.sh\n",
    "Makefile": ".PHONY: t\nA := b\nt u: v\n\tsh tools/recipe.sh \\\n\t x\n\nv: ; x\n\t@-sh tools/inner.sh\nw:\n\tsh tools/pre.sh\ncircle: again\nagain: circle\n",
    "package.json": '{"scripts": {"test": "node packages/a.js", "pretest": "sh tools/pre.sh", "a": "node tools/a.js"}}',
    "tox.ini": "[testenv]\ncommands = sh tools/tox.sh\ndeps = sh tools/pre.sh\n",
    ".pre-commit-config.yaml": "repos:\n- repo: local\n  hooks:\n  - {id: a, name: sh tools/pre.sh, entry: sh tools/hook.sh}\n",
}  # fmt: skip
RUNS = [
    ("python check.py", "check.py"),
    ("python3.11 ./check.py --fast", "check.py"),
    ("./tools/check", "tools/check"),
    ("bash tools/check.sh", "tools/check.sh tools/inner.sh"),
    ("tools/check.sh", "tools/check.sh tools/inner.sh"),
    ("source tools/inner.sh", "tools/inner.sh"),
    (". tools/inner.sh", "tools/inner.sh"),
    ("sh -e tools/inner.sh", "tools/inner.sh"),
    ("sh -c 'sh tools/inner.sh'", "tools/inner.sh"),
    ("bash -c 'sh tools/inner.sh'", "tools/inner.sh"),
    ("dash -c 'sh tools/inner.sh'", "tools/inner.sh"),
    ("zsh -c 'sh tools/inner.sh'", "tools/inner.sh"),
    ("python -m tools.mod", "tools/mod.py"),
    ("python -m scripts.a", "scripts/a.py"),
    ("python -m named.cli", ""),
    ("python named/cli.py", ""),
    ("python scripts/a.py", "scripts/a.py"),
    ("python tools/check.py", "tools/check.py"),
    ("sh tests/run.sh", "tests/run.sh"),
    ("python src/a.py; sh lib/a.sh; python app/a.py; go cmd/a.go; python pkg/a.py", ""),
    ("python internal/a.py && node packages/a.js", ""),
    ("cat tools/data.txt", ""),
    ("ruff check check.py", ""),
    ("env A=1 time ./tools/check", "tools/check"),
    ("uv run python check.py", "check.py"),
    ("coverage run check.py", "check.py"),
    ("bundle exec ruby check.py", "check.py"),
    (
        "if ! sh tools/pre.sh; then ./tools/check; else sh tools/tox.sh; fi",
        "tools/pre.sh tools/check tools/tox.sh",
    ),
    (
        "true || sh tools/pre.sh | sh tools/tox.sh & ./tools/check",
        "tools/pre.sh tools/tox.sh tools/check",
    ),
    ("sh 'tools/pre.sh", ""),
    ("make t", "tools/recipe.sh tools/inner.sh"),
    ("make -j2 A=1 u", "tools/recipe.sh tools/inner.sh"),
    ("make v", "tools/inner.sh"),
    ("make circle", ""),
    ("gmake w", "tools/pre.sh"),
    ("make", "tools/recipe.sh tools/inner.sh tools/pre.sh"),
    ("npm test", "tools/pre.sh"),
    ("npm run test", "tools/pre.sh"),
    ("yarn run-script test", "tools/pre.sh"),
    ("pnpm run", "tools/pre.sh"),
    ("npm", ""),
    ("bun test", "tools/pre.sh"),
    ("npm run a", ""),
    ("pre-commit run", "tools/hook.sh"),
    ("prek run", "tools/hook.sh"),
    ("tox -e py", "tools/tox.sh"),
    ("", ""),
]


@pytest.mark.parametrize(("line", "named"), RUNS)
def test_commands_of_a_gate_are_followed_through_recipes_and_scripts(line: str, named: str) -> None:
    scene = values.scene(case(PROJECT, {}))
    assert decides.reached((line,), scene).scripts == words(named)


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        ("check.sh", "a gate runs it as the check itself"),
        ("tools/data.txt", "a gate compares with it"),
        (".checkerrc", "it is named for checker, which a gate runs"),
    ],
)
def test_a_changed_file_that_a_gate_uses_is_held_with_the_reason(path: str, detail: str) -> None:
    there = {"check.sh": "diff out tools/data.txt\n", "tools/data.txt": "1\n", ".checkerrc": "1\n"}
    judgement = judged(there, {path: "2\n"}, failed("sh check.sh"), failed("checker"))
    assert [h.detail for h in judgement.held] == [detail]


@pytest.mark.parametrize(
    ("path", "content", "detail"),
    [
        ("app.pyi", "x: int\n", "type checkers read it instead of the source"),
        ("other.pyi", "x: int\n", None),
        ("lib.pyc", "x", "compiled code was added that no source shows"),
        ("lib.pyo", "x", "compiled code was added that no source shows"),
        ("lib.so", "x", "compiled code was added that no source shows"),
        ("Lib.class", "x", "compiled code was added that no source shows"),
        ("lib.pyd", "x", "compiled code was added that no source shows"),
        ("json/__init__.py", "x = 1\n", "it would be imported in the place of the library json"),
        ("src/yaml_lib.py", "x = 1\n", "it would be imported in the place of the library yaml_lib"),
        ("lib/mypy.py", "x = 1\n", "it would be imported in the place of the library mypy"),
        ("test/json.py", "x = 1\n", "it would be imported in the place of the library json"),
        ("tests/json.py", "x = 1\n", "it would be imported in the place of the library json"),
        ("deep/json.py", "x = 1\n", None),
        ("own/json.py", "x = 1\n", None),
        ("json/other.py", "x = 1\n", None),
        ("json.js", "x = 1\n", None),
        ("own.py", "x = 1\n", None),
        ("kept/x.bin", "x\n", None),
    ],
)
def test_a_shadowing_file_is_held_with_the_reason(
    path: str, content: str, detail: str | None
) -> None:
    there = {"app.py": "x = 1\n", "own/__init__.py": "x\n", "kept/a": "1\n", "queue/a.py": "1\n",
             "requirements.txt": "yaml-lib[c]>=2\n# other\n", "json_old.py": "1\n"}  # fmt: skip
    judgement = judged(there, {path: content}, failed("make build kept"), failed("ls other"))
    assert [h.detail for h in judgement.held] == ([detail] if detail else [])


def test_modules_with_a_name_of_the_project_shadow_nothing() -> None:
    there = {"queue/a.py": "1\n", "src/token/a.py": "1\n"}
    assert answers(judged(there, {"queue.py": "x = 1\n", "token.py": "y = 1\n"})) == {}


def test_only_new_files_can_shadow() -> None:
    assert answers(judged({"json.py": "x = 1\n"}, {"json.py": "x = 2\n"})) == {}


@pytest.mark.parametrize(
    ("before", "after", "old", "new", "detail"),
    [
        ("x\n", "->y", "100644", "120000", "is now a link to y"),
        ("->x", "->y", "120000", "120000", None),
        (None, "->y", None, "120000", None),
        ("x\n", "x\n", "100755", "100644", "is no longer executable"),
        ("x\n", "x\n", "100644", "100755", None),
    ],
)
def test_a_changed_file_mode_is_held(
    before: str | None, after: str, old: str | None, new: str, detail: str | None
) -> None:
    there = {"a": before} if before is not None else {}
    change = case(there, {"a": after}, old_modes={"a": old or ""}, new_modes={"a": new})
    assert [h.detail for h in guard.assess(change).held] == ([detail] if detail else [])


@pytest.mark.parametrize(
    ("before", "after", "detail"),
    [
        ("x = 1\n", "", "what the tests prove was changed"),
        (None, "x = 1\n", "what the tests prove was changed"),
        ("x = 1\n", "x = 2\n", "what the tests prove was changed"),
    ],
)
def test_a_held_test_change_is_described(before: str | None, after: str, detail: str) -> None:
    there = {"tests/conftest.py": before} if before is not None else {}
    assert [h.detail for h in judged(there, {"tests/conftest.py": after}).held] == [detail]


# --- what an agent is told ------------------------------------------------------------------------


def test_denied_globs_are_what_would_be_refused() -> None:
    """Whatever the guard holds is let through: a person can accept it."""
    guard = GuardSettings(protect=("a", "b"), allow=("b/c", "/Makefile"))
    globs = protected(Path("/x"), Settings(gates=(), guard=guard, sources=("/x/a", "/x/c", "/y/d")))
    assert globs == (*PROTECTED, *places.INSTALLED, "a", "b", "c")
    assert {*PROTECTED} == {".atlas/**", "atlas.yaml", "atlas.yml", ".git/**"}


@pytest.mark.parametrize("allow", ["node_modules/left-pad/index.js", "*.js", "web/", "Makefile"])
def test_what_is_allowed_is_not_denied(allow: str) -> None:
    globs = protected(Path("/x"), Settings(gates=(), guard=GuardSettings(allow=(allow,))))
    assert "**/node_modules/**" not in globs
    assert ".git/**" in globs


def test_what_is_allowed_elsewhere_lifts_no_denial() -> None:
    guard = GuardSettings(allow=("/Makefile", "web/tsconfig.json", "!node_modules/"))
    globs = protected(Path("/x"), Settings(gates=(), guard=guard))
    assert globs == (*PROTECTED, *places.INSTALLED)


def test_guard_values_are_frozen_and_keyword_only() -> None:
    modules = (values, decides, settings, guard.inspection, guard.beside,
               guard.sources, guard.grown, guard.inline, guard.literals, guard.ratchet, judge,
               seals, folders)  # fmt: skip
    structs = {v for m in modules for v in vars(m).values()
               if isinstance(v, type) and issubclass(v, Struct) and v.__module__.startswith("atlas_retry.guard")}  # fmt: skip
    thawed = {one.__name__ for one in structs if not one.__struct_config__.frozen}
    positional = {one.__name__ for one in structs if len(signature(one).parameters) and not all(
        p.kind is Parameter.KEYWORD_ONLY for p in signature(one).parameters.values())}  # fmt: skip
    assert len(structs) > 15
    assert (thawed, positional) == ({"SourceChange"}, set())
