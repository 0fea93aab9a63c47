"""A few lines at the bottom of a terminal, redrawn in place.

Rich draws each row; their positions are kept here. `rich.live` erases as many lines as it drew,
but after a terminal has become narrower they are wrapped, and some would stay on the screen.
"""

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from msgspec import Struct, field
from rich.control import Control
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

TICK_S = 0.1
NO_SIZE = (80, 24)
"""Columns and rows of a terminal of unknown size (VT100)."""
UP_AND_ERASED = "\x1b[1A\x1b[2K"
"""Erases line by line: tmux keeps in its history what is erased from the first row down."""


class LiveRegion(Struct, kw_only=True):
    """Draws the rows that `render` returns for a width, ten times a second until it is closed.

    Each drawing is one write, to avoid flicker.
    """

    console: "Console"
    render: Callable[[int], list[Text]]
    _drawn: list[int] = field(default_factory=list)
    """Width in cells of each row drawn."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _closing: threading.Event = field(default_factory=threading.Event)
    _ticker: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._out(str(Control.show_cursor(show=False)))
        self._ticker = threading.Thread(target=self._tick, daemon=True)
        self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        if self._ticker:
            self._ticker.join()
        with self._lock:
            self._out(f"{self._erased()}{Control.show_cursor(show=True)}")

    def print(self, text: Text) -> None:
        """Print lines above the region."""
        with self._lock:
            self._out(self._erased() + self._styled(text) + self._painted())

    def _tick(self) -> None:
        while not self._closing.wait(TICK_S):
            with self._lock:
                self._out(self._erased() + self._painted())

    def _out(self, text: str) -> None:
        self.console.file.write(text)
        self.console.file.flush()

    def _styled(self, text: Text) -> str:
        with self.console.capture() as captured:
            self.console.print(text, soft_wrap=True, highlight=False)
        return captured.get()

    def _erased(self) -> str:
        """Control codes that erase the rows, as wrapped at the present width."""
        columns, _ = self._size()
        lines = sum(max(1, -(-cells // columns)) for cells in self._drawn)
        self._drawn = []
        return f"\r{UP_AND_ERASED * lines}" if lines else ""

    def _painted(self) -> str:
        columns, height = self._size()
        rows = self.render(columns)
        if len(rows) > (room := max(1, height - 2)):
            rows = [*rows[: room - 1], Text(f"  and {len(rows) - room + 1} more")]
        for row in rows:
            row.truncate(max(columns - 1, 1), overflow="ellipsis")
        self._drawn = [row.cell_len for row in rows]
        return "".join(self._styled(row) for row in rows)

    def _size(self) -> tuple[int, int]:
        """Size of the output terminal; Rich would use that of standard input."""
        try:
            columns, rows = os.get_terminal_size(self.console.file.fileno())
        except (OSError, ValueError):
            columns, rows = NO_SIZE
        return columns or NO_SIZE[0], rows or NO_SIZE[1]
