"""`kill -9` of agent processes and of what `./ma up` started, in the middle of their work."""

import contextlib
import os
import random
import signal

from tests.product.house import House


def let_go_on(house: House, key: str, moment: int) -> None:
    """Until so many attempts have begun."""
    house.until(f"it goes on to {moment}", lambda: len(house.truth(key)) >= moment)


def kill_a_process(house: House, victim: str) -> int:
    """Its pid."""
    house.until(f"{victim} is back", lambda: bool(house.pid(victim)))
    return house.kill(victim)


def kill_a_child(house: House, chance: random.Random, *servers: str) -> int:
    """Of any server, or of one of these; its pid."""
    among = servers or house.servers

    def children() -> list[int]:
        return [pid for server in among for pid in house.agent_processes(server)]

    house.until("an agent process runs", lambda: bool(children()))
    pid = chance.choice(children())
    with contextlib.suppress(ProcessLookupError):  # it ended by itself in this moment, with its KMA
        os.kill(pid, signal.SIGKILL)
    return pid
