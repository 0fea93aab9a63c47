"""A command for a person to copy: its label, then the command on a line of its own."""

INDENT = "  "


def copyable(label: str, *commands: str) -> tuple[str, ...]:
    """The lines `next:` and `  atlas undo`, unwrapped: what a terminal wraps is copied whole."""
    lines = "\n".join(commands).splitlines()
    return (f"{label}:", *(f"{INDENT}{line}" for line in lines))
