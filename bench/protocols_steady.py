"""Batches at a steady rate from a process of its own, as a KMA sends them from elsewhere: what the measuring
process does meanwhile does not keep it waiting."""

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

import requests

from bench.protocols_sent import BATCH, Sender, send


@contextmanager
def steady(url: str, sender: Sender, per_second: int) -> Iterator[list[float]]:
    """Sends while it is entered; afterwards the list holds the seconds of each batch. Raises RuntimeError
    where a batch was refused."""
    spawn = multiprocessing.get_context("spawn")  # a fork would share the connection to the database
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_run, args=(url, sender, BATCH / per_second, theirs))
    process.start()
    theirs.close()
    seconds: list[float] = []
    try:
        ours.recv()  # it is at work
        yield seconds
        ours.send("enough")
        seconds += ours.recv()
    except EOFError:
        raise RuntimeError("what sends batches ended by itself: see above") from None
    finally:
        ours.close()
        process.join()


def _run(url: str, sender: Sender, pause: float, pipe: Connection) -> None:
    seconds: list[float] = []
    pipe.send("at work")
    began = time.perf_counter()
    with requests.Session() as session:
        for number, body in enumerate(sender.batches):
            if pipe.poll(max(0.0, began + number * pause - time.perf_counter())):
                break
            seconds.append(send(session, url, sender.token, body))
    pipe.recv()
    pipe.send(seconds)
