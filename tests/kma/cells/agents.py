"""The agent of the cells: `demo.scripted`, and it can wait."""

import time
from pathlib import Path

from kma.agent import Agent, Context, Message, agent
from kma.samples.scripted import act, steps_of, write_truth


@agent("test.cell")
class Cell(Agent):
    """`{"do": "wait"}`: until the file that the parameter `gate` names is there."""

    def run_agent(self, message: Message, context: Context) -> None:
        write_truth(str(context.parameters["truth_file"]), message)
        for step in steps_of(message.json()):
            if step["do"] == "wait":
                _wait(Path(str(context.parameters["gate"])))
            else:
                act(step)(step, context)


def _wait(gate: Path) -> None:
    while not gate.exists():
        time.sleep(0.01)
