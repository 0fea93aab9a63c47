"""Which files, and which parts of shared files, are settings of checkers. Reads none."""

import re

from atlas_retry.guard import places
from atlas_retry.guard.words import words

Key = tuple[str, ...]

VERIFIERS = words(
    "ruff black isort mypy pyright basedpyright pytest coverage pylint flake8 pycodestyle"
    " pydocstyle tox nox bandit vulture ty pyre pytype codespell interrogate deptry"
    " importlinter docformatter autopep8 yapf jest eslintconfig eslintignore prettier nyc c8"
    " mocha ava vitest lint-staged husky standard xo stylelint tap pre-commit pytest-enabler"
    " typos semgrep lints hypothesis djlint"
)
"""Sections of shared files that belong to a checker."""
_WHOLE = re.compile(
    r"^(\.?ruff\.toml|\.?mypy\.ini|\.?pytest\.(ini|toml)|tox\.(ini|toml)|\.coveragerc(\.toml)?"
    r"|\.flake8|\.?pylintrc(\.toml)?|\.isort\.cfg|\.bandit|bandit\.ya?ml|pyrightconfig\.json"
    r"|\.pycodestyle|\.pydocstyle\S*|\.eslintrc(\.\w+)?|eslint\.config\.\w+"
    r"|\.prettierrc(\.\w+)?|prettier\.config\.\w+|biome\.jsonc?|tsconfig(\.\w+)*\.json"
    r"|jsconfig\.json"
    r"|(jest|vitest|vite|karma|playwright|cypress|ava|babel)(\.\w+)?\.config\.\w+"
    r"|vitest\.workspace\.\w+|\.mocharc(\.\w+)?|\.nycrc(\.\w+)?|\.c8rc(\.\w+)?"
    r"|\.stylelintrc(\.\w+)?|\.?golangci\.(ya?ml|toml|json)|\.?clippy\.toml|\.?rustfmt\.toml"
    r"|deny\.toml|\.?tarpaulin\.toml|nextest\.toml|\.shellcheckrc|shellcheckrc"
    r"|\.yamllint(\.ya?ml)?|\.markdownlint\S*|\.rubocop\S*\.yml|\.rspec"
    r"|phpunit(\.dist)?\.xml(\.dist)?|phpstan\S*\.neon(\.dist)?|psalm\.xml"
    r"|checkstyle\S*\.xml|pmd\S*\.xml|spotbugs\S*\.xml|\.clang-(tidy|format)"
    r"|\.?codecov\.ya?ml|sonar-project\.properties|\.lintstagedrc\S*|\.?commitlint\S*"
    r"|\.typos\.toml|_typos\.toml|\.codespellrc|\.style\.yapf|\.jshintrc|\.jscsrc"
    r"|junit-platform\.properties|detekt\S*\.yml|\.swiftlint\.yml|\.scalafmt\.conf"
    r"|staticcheck\.conf|karma\.conf\.\w+|\.testcoverage\.ya?ml)$",
    re.IGNORECASE,
)
SHARED = words("pyproject.toml setup.cfg package.json Cargo.toml pom.xml tox.ini")
"""Files of which only parts are settings of checkers."""

_CARGO = words("autotests test doctest harness bench overflow-checks debug-assertions")


def is_configuration(path: str) -> bool:
    """Whether a file is nothing but settings of a checker."""
    return bool(_WHOLE.match(places.name(path)))


def steers(name: str, key: Key) -> bool:
    """Whether a setting of a shared file belongs to a checker."""
    if name == "pyproject.toml":
        return len(key) > 1 and key[0] == "tool" and key[1] in VERIFIERS
    if name == "Cargo.toml":
        of_checks = key[-1] in _CARGO and key[0] != "bench"
        return "lints" in key[:2] or of_checks or key[:3] == ("package", "metadata", "tarpaulin")
    if name == "pom.xml":
        said = "/".join(key)
        plugins = re.search(r"(^|/)(plugins?|pluginmanagement|profiles?|reporting)/", said)
        return bool(plugins) or (
            "properties" in key and bool(re.search(r"skip|test|check|fail", key[-1]))
        )
    if name == "tox.ini":
        return key[0] != "tox" or key[-1] in ("env_list", "envlist")
    section = key[0].split(":")[-1].split("-")[0].lower() if key else ""
    return section in VERIFIERS or key[0].split(":")[0] in VERIFIERS
