"""The mended version of an agent: the tests put it in the place of the one that failed."""

from kma.agent import Context, Message, agent
from kma.samples.scripted import write_truth


@agent("test.mended", version="2")
def mended(message: Message, context: Context) -> None:
    """Writes the attempt down and is content."""
    write_truth(str(context.parameters["truth_file"]), message)
