"""`atlas hook result`: how the last judged turn of an agent ended, as an exit code."""

import os
from pathlib import Path

from atlas_retry import config, state_dir
from atlas_retry.cli import options
from atlas_retry.cli.app import examples, hook_app
from atlas_retry.cli.documents import write
from atlas_retry.cli.hook import memory
from atlas_retry.errors import ExitCode
from atlas_retry.reports.documents import TurnResult
from atlas_retry.workspace import discovery
from atlas_retry.workspace.snapshot import snapshots

CODES = {"green": ExitCode.OK, "red": ExitCode.FAILED}
_NONE = TurnResult(gates="unjudged", line="gates: unjudged, no turn has been judged here")


@hook_app.command(epilog=examples("atlas hook result --json"))
def result(path: options.Folder = Path(), *, json: options.Json = False) -> ExitCode:
    """Say whether the last turn of an agent passes: exit with 0 if so, 1 if not, 3 if unknown.

    Not known either if files have changed since.
    """
    home, root = state_dir.locate(os.environ), config.root_of(path.resolve())
    last = memory.result(home, root) or _NONE
    line, code = last.line, CODES.get(last.gates, ExitCode.BROKEN)
    if last.tree:
        ws = discovery.open_workspace(root, home, environ=os.environ)
        if snapshots.snapshot(ws).tree != last.tree:
            code, line = ExitCode.BROKEN, f"{line}; but files have changed since"
    if json:
        write(last)
    else:
        print(line)
    return code
