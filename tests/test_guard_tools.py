"""What tools leave out, which version they are held at, what a whole file may have silenced."""

import pytest

from tests.guardcases import PYTEST, RUFF, judged, rules_of

POM = """
    <project>
      <properties><junit.version>5.10.2</junit.version></properties>
      <dependencies><dependency>
        <groupId>com.google.guava</groupId><artifactId>guava</artifactId><version>33.0</version>
      </dependency></dependencies>
      <build><plugins>
        <plugin>
          <artifactId>maven-compiler-plugin</artifactId><version>3.13.0</version>
          <configuration><failOnWarning>true</failOnWarning></configuration>
        </plugin>
        <plugin>
          <artifactId>maven-surefire-plugin</artifactId>
          <version>3.2.5</version>
        </plugin>
      </plugins></build>
    </project>
"""
GRADLE = """
    plugins {
        id("java")
        id("com.github.spotbugs") version "6.0.9"
        id("com.gradleup.shadow") version "8.3.0"
    }
    dependencies {
        implementation("com.google.guava:guava:33.0")
        testImplementation("org.junit.jupiter:junit-jupiter:5.10.2")
    }
    checkstyle {
        toolVersion = "10.17.0"
    }
"""
POETRY = """
    [tool.poetry.dependencies]
    httpx = "^0.27"
    [tool.poetry.group.dev.dependencies]
    pytest = "^8.2"
    mypy = { version = "^1.11", extras = ["faster-cache"] }
"""
TOX = """
    [tox]
    envlist = py
    [testenv]
    deps =
        pytest==8.2.0
        httpx==0.27
    setenv = PYTHONWARNINGS=error
    commands = pytest -q
"""
TREE = {
    "pom.xml": POM,
    "build.gradle.kts": GRADLE,
    "gradle/libs.versions.toml": '[versions]\njunit = "5.10.2"\nguava = "33.0"\n',
    "pyproject.toml": POETRY,
    "tox.ini": TOX,
    ".gitignore": "dist/\n",
    "kit.egg-info/top_level.txt": "kit\n",
    "kit/core.py": "x = 1\n",
    "docs/guide.md": "# Guide\n",
    "debug.log": "noise\n",
    "tests/data/app.log": "12 GET /\n",
}
REFUSED = [
    ("pom.xml", "3.2.5", "2.12.4", "dependency-redirected"),
    ("pom.xml", "5.10.2", "4.13.2", "dependency-redirected"),
    ("pom.xml", "<failOnWarning>true", "<failOnWarning>false", "configuration-loosened"),
    ("build.gradle.kts", "6.0.9", "5.0.0", "dependency-redirected"),
    ("build.gradle.kts", "jupiter:5.10.2", "jupiter:5.0.0", "dependency-redirected"),
    ("build.gradle.kts", "10.17.0", "6.0", "dependency-redirected"),
    ("gradle/libs.versions.toml", "5.10.2", "4.13", "dependency-redirected"),
    ("pyproject.toml", "^8.2", "^3.0", "dependency-redirected"),
    ("pyproject.toml", "^1.11", "^0.900", "dependency-redirected"),
    ("tox.ini", "pytest==8.2.0", "pytest==2.0", "dependency-redirected"),
    ("tox.ini", "=error", "=ignore", "configuration-loosened"),
    ("tox.ini", "    setenv = PYTHONWARNINGS=error\n", "", "configuration-loosened"),
    ("tox.ini", "=error", "=error\n        PYTEST_ADDOPTS=-k nothing", "configuration-loosened"),
    (".gitignore", "dist/", "dist/\nkit/core.py", "ignore-widened"),
    (".gitignore", "dist/", "dist/\ntests/data/*.log", "ignore-widened"),
]
FINE = [
    ("pom.xml", "3.2.5", "3.5.0"),
    ("pom.xml", "33.0", "32.1"),
    ("pom.xml", "</version>\n        </plugin>\n      </plugins>", "</version>\n          <configuration><failIfNoTests>true</failIfNoTests></configuration>\n        </plugin>\n      </plugins>"),
    ("pom.xml", "</version>\n        </plugin>\n      </plugins>", "</version>\n          <configuration><failIfNoSpecifiedTests>true</failIfNoSpecifiedTests><skipTests>false</skipTests></configuration>\n        </plugin>\n      </plugins>"),
    ("build.gradle.kts", "6.0.9", "6.1.0"),
    ("build.gradle.kts", "8.3.0", "8.1.0"),
    ("build.gradle.kts", "jupiter:5.10.2", "jupiter:5.11.0"),
    ("build.gradle.kts", "guava:33.0", "guava:32.0"),
    ("gradle/libs.versions.toml", "33.0", "32.0"),
    ("pyproject.toml", "^8.2", "^8.3"),
    ("pyproject.toml", "^0.27", "^0.26"),
    ("tox.ini", "pytest==8.2.0", "pytest==8.3.1"),
    ("tox.ini", "httpx==0.27", "httpx==0.26"),
    ("tox.ini", "=error", "=error\n        APP_ENV=test\n        PYTHONDEVMODE=1"),
    ("tox.ini", "    commands", "    skip_install = true\n    commands"),
    (".gitignore", "dist/", "dist/\n*.egg-info/\n*.log\n!tests/data/*.log"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "old", "new", "rule"), REFUSED)
