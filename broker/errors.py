"""What can go wrong with the broker, as decisions. No exception of a client library leaves its adapter."""


class BrokerError(Exception):
    """Base: something about the broker."""


class BrokerUnavailable(BrokerError):
    """Temporary: not reachable, or the connection was lost. Try again with growing pauses; operator: is it
    running?"""


class BrokerTimeout(BrokerUnavailable):
    """Temporary: no answer in time. What was asked may have happened: look before asking again."""


class AccessRefused(BrokerError):
    """Permanent: wrong account or missing right. Operator: compare the account with docs/operations.md."""


class AddressUnknown(BrokerError):
    """Permanent until provisioned: no such address or queue, and this account may not create it."""


class ManagementFailed(BrokerError):
    """The broker carried a management operation out and answered with an error, which is the text."""


class MessageUndecodable(BrokerError):
    """Poison: the bytes are no AMQP message. Refuse it once, keep the raw bytes, go on with the next one."""
