"""Tells the fault of the environment from the fault of the code. When in doubt it is the code's."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from atlas_retry.diagnostics.values import Log, ToolOutput
from atlas_retry.model import Diagnostic

_KILLED = (-9, 137)


class _Cause(NamedTuple):
    pattern: re.Pattern[str]
    reason: str


_ANYWHERE = (
    _Cause(
        re.compile(r"No space left on device|\bENOSPC\b|Disk quota exceeded"), "the disk is full"
    ),
    _Cause(
        re.compile(r"JavaScript heap out of memory|Cannot allocate memory|\bENOMEM\b"),
        "memory is exhausted",
    ),
    _Cause(re.compile(r"Cannot connect to the Docker daemon"), "no Docker daemon is running"),
    _Cause(re.compile(r"^bwrap: "), "bubblewrap cannot isolate it"),
    _Cause(re.compile(r"too many open files|\bEMFILE\b", re.IGNORECASE), "too many open files"),
)
"""One line of it explains the failure, whatever else is printed."""

_EVERYWHERE = (
    _Cause(
        re.compile(
            r"Connection ?refused|\bECONNREFUSED\b|could not connect to server", re.IGNORECASE
        ),
        "nothing listens where a service is expected",
    ),
    _Cause(
        re.compile(
            r"""Temporary[ ]failure[ ]in[ ]name[ ]resolution
            | Name[ ]or[ ]service[ ]not[ ]known
            | \bENOTFOUND\b
            | \bEAI_AGAIN\b
            | Could[ ]?n[o']t[ ]resolve[ ]host
            | Unknown[ ]host
            | dial[ ]tcp:[ ]lookup
            | Network[ ]is[ ]unreachable""",
            re.VERBOSE,
        ),
        "the network cannot be reached",
    ),
    _Cause(re.compile(r"Address already in use|\bEADDRINUSE\b"), "a port is taken"),
)
"""Every error has to say so: one test that expects it proves nothing."""

_DOWNLOADS = re.compile(
    r"""^(?:
        npm[ ](?:ERR!|error)[ ]
            (?: network | code[ ](?:ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNREFUSED) )
      | error:[ ]failed[ ]to[ ](?:download|fetch|get)[ ]
      | go:[ ].+:[ ]dial[ ]tcp
      | fatal:[ ]unable[ ]to[ ]access[ ]'
      | \[ERROR\][ ].*Could[ ]not[ ]transfer[ ]artifact[ ]
    )""",
    re.VERBOSE,
)
_MODULE = re.compile(r"^(?:ModuleNotFoundError|ImportError)?:? ?No module named '([\w.]+)'")
_DENIED = re.compile(r"(?:PermissionError|EACCES|EPERM)\b.*?['\" ](/[^'\"\s]+)")


def blame(output: ToolOutput, log: Log, errors: Sequence[Diagnostic]) -> str | None:
    """Why a failure is the environment's fault, in one sentence; None when it need not be."""
    if output.exit_code in _KILLED:
        return "the command was killed by signal 9, most often for want of memory"
    if errors:
        return _by_errors(output, errors)
    for line in log.lines:
        for cause in (*_ANYWHERE, *_EVERYWHERE):
            if cause.pattern.search(line):
                return f"{cause.reason}: {line.strip()}"
        if _DOWNLOADS.match(line):
            return f"a download failed: {line.strip()}"
    return None


def _by_errors(output: ToolOutput, errors: Sequence[Diagnostic]) -> str | None:
    for cause in (*_ANYWHERE, *_EVERYWHERE):
        if all(cause.pattern.search(error.message) for error in errors):
            return f"{cause.reason}: {_head(errors[0])}"
    missing = [_missing(output, error) for error in errors]
    if all(missing):
        names = ", ".join(sorted({name for name in missing if name}))
        return f"a module that is not part of the project is not installed: {names}"
    if all(_denied(output, error) for error in errors):
        return f"a place outside the workspace is not accessible: {_head(errors[0])}"
    return None


def _head(error: Diagnostic) -> str:
    return error.message.partition("\n")[0]


def _missing(output: ToolOutput, error: Diagnostic) -> str | None:
    """The third-party module that is missing, when the import of a file failed because of it."""
    match = _MODULE.search(error.message)
    if match is None or not error.frames or error.frames[-1].function != "<module>":
        return None
    top = match[1].partition(".")[0]
    own = output.project_names | {frame.path.partition("/")[0] for frame in error.frames}
    return None if top in own or "." in match[1] else top


def _denied(output: ToolOutput, error: Diagnostic) -> bool:
    match = _DENIED.search(error.message)
    return bool(match and output.root and not match[1].startswith(output.root.rstrip("/") + "/"))
