"""Write docs/demo.svg: the true screen of a run, typed out in ten seconds, loading nothing.

It is the run of `atlas demo` with the tests as its only gate.
"""

import io
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.text import Text

from atlas_retry.cli.demo import PYTHON_ALONE, REPLAY, play, project
from atlas_retry.reports.screen.console import Printer

WIDTH = 112
SHOWN_S = 10.0
COMMAND = "$ atlas retry . --ai-fix"
TARGET = Path(__file__).with_name("demo.svg")
APPEARING = "@keyframes appear {{ from {{ opacity: 0 }} to {{ opacity: 1 }} }}\n{lines}"


def screen(environ: Mapping[str, str]) -> str:
    """What a terminal shows of the run, with its colours. Raises SystemExit if it is not fixed."""
    shown = io.StringIO()
    printer = Printer(stream=shown, coloured=True)
    with tempfile.TemporaryDirectory() as scratch:
        path = f"{Path(sys.executable).parent}:{os.defpath}"
        own = {**environ, "PATH": path, "ATLAS_HOME": f"{scratch}/state"}
        root = project(Path(scratch), own, gates=PYTHON_ALONE)
        outcome = play(root, own, REPLAY, printer)
    if not outcome.verdict.is_green:
        raise SystemExit(f"the demo ended {outcome.verdict}; {TARGET} is unchanged")
    return shown.getvalue()


def typed(picture: str, count: int) -> str:
    """The picture with a line after the other; still where the reader wants no motion.

    Rich's SVG loads its font from elsewhere: a picture in a README must load nothing.
    """
    lines = "\n".join(
        f'[clip-path="url(#demo-line-{n})"] '
        f"{{ animation: appear .2s {SHOWN_S * (n + 1) / count:.1f}s backwards }}"
        for n in range(count)
    )
    style = (
        f"@media (prefers-reduced-motion: no-preference) {{\n{APPEARING.format(lines=lines)}\n}}"
    )
    without_fonts = re.sub(r"\s*@font-face \{.*?\}", "", picture, flags=re.DOTALL)
    return without_fonts.replace("</style>", f"{style}\n</style>", 1)


def main() -> None:
    """Run the demo and write the picture."""
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    text = Text.from_ansi(screen(os.environ).strip("\n"))
    console.print(Text(COMMAND, style="bold"))
    console.print(text, highlight=False)
    picture = console.export_svg(title="atlas retry", unique_id="demo")
    TARGET.write_text(typed(picture, len(text.split())), encoding="utf-8")


if __name__ == "__main__":
    main()
