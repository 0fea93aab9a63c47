"""The types of single values: what a command, a duration, a glob may be. Knows no key."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from atlas_retry.errors import near

MAX_COMMAND_CHARS = 100_000
"""One argument of a process may have 128 KiB on Linux (MAX_ARG_STRLEN)."""
DAY_S = 86_400
DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?")
CLI_BACKENDS = ("codex", "gemini", "opencode", "aider", "mini-swe-agent", "command")
"""Each with models of its own, chosen in its own settings."""
BACKENDS = ("claude-code", "anthropic", *CLI_BACKENDS, "scripted")
DOTTED_BACKEND = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]*")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MAX_JOBS = 256
PATTERN_GROUPS = frozenset(
    ("path", "line", "column", "end_line", "end_column", "rule", "level", "message", "test", "rest")
)
"""What `diagnostics.table.LineFormat` reads."""


def _no_nul(value: str) -> str:
    if "\0" in value:
        raise ValueError("expected text without a NUL byte")
    return value


def _text(value: str) -> str:
    if not value.strip():
        raise ValueError("expected text")
    return _no_nul(value)


def _command(value: str) -> str:
    line = _no_nul(value).strip()
    if not line:
        raise ValueError("expected a command")
    if "\n" in line or "\r" in line:
        raise ValueError("expected a command of one line (join lines with && or call a script)")
    if len(line) > MAX_COMMAND_CHARS:
        raise ValueError(f"expected a command of at most {MAX_COMMAND_CHARS} characters")
    return line


def _seconds(value: object) -> float:
    match = DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if match and any(match.groups()):
        hours, minutes, rest = (float(part or 0) for part in match.groups())
        value = hours * 3600 + minutes * 60 + rest
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= DAY_S:
        return float(value)
    wanted = "a duration such as 90 (seconds), 90s, 10m or 1h30m, over 0 and at most 24h"
    raise ValueError(f"expected {wanted}")


def _folder(value: str) -> str:
    if _text(value).startswith(("/", "~")) or ".." in value.split("/"):
        raise ValueError("expected a path inside the project, relative and without ..")
    return value


def _glob(value: str) -> str:
    if _text(value).startswith("/") or ".." in value.split("/"):
        raise ValueError("expected a glob relative to the root of the workspace, without ..")
    return value


def _backend(value: str) -> str:
    if value in BACKENDS or DOTTED_BACKEND.fullmatch(value):
        return value
    raise ValueError(
        f"expected {', '.join(BACKENDS)} or package.module:factory{near(value, BACKENDS)}"
    )


def _model(value: str) -> str:
    if not MODEL.fullmatch(value):
        raise ValueError("expected the name of a model, such as sonnet, opus or haiku")
    return value


def _variable(value: str) -> str:
    if not VARIABLE.fullmatch(value):
        raise ValueError("expected the name of an environment variable")
    return value


def _pattern(value: str) -> str:
    try:
        pattern = re.compile(value)
    except re.error as error:
        raise ValueError(f"expected a regular expression ({error})") from error
    if not pattern.groupindex or not PATTERN_GROUPS.issuperset(pattern.groupindex):
        raise ValueError(f"expected named groups, of {', '.join(sorted(PATTERN_GROUPS))}")
    return value


def whole(low: int, high: int) -> tuple[BeforeValidator, WithJsonSchema]:
    """A whole number, both limits included. To be spread into `Annotated`."""

    def check(value: object) -> object:
        if type(value) is int and low <= value <= high:
            return value
        raise ValueError(f"expected a whole number from {low} to {high}")

    return BeforeValidator(check), WithJsonSchema(
        {"type": "integer", "minimum": low, "maximum": high}
    )


def amount(low: float, high: float) -> tuple[BeforeValidator, WithJsonSchema]:
    """A number, both limits included. To be spread into `Annotated`."""

    def check(value: object) -> object:
        if isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high:
            return value
        raise ValueError(f"expected a number from {low} to {high}")

    return BeforeValidator(check), WithJsonSchema(
        {"type": "number", "minimum": low, "maximum": high}
    )


def _version(value: object) -> object:
    if type(value) is int and value == 1:
        return value
    raise ValueError("expected 1")


def _jobs(value: object) -> object:
    if value == "auto" or (type(value) is int and 1 <= value <= MAX_JOBS):
        return value
    raise ValueError(f"expected auto or a whole number from 1 to {MAX_JOBS}")


Text = Annotated[str, AfterValidator(_text)]
FreeText = Annotated[str, AfterValidator(_no_nul)]
ShellLine = Annotated[str, AfterValidator(_command)]
Folder = Annotated[str, AfterValidator(_folder)]
Glob = Annotated[str, AfterValidator(_glob)]
Backend = Annotated[str, AfterValidator(_backend)]
Model = Annotated[str, AfterValidator(_model)]
Variable = Annotated[str, AfterValidator(_variable)]
Pattern = Annotated[str, AfterValidator(_pattern)]
Attempts = Annotated[int, *whole(0, 100)]
Version = Annotated[int, BeforeValidator(_version), WithJsonSchema({"const": 1})]
Jobs = Annotated[
    int | Literal["auto"],
    BeforeValidator(_jobs),
    WithJsonSchema(
        {"anyOf": [{"const": "auto"}, {"type": "integer", "minimum": 1, "maximum": MAX_JOBS}]}
    ),
]
Seconds = Annotated[
    float,
    BeforeValidator(_seconds),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": f"^{DURATION.pattern}$"},
                {"type": "number", "exclusiveMinimum": 0, "maximum": DAY_S},
            ]
        }
    ),
]
