"""`atlas mcp`: serve atlas's own commands to an agent, by the Model Context Protocol."""

from importlib.util import find_spec
from pathlib import Path

from atlas_retry import config
from atlas_retry.cli import options
from atlas_retry.cli.app import app, examples
from atlas_retry.errors import UsageError
from atlas_retry.text.own_environment import installing


@app.command(epilog=examples("atlas mcp"))
def mcp(path: options.Folder = Path()) -> None:
    """Serve validation, failures, the guard and undo to an agent, on standard input and output."""
    if not find_spec("mcp"):
        raise UsageError(
            "atlas mcp needs the SDK of the Model Context Protocol",
            remedy=installing("mcp"),
        )
    from atlas_retry.cli.mcp_tools import server

    server(config.root_of(path.resolve())).run()
