"""Calls that stay in one piece of the interpreter's stack."""

import resource
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from django.utils.module_loading import import_string

from ma_site.requests.stack import with_room
from ma_site.requests.worker import Worker

# More than a piece of 16 KB holds, so one of these depths is at its end.
DEPTHS = range(200)
CALLS = 100


def leaf(value: int) -> int:
    return value


# Larger than the frames below it, so that none of them is the last one that fits at every depth.
leaf.__code__ = leaf.__code__.replace(co_stacksize=100)


def pages_touched(depth: int) -> int:
    """Pages of memory that calls at this depth touch for the first time."""
    if depth:
        return pages_touched(depth - 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for number in range(CALLS):
        leaf(number)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def deepest() -> int:
    return max(pages_touched(depth) for depth in DEPTHS)


def least(look: Callable[[], int]) -> int:
    """What it touches anyway: what else goes on in this process is left out."""
    return min(look() for _ in range(5))


def test_a_loop_at_the_end_of_a_piece_maps_it_for_each_call() -> None:
    assert least(deepest) >= CALLS


def test_with_room_it_does_so_at_no_depth() -> None:
    assert least(with_room(lambda: deepest())) < CALLS / 2


def test_a_function_with_room_takes_and_answers_what_it_did() -> None:
    @with_room
    def named(first: int, *more: int, last: int = 3) -> tuple[Any, ...]:
        """Says so."""
        return first, more, last

    assert named(1, 2, last=4) == (1, (2,), 4)
    assert (named.__name__, named.__doc__) == ("named", "Says so.")


def test_each_request_has_room_from_its_outermost_layer_on() -> None:
    outermost = import_string(settings.MIDDLEWARE[0])
    touched = []

    def view(_request: HttpRequest) -> HttpResponse:
        touched.append(least(deepest))
        return HttpResponse()

    outermost(view)(RequestFactory().get("/"))
    assert touched[0] < CALLS / 2


def rooms() -> int:
    """Pages of memory that requests touch for the first time, one after the other."""
    request: Callable[[], int] = with_room(lambda: leaf(0))
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    for _number in range(CALLS):
        request()
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before


def touched_in(threads: Executor) -> int:
    with threads:
        return threads.submit(least, rooms).result()


def test_a_thread_of_the_site_keeps_its_room_from_one_request_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Thread.run, "__code__", Thread.run.__code__)  # given back afterwards
    worker = object.__new__(Worker)
    worker.cfg = SimpleNamespace(threads=1)

    assert touched_in(ThreadPoolExecutor(1)) >= CALLS
    assert touched_in(worker.get_thread_pool()) < CALLS / 2
