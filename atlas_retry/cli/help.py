"""What `--help` shows beside the options: commands in groups, and an example for each command."""

from itertools import chain
from typing import TYPE_CHECKING

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter

GROUPS = {
    "Begin": ("demo", "init", "config"),
    "Check": ("validate", "format", "lint", "test", "guard", "verify", "prompt"),
    "Fix": ("retry", "resume", "hook"),
    "Look back": ("log", "diff", "pick", "undo", "deliver", "stats", "learnings", "prune"),
    "Several workspaces": ("workspace", "status", "fleet"),
}

EXAMPLES = {
    "demo": "atlas demo",
    "init": "atlas init\natlas init --print --no-try",
    "config show": "atlas config show",
    "config check": "atlas config check",
    "config schema": "atlas config schema --report > report.schema.json",
    "validate": "atlas validate\natlas validate --only lint --fix\n"
    "atlas validate --only test --report junit=junit.xml",
    "format": "atlas format",
    "lint": "atlas lint\natlas lint --fix",
    "test": "atlas test --json",
    "verify": "atlas verify receipt.json --signers allowed_signers",
    "guard": "atlas guard . --base origin/main\natlas guard --base HEAD~1 --json",
    "prompt": "atlas prompt\natlas prompt --from report.json",
    "retry": "atlas retry .\natlas retry . --ai-fix --max-cost-usd 1\n"
    "atlas retry . --ai-fix --since origin/main",
    "resume": "atlas resume\natlas resume --ai-fix",
    "hook stop": "atlas hook stop < turn.json",
    "hook install": "atlas hook install --for codex",
    "hook start": "atlas hook start < turn.json",
    "hook uninstall": "atlas hook uninstall",
    "hook allow": "atlas hook allow tests/test_api.py",
    "deliver": "atlas deliver --patch fix.patch",
    "log": "atlas log\natlas log 20260131 --json",
    "diff": "atlas diff\natlas diff 20260131 2",
    "pick": "atlas pick 20260131 2\natlas pick 20260131 2 --held",
    "undo": "atlas undo\natlas undo 20260131",
    "stats": "atlas stats --since 7d",
    "learnings list": "atlas learnings list",
    "learnings show": "atlas learnings show lr-2026-01-31-001",
    "learnings note": "atlas learnings note lr-2026-01-31-001 'The clock is faked.'",
    "learnings forget": "atlas learnings forget lr-2026-01-31-001",
    "prune": "atlas prune --days 7 --dry-run\natlas prune --keep 10",
    "workspace add": "atlas workspace add api --from main",
    "workspace list": "atlas workspace list",
    "workspace remove": "atlas workspace remove api",
    "status": "atlas status --json",
    "fleet worker": "atlas fleet worker --queue lint --slots 4 --store s3://fleet/atlas",
    "fleet start": "atlas fleet start manifest.yaml --id ruff-0.18 --store s3://fleet/atlas",
    "fleet status": "atlas fleet status ruff-0.18",
    "fleet pause": "atlas fleet pause ruff-0.18 --why 'the registry is down'",
    "fleet resume": "atlas fleet resume ruff-0.18",
    "fleet stop": "atlas fleet stop ruff-0.18",
    "fleet report": "atlas fleet report ruff-0.18 --store s3://fleet/atlas --html fleet.html",
}


class GroupedCommands(TyperGroup):
    """Lists every command under the heading that it belongs to, in whole sentences."""

    def get_command(self, ctx: "Context", cmd_name: str) -> "Command | None":
        """The command, its numbers shown as N."""
        command = super().get_command(ctx, cmd_name)
        if command:
            _name_numbers(command)
        return command

    def format_commands(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        """Write the lists; a command that no group names comes last."""
        named = set(chain.from_iterable(GROUPS.values()))
        others = tuple(name for name in self.list_commands(ctx) if name not in named)
        width = max(map(len, self.commands))
        for heading, names in {**GROUPS, "Others": others}.items():
            rows = [
                (name.ljust(width), self.commands[name].get_short_help_str(limit=200))
                for name in names
                if name in self.commands
            ]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


def _name_numbers(command: "Command") -> None:
    for option in command.params:
        if option.metavar is None and option.type.name.startswith(("int", "float")):
            option.metavar = "N"
    for inner in getattr(command, "commands", {}).values():
        _name_numbers(inner)


def add_examples(app: typer.Typer, above: str = "") -> None:
    """Give every command its example, below the options."""
    for command in app.registered_commands:
        if example := EXAMPLES.get(f"{above}{command.name}"):
            listed = example.replace("\n", "\n  ")
            word = "Examples" if "\n" in example else "Example"
            command.epilog = f"\b\n{word}:\n  {listed}"
    for group in app.registered_groups:
        if group.typer_instance:
            add_examples(group.typer_instance, f"{group.name} ")
