"""Command lines that ran before, with the values that Typer made of them.

Typer alone defines and reads the command line, but importing it takes a fifth of a short command.
What it makes of a line depends only on the words and on this package, so the same words lead to
the same call again.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial, update_wrapper
from importlib import import_module
from pathlib import Path

import msgspec
from msgspec import Struct

from atlas_retry import __version__, state_dir
from atlas_retry.errors import StateError

KEPT = (
    "checks.validate",
    "checks.validate_kind",
    "runs.retry",
    "hook.beginning.hook_start",
    "hook.ending.hook_stop",
)
"""Functions whose calls are kept: people and agents call them all day, and they ask nothing."""
MAX_LINES = 50
Function = Callable[..., int]


class _Call(Struct, frozen=True, array_like=True):
    function: str
    values: dict[str, bool | int | float | str | list[str] | None]
    paths: dict[str, str]


class _Known(Struct, frozen=True):
    program: tuple[str | int, ...]
    calls: dict[str, _Call] = {}
    """By the words, with NUL between them."""


def recalled(words: Sequence[str]) -> Callable[[], int] | None:
    """The call that these words led to when they ran before, by this same program."""
    with suppress(OSError, ValueError, StateError):
        call = _known().calls.get("\0".join(words))
        if call and call.function in KEPT and "_ATLAS_COMPLETE" not in os.environ:
            paths = {name: Path(value) for name, value in call.paths.items()}
            return partial(function_of(call.function), **call.values, **paths)
    return None


def keeping(
    function: Callable[..., int], name: str, command: str, words: Sequence[str]
) -> Callable[..., int]:
    """The function for Typer; once it has ended, its call is kept for these words.

    Its parameter `command`, which is no flag, gets the name of the command.
    """
    from inspect import signature  # start-up

    def call(**values: object) -> int:
        code = function(**fixed, **values)
        with suppress(OSError, ValueError, StateError):
            _keep(name, fixed | values, "\0".join(words))
        return code

    whole = signature(function)
    fixed = {"command": command} if "command" in whole.parameters else {}
    flags = [one for each, one in whole.parameters.items() if each not in fixed]
    update_wrapper(call, function)
    call.__signature__ = whole.replace(parameters=flags)  # type: ignore[attr-defined]
    return call


def function_of(name: str) -> Function:
    """The function of a command, by its module in this package and its name there."""
    module, _, function = name.rpartition(".")
    found: Function = getattr(import_module(f"atlas_retry.cli.{module}"), function)
    return found


def _keep(function: str, values: dict[str, object], line: str) -> None:
    known = _known()
    paths = {name: str(value) for name, value in values.items() if isinstance(value, Path)}
    plain = {name: value for name, value in values.items() if name not in paths}
    kept = {} if len(known.calls) >= MAX_LINES else known.calls
    calls = kept | {line: msgspec.convert((function, plain, paths), _Call)}
    state_dir.folder(_file().parent)
    state_dir.replace_file(_file(), msgspec.json.encode(_Known(_program(), calls)))


def _known() -> _Known:
    """What is kept by this same program."""
    with suppress(OSError, ValueError):
        known = msgspec.json.decode(_file().read_bytes(), type=_Known)
        if known.program == _program():
            return known
    return _Known(_program())


def _file() -> Path:
    return state_dir.locate(os.environ) / "cache" / "calls.json"


def _program() -> tuple[str | int, ...]:
    """What changes when the command line may mean something else."""
    here = Path(__file__).parent
    modules = ("app", "options", *(name.rpartition(".")[0].replace(".", "/") for name in KEPT))
    return __version__, str(here), *((here / f"{one}.py").stat().st_mtime_ns for one in modules)
