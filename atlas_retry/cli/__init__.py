"""The `atlas` command: parse, wire, run. The only place that turns errors into exit codes."""

import os
import signal
import sys
from contextlib import contextmanager

from atlas_retry import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from atlas_retry.errors import AtlasError


def main(arguments: "Sequence[str] | None" = None) -> None:
    """Run the command line and exit: 0 green, 1 gates fail, 2 usage, 3 broken, 128 + signal."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    _end_quietly_on_int()
    from atlas_retry.cli import stdio
    from atlas_retry.errors import AtlasError, ExitCode

    stdio.settle()
    from atlas_retry.cli.command_line import run_command

    with _exit_code() as end:
        _stand_somewhere()
        end.code = run_command(words)
    if why := stdio.lost():
        _print_error(
            AtlasError(f"standard output cannot be written, and the rest of it is lost: {why}")
        )
    if "--json" in words and not stdio.has_written():
        from atlas_retry.cli.documents import write_error

        write_error(end.error or AtlasError("the command ended without a result"), end.code)
        sys.stdout.flush()
    sys.exit(ExitCode.BROKEN if why and end.code == ExitCode.OK else end.code)


def _end_quietly_on_int() -> None:
    """Exit with 128 + INT until signals are handled: no traceback out of an import.

    Python's own handler would also raise within modules in C, of which some then crash.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda number, _: os._exit(128 + number))


class _End:
    """How a command line ended."""

    def __init__(self, code: int) -> None:
        self.code = code
        self.error: AtlasError | None = None


@contextmanager
def _exit_code() -> "Iterator[_End]":
    """Run a command line within; an error that ends it is printed, and decides its exit code."""
    from atlas_retry.errors import AtlasError, ExitCode, Interrupted
    from atlas_retry.process import handle_signals

    end = _End(ExitCode.BROKEN)
    try:
        with handle_signals():
            yield end
    except AtlasError as error:
        end.code, end.error = error.exit_code, _print_error(error)
    except Interrupted as interrupted:
        end.code, end.error = interrupted.exit_code, AtlasError("interrupted")
    except OSError as error:  # a full disk, no free descriptor and the like
        end.error = _print_error(AtlasError(str(error)))
    except Exception:  # noqa: BLE001 - Python would exit with 1, which means that gates fail
        import traceback

        traceback.print_exc()
        bug = AtlasError("this is a bug in atlas; please report the lines above")
        end.error = _print_error(bug)


def _stand_somewhere() -> None:
    """Raise AtlasError if the working directory is gone: no relative path would resolve."""
    from atlas_retry.errors import AtlasError

    try:
        os.getcwd()  # noqa: PTH109 - start-up
    except OSError as error:
        raise AtlasError(
            f"the working directory cannot be used: {error.strerror}",
            remedy="cd to a folder that exists; if it was deleted and made again: cd .",
        ) from error


def _print_error(error: "AtlasError") -> "AtlasError":
    from atlas_retry.reports.screen.lines import harmless
    from atlas_retry.text.units import labelled

    print(harmless(f"atlas: {error}"), file=sys.stderr)
    for line in labelled("next", error.remedy) if error.remedy else ():
        print(harmless(line), file=sys.stderr)
    return error
