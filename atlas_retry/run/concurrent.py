"""Do one thing to many, some at a time, each started only while that is still wanted."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
R = TypeVar("R")


def side_by_side(
    work: Callable[[T], R], items: Iterator[T], *, jobs: int, may_start: Callable[[], bool]
) -> Iterator[R]:
    """The results as they come. What is left in `items` afterwards was not started.

    `may_start` is asked before each, after the results so far have been taken. What `work` raises
    is raised once all that runs has ended. One job needs no thread.
    """
    if jobs == 1:
        yield from map(work, _while(may_start, items))
        return
    from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

    wanted = _while(may_start, items)
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        running: set[Future[R]] = set()
        while True:
            while len(running) < jobs and (next_one := next(wanted, None)) is not None:
                running.add(pool.submit(work, next_one))
            if not running:
                return
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                yield future.result()


def _while(may_start: Callable[[], bool], items: Iterator[T]) -> Iterator[T]:
    while may_start():
        try:
            yield next(items)
        except StopIteration:
            return
