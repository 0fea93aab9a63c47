"""Doing one thing to many: in order, so many at a time, and only as long as it is wanted."""

import threading

import pytest

from atlas_retry.run.many import side_by_side


def always() -> bool:
    return True


def test_one_job_keeps_the_order() -> None:
    doubled = side_by_side(lambda item: item * 2, iter(range(4)), jobs=1, may_start=always)
    assert list(doubled) == [0, 2, 4, 6]


def test_no_more_than_jobs_run_at_once() -> None:
    together = threading.Barrier(3, timeout=60)
    running, most, lock = 0, 0, threading.Lock()

    def work(item: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        together.wait()
        with lock:
            running -= 1
        return item

    results = list(side_by_side(work, iter(range(9)), jobs=3, may_start=always))
    assert sorted(results) == list(range(9))
    assert most == 3


@pytest.mark.parametrize("jobs", [1, 4])
def test_after_a_stop_nothing_starts_and_the_rest_is_returned(jobs: int) -> None:
    items = iter(range(100))
    done: list[int] = []
    for result in side_by_side(lambda n: n, items, jobs=jobs, may_start=lambda: len(done) < 5):
        done.append(result)  # noqa: PERF402 - `may_start` looks at it
    rest = list(items)
    assert sorted([*done, *rest]) == list(range(100))
    assert 5 <= len(done) < 5 + jobs


def test_started_work_ends_although_another_raises() -> None:
    is_failing = threading.Event()
    ended = []

    def work(item: int) -> int:
        if item == 0:
            is_failing.set()
            raise ValueError(item)
        is_failing.wait(10)
        ended.append(item)
        return item

    with pytest.raises(ValueError, match="0"):
        list(side_by_side(work, iter(range(2)), jobs=2, may_start=always))
    assert ended == [1]
