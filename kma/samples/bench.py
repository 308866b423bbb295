"""The agent that does nothing, for measuring what the container costs."""

from kma.agent import Context, Message, agent


@agent("bench.noop", version="1")
def noop(message: Message, context: Context) -> None:
    """Decodes the message and returns."""
    _ = message.body
