"""Write docs/demo.svg: the true output of `atlas demo`, as a picture without outside references."""

import io
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.text import Text

from atlas_retry.cli.demo import show
from atlas_retry.events import Event
from atlas_retry.reports.screen.event_lines import lines_of
from atlas_retry.reports.screen.lines import STYLES, Line

WIDTH = 100
TARGET = Path(__file__).with_name("demo.svg")


class Recorder:
    """A screen that keeps what a terminal would show."""

    def __init__(self) -> None:
        self.console = Console(record=True, width=WIDTH, file=io.StringIO())
        self.console.print(Text("$ atlas demo", style="bold"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to restore."""

    def __call__(self, event: Event) -> None:
        self.write(lines_of(event))

    def write(self, lines: Iterable[Line]) -> None:
        for text, style in lines:
            self.console.print(Text.from_ansi(f"{STYLES[style]}{text}"), highlight=False)


def without_fonts(picture: str) -> str:
    """Rich's SVG loads its font from elsewhere: a picture in a README must load nothing."""
    return re.sub(r"\s*@font-face \{.*?\}", "", picture, flags=re.DOTALL)


def main() -> None:
    """Run the demo and write the picture."""
    recorder = Recorder()
    code = show("scripted", {**os.environ, "PATH": os.defpath}, recorder)
    if code:
        raise SystemExit(f"the demo ended with {code}; {TARGET} is as it was")
    picture = recorder.console.export_svg(title="atlas demo", unique_id="demo")
    TARGET.write_text(without_fonts(picture), encoding="utf-8")


if __name__ == "__main__":
    main()
