"""One budget for concurrent runs: what they have spent and what is promised. Decides nothing."""

import threading
import time

from atlas_retry.run.progress import Elsewhere, Progress


class SharedBudget:
    """The shared budget of a batch; thread-safe.

    An attempt is promised its share of the rest before it starts, so that concurrent attempts
    cannot exceed the budget together.
    """

    def __init__(
        self, *, runs: int = 1, jobs: int = 1, spent_usd: float = 0.0, dearest_usd: float = 0.0
    ) -> None:
        """`spent_usd` was spent before, `dearest_usd` by the most expensive attempt."""
        self._lock = threading.Lock()
        self._runs = runs
        self._jobs = jobs
        self._before_usd = spent_usd
        self._spent: dict[str, float] = {}
        self._promised: dict[str, float] = {}
        self._dearest = dearest_usd
        self._started_s = time.monotonic()

    def elapsed_s(self) -> float:
        """Seconds since the budget was made, just before the first run."""
        return time.monotonic() - self._started_s

    def draw(self, key: str, progress: Progress, allowed_usd: float | None) -> Elsewhere:
        """The state of all other runs, and a promise for this run's next attempt.

        `key` identifies the run; `allowed_usd` is the budget of all together.
        """
        with self._lock:
            self._spent[key] = progress.cost_usd
            self._promised.pop(key, None)
            taken_usd = self._taken_usd()
            likely = max(self._dearest, progress.dearest_usd)
            promised = self._promise(key, allowed_usd, taken_usd, likely)
            return Elsewhere(
                cost_usd=taken_usd - progress.cost_usd, dearest_usd=likely, promised_usd=promised
            )

    def settle(self, key: str, cost_usd: float) -> None:
        """Record the cost of an attempt, and release the rest of what it was promised."""
        with self._lock:
            self._spent[key] = self._spent.get(key, 0.0) + cost_usd
            self._promised.pop(key, None)
            self._dearest = max(self._dearest, cost_usd)

    def promise(self, key: str, allowed_usd: float | None) -> float | None:
        """Most that a review of this run may cost; None: unlimited. Released by `settle`."""
        with self._lock:
            return self._promise(key, allowed_usd, self._taken_usd(), 0.0)

    def _promise(
        self, key: str, allowed_usd: float | None, taken_usd: float, likely_usd: float
    ) -> float | None:
        """A share of what is left, so that every concurrent run gets one."""
        if allowed_usd is None:
            return None
        rest = max(allowed_usd - taken_usd, 0.0)
        idle = max(min(self._runs, self._jobs) - len(self._promised), 1)
        self._promised[key] = min(rest, max(rest / idle, likely_usd))
        return self._promised[key]

    def _taken_usd(self) -> float:
        return self._before_usd + sum((*self._spent.values(), *self._promised.values()))

    def leave(self, key: str) -> None:
        with self._lock:
            self._promised.pop(key, None)
            self._runs -= 1
