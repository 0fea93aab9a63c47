"""How long judging may take. Judges nothing."""

import time
from collections.abc import Callable

BUSY_S = 30.0
"""Time of the processor: a busy machine makes no change suspect."""
WHOLE_S = 300.0
"""Time of the clock, reading included."""


def limit(busy_s: float = BUSY_S, whole_s: float = WHOLE_S) -> Callable[[], bool]:
    """Tells whether the time is up, which begins now and runs for this thread."""
    busy, whole = time.thread_time() + busy_s, time.monotonic() + whole_s
    return lambda: time.thread_time() > busy or time.monotonic() > whole
