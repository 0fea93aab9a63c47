"""Variables that steer the tools of the gates, by name. Reads no file."""

import re

VARIABLES = re.compile(
    r"^(PYTEST\w*|PYTHON\w+|RUFF_\w+|MYPY\w*|FLAKE8\w*|PYLINT\w*|COVERAGE\w*|COV_\w+|NODE_OPTIONS"
    r"|NODE_ENV|NODE_PATH|JEST\w*|VITEST\w*|ESLINT\w*|CI|GITHUB_ACTIONS|PATH|LD_\w+|SKIP"
    r"|PRE_COMMIT\w*|HUSKY\w*|GOFLAGS|GOTEST\w*|GOLANGCI\w*|RUSTFLAGS|CARGO_\w+|MAVEN_\w+|MVN_\w+"
    r"|JAVA_TOOL_OPTIONS|JDK_JAVA_OPTIONS|GRADLE_OPTS|MAKEFLAGS|SHELLCHECK\w*|SHELL|BASH_ENV|ENV"
    r"|TOX_\w+|TOXENV|NOX\w*|GIT_\w+|HOME|TMPDIR|npm_config_\w+|NPM_CONFIG_\w+|\w*SKIP\w*TESTS?\w*)$"
)


def steers_tools(name: str) -> bool:
    """Whether a variable changes what a checker, a runner or an interpreter does."""
    return bool(VARIABLES.match(name))
