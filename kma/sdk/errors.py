"""What an agent raises, what it may catch, and why there may be none.

The name of a class with its module is stored with each failure and hashed into its fingerprint. So a class
keeps the module by which it was known first, wherever it stands.
"""


class TemporaryUnavailable(RuntimeError):
    """The agent knows that what it needs is away for now. Costs an attempt, does not count against the
    setting."""

    __module__ = "kma.agent"


class InvalidMessage(ValueError):
    """The message can never be handled. It goes to the dead letters at once, whatever attempts it has
    left."""

    __module__ = "kma.agent"


class AgentStopped(BaseException):
    """The agent stops because it was asked to (`context.stopping`). The message is given back, no attempt is
    spent.

    A standalone agent that is stopped finds it raised where it is, once: let it pass, or clean up and raise
    it again.
    """

    __module__ = "kma.agent"


class SendRefused(RuntimeError):
    """The broker does not take what a standalone agent sends: no such address, or no right to send there."""

    __module__ = "kma.agent"


class AcknowledgementRefused(RuntimeError):
    """A delivery could not be answered so: it was answered otherwise, expired, went with its connection, or
    there is none of this id. `state` is how it ended (`committed`, `rolled_back`, `expired`, `lost`), empty
    if nobody knows."""

    __module__ = "kma.agent"

    def __init__(self, reason: str, state: str = "") -> None:
        super().__init__(reason)
        self.state = state


class AgentNameTaken(ValueError):
    """Two agents want one name. Operator: one of the modules in KMA_AGENTS has to give way."""

    __module__ = "kma.registry"


class UnknownAgent(LookupError):
    """No module of KMA_AGENTS registers this name. Operator: add the module on this server, or mend the
    setting."""

    __module__ = "kma.registry"
