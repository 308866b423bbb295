"""The agent that does nothing, for measuring what the container costs."""

import json
import os
import time
from pathlib import Path

from kma.agent import Context, Message, agent
from kma.samples import limits


@agent("bench.noop", version="1")
def noop(message: Message, context: Context) -> None:
    """Decodes the message and returns."""
    _ = message.body


@agent("bench.trip", version="1")
def trip(message: Message, context: Context) -> None:
    """Writes down when it began and where. Raises on the servers that the file `failing` names."""
    folder = Path(str(context.parameters["folder"]))
    line = json.dumps({"server": context.server, "activation": context.activation, "at": time.time()})
    # One write with O_APPEND: lines of several processes never mix.
    file = limits.open_file(str(folder / "starts.jsonl"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, line.encode() + b"\n")
    finally:
        os.close(file)
    try:
        with os.fdopen(limits.open_file(str(folder / "failing"), os.O_RDONLY)) as stream:
            failing = stream.read().split()
    except FileNotFoundError:
        failing = []
    time.sleep(float(context.parameters["seconds"]))
    if context.server in failing:
        raise RuntimeError("fails here")