def test_a_tool_that_does_less_is_refused(path: str, old: str, new: str, rule: str) -> None:
    assert old in TREE[path]
    assert rule in rules_of(judged(TREE, {path: TREE[path].replace(old, new)}, PYTEST))


@pytest.mark.parametrize(("path", "old", "new"), FINE)
def test_a_tool_that_does_as_much_is_fine(path: str, old: str, new: str) -> None:
    assert old in TREE[path]
    assert judged(TREE, {path: TREE[path].replace(old, new)}, PYTEST) == ()


@pytest.mark.parametrize("name", [".ignore", ".rgignore", "kit/.ignore", ".typosignore"])
def test_ignore_files_of_any_tool_leave_out_nothing_that_is_checked(name: str) -> None:
    assert "ignore-widened" in rules_of(judged(TREE, {name: "core.py\n"}, RUFF))
    assert judged(TREE, {name: "build/\n*.log\n!tests/data/*.log\n"}, RUFF) == ()


def test_what_is_not_shipped_is_checked_all_the_same() -> None:
    assert judged(TREE, {".dockerignore": "tests/\n", ".npmignore": "tests/\n"}, RUFF) == ()


NARROWED = [
    ("a.py", "# ruff: noqa: E501\nx = 1\n", "x = 1  # noqa: E501\n"),
    ("a.py", '"""A.\n\nB.\n"""\n# flake8: noqa\nx = 1\ny = 2\n', '"""A.\n\nB.\n"""\nx = 1  # noqa: E501\ny = 2  # noqa: E501\n'),
    ("a.py", "# mypy: ignore-errors\nx = 1\n", "x = 1  # type: ignore[assignment]\n"),
    ("a.py", "# pylint: disable=invalid-name\nx = 1\ny = 2\n", "x = 1  # pylint: disable=invalid-name\ny = 2  # pylint: disable=invalid-name\n"),
    ("a.js", "/* eslint-disable no-console */\nf();\ng();\n", "// eslint-disable-next-line no-console\nf();\n// eslint-disable-next-line no-console\ng();\n"),
    ("a.ts", "// @ts-nocheck\nf();\ng();\n", "// @ts-expect-error\nf();\n// @ts-expect-error\ng();\n"),
    ("a.rs", "#![allow(dead_code)]\nfn f() {}\nfn g() {}\n", "#[allow(dead_code)]\nfn f() {}\n#[allow(dead_code)]\nfn g() {}\n"),
]  # fmt: skip
WIDENED = [
    ("a.py", "# ruff: noqa: E501\nx = 1\n", "x = 1  # noqa: F401\n"),
    ("a.py", "# ruff: noqa: E501\nx = 1\n", "x = 1  # noqa\n"),
    ("a.py", "# ruff: noqa: E501\nx = 1\n", "# ruff: noqa: E501\nx = 1  # noqa: E501\n"),
    ("a.py", "x = 1  # noqa: E501\n", "# ruff: noqa: E501\nx = 1\n"),
    ("a.js", "f();\n/* eslint-disable no-console */\ng();\n", "// eslint-disable-next-line no-console\nf();\n// eslint-disable-next-line no-console\ng();\n"),
    ("a.rs", "#![allow(dead_code)]\nfn f() {}\n", "#[allow(unsafe_code)]\nfn f() {}\n"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "before", "after"), NARROWED)
def test_what_a_whole_file_silenced_may_be_silenced_line_by_line(
    path: str, before: str, after: str
) -> None:
    assert judged({path: before}, {path: after}, RUFF) == ()


@pytest.mark.parametrize(("path", "before", "after"), WIDENED)
def test_a_suppression_that_reaches_further_is_refused(path: str, before: str, after: str) -> None:
    assert "suppression-added" in rules_of(judged({path: before}, {path: after}, RUFF))


@pytest.mark.parametrize(
    ("path", "mark"),
    [
        ("a.cpp", "// LCOV_EXCL_LINE"),
        ("a.rb", "# :nocov:"),
    ],
)
def test_a_mark_that_leaves_lines_out_of_coverage_is_refused(path: str, mark: str) -> None:
    plain = mark.replace("_EXCL_", "_LINES_").replace(":nocov:", "no cov")
    assert "suppression-added" in rules_of(judged({path: "\n"}, {path: f"{mark}\n"}))
    assert judged({path: "\n"}, {path: f"{plain}\n"}) == ()
