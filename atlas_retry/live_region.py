"""A few lines at the foot of a terminal, drawn anew in place. Knows no event and no style."""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self, TextIO

TICK_S = 0.1
HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
NO_SIZE = (80, 24)
"""Columns and rows of a terminal that does not tell (VT100)."""

Row = tuple[str, str]
"""What is shown plainly, and dimmed behind it."""


@dataclass(slots=True, kw_only=True)
class LiveRegion:
    """Draws the rows that `render` makes for a width, ten times a second until it is closed.

    Everything goes out in one write, so nothing flickers. When the terminal has become narrower it
    has wrapped what stands there (tmux, VTE, kitty, Konsole ...): the rows are counted as they are
    now.
    """

    stream: TextIO
    render: Callable[[int], list[Row]]
    _drawn: list[int] = field(default_factory=list)
    """Cells of each row as it was drawn."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _closing: threading.Event = field(default_factory=threading.Event)
    _ticker: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.stream.write(HIDE_CURSOR)
        self._ticker = threading.Thread(target=self._tick, daemon=True)
        self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        if self._ticker:
            self._ticker.join()
        with self._lock:
            self._out(self._erased() + SHOW_CURSOR)

    def print(self, text: str) -> None:
        """Put lines above the region, for good."""
        with self._lock:
            self._out(f"{self._erased()}{text}\n{self._painted()}")

    def _tick(self) -> None:
        while not self._closing.wait(TICK_S):
            with self._lock:
                self._out(self._erased() + self._painted())

    def _out(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()

    def _erased(self) -> str:
        columns, _ = self._size()
        rows = sum(max(1, -(-cells // columns)) for cells in self._drawn)
        self._drawn = []
        return f"\r\x1b[{rows}A\x1b[J" if rows else ""

    def _painted(self) -> str:
        columns, height = self._size()
        rows = self.render(columns)
        if len(rows) > (room := max(1, height - 2)):
            rows = [*rows[: room - 1], (f"  and {len(rows) - room + 1} more", "")]
        fitted = [_fitted(row, columns - 1) for row in rows]
        self._drawn = [_cells(plain + dim) for plain, dim in fitted]
        return "".join(f"{plain}\x1b[2m{dim}\x1b[0m\n" for plain, dim in fitted)

    def _size(self) -> tuple[int, int]:
        try:
            columns, rows = os.get_terminal_size(self.stream.fileno())
        except (OSError, ValueError):
            columns, rows = NO_SIZE
        return columns or NO_SIZE[0], rows or NO_SIZE[1]


def _cells(text: str) -> int:
    """How many columns a text takes; a wide character takes two."""
    from rich.cells import cell_len  # noqa: PLC0415 - start-up

    return cell_len(text)


def _fitted(row: Row, cells: int) -> Row:
    plain = cut(row[0], cells)
    return plain, cut(row[1], cells - _cells(plain)).rstrip()


def cut(text: str, cells: int) -> str:
    """The text in at most this many columns, the cut told."""
    from rich.cells import set_cell_size  # noqa: PLC0415 - start-up

    if _cells(text) <= cells:
        return text
    return set_cell_size(text, cells - 1) + "…" if cells > 1 else ""
