"""`{files}` in a shell line: where it may stand, and the command that runs it. Runs nothing.

Names reach the shell as its positional parameters, so that none can be read as code.
"""

import os
import shlex
from collections.abc import Iterable
from pathlib import Path

PLACEHOLDER = "{files}"
MAX_BATCH_BYTES = 100_000
"""Names that one call of a line gets; less than xargs gives, and far below any system's limit."""
# An overlay may lack files that are here.
_ONLY_THERE = 'for f do shift; [ ! -f "$f" ] || set -- "$@" "$f"; done; [ $# -gt 0 ] || exit 0; '


def arguments(line: str, names: tuple[str, ...], batches: Path, *, aside: bool) -> tuple[str, ...]:
    """The command that runs a line with these names.

    `batches`: file to write, if there are more names than one call can get. `aside`: some of the
    files may not be where it runs.
    """
    code = (_ONLY_THERE if aside else "") + _with(line, '"$@"')
    if sum(len(os.fsencode(name)) + 1 for name in names) <= MAX_BATCH_BYTES:
        return ("/bin/sh", "-c", code, "sh", *names)
    batches.write_bytes(os.fsencode("".join(f"{name}\0" for name in names)))
    limit = f"-s {MAX_BATCH_BYTES + len(os.fsencode(code))}"
    calls = f"exec xargs -0 {limit} /bin/sh -c {shlex.quote(code)} sh <{shlex.quote(str(batches))}"
    return ("/bin/sh", "-c", calls)


def with_names(line: str, names: Iterable[str]) -> str:
    """The line with these names in it, to be read or typed."""
    return _with(line, shlex.join(names))


def _with(line: str, words: str) -> str:
    for written in (f'"{PLACEHOLDER}"', f"'{PLACEHOLDER}'", PLACEHOLDER):
        line = line.replace(written, words)
    return line


def is_misplaced(line: str) -> bool:
    """Whether `{files}` is part of a word, where it cannot become several words."""
    lexer = shlex.shlex(line, posix=False, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        return any(PLACEHOLDER in word and word.strip("\"'") != PLACEHOLDER for word in lexer)
    except ValueError:  # the shell knows quotes that shlex does not
        return False
