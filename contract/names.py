"""Names on which both sides agree, each once: of properties, queues and connections."""

# Ours, application properties.
LETTER = "ma_letter"  # message key of the case that an edited copy belongs to
# … and which letter it goes instead of: its dead-letter queue, and an id that is above the one before the
# death of the letter and below every one that the copy will have.
LETTER_QUEUE = "ma_letter_queue"
LETTER_ID = "ma_letter_id"
# On the copy that goes to an exception destination: where the message was, which it was, and why it is there.
FAILED_ADDRESS = "ma_failed_address"
FAILED_QUEUE = "ma_failed_queue"
FAILED_MESSAGE = "ma_failed_message"
FAILED_ATTEMPTS = "ma_failed_attempts"
FAILED_EXCEPTION = "ma_failed_exception"
FAILED_PROTOCOL = "ma_failed_protocol"
FAILED_AT = "ma_failed_at"
# … and all addresses where it has failed so far, the first one first: an array of texts, as JSON.
FAILED_TRAIL = "ma_failed_trail"
ACKNOWLEDGMENT_TIMEOUT = "JBXAcknowledgmentTimeout"
DUPLICATE_ID = "_AMQ_DUPL_ID"

# The broker's, on a dead letter: application properties of Core and STOMP messages …
ORIG_ADDRESS = "_AMQ_ORIG_ADDRESS"
ORIG_QUEUE = "_AMQ_ORIG_QUEUE"
ORIG_MESSAGE_ID = "_AMQ_ORIG_MESSAGE_ID"
# … and message annotations of AMQP messages.
ANNOTATED_ORIG_ADDRESS = "x-opt-ORIG-ADDRESS"
ANNOTATED_ORIG_QUEUE = "x-opt-ORIG-QUEUE"
ANNOTATED_ORIG_MESSAGE_ID = "x-opt-ORIG-MESSAGE-ID"
JMS_KIND = "x-opt-jms-msg-type"
# Ours, annotations of a Core message that the broker cannot turn into AMQP and that was read as it is: why,
# and which one of the broker's messages it was.
NOT_CONVERTIBLE = "x-opt-ma-not-convertible"
BROKER_ID = "x-opt-ma-broker-id"
BYTES_IN_STREAM, MALFORMED_BODY = "bytes_in_stream", "malformed_body"

# Queues of the dead-letter address.
DEAD_LETTER_PREFIX = "DLQ."
FEED = "feed"
UNKNOWN = "unknown"
BIN = "bin"
RESERVED_KEYS = frozenset({FEED, UNKNOWN, BIN})

# STOMP turns its own SEND headers into application properties; they are no part of a message's identity.
STOMP_HEADERS = frozenset(
    {"destination", "destination-type", "transaction", "receipt", "content-length", "persistent"}
)
# The broker's word of how often it delivered, written among the properties (null in a STOMP consumer's copy):
# shown as the attempt, never as what a producer set.
BROKERS_OWN = frozenset({"JMSXDeliveryCount"})
BROKER_PREFIXES = ("_AMQ_", "JMSX")


def belongs_to_identity(name: str) -> bool:
    """Whether an application property says something about the message itself, not about its way."""
    return name not in STOMP_HEADERS and not name.startswith(BROKER_PREFIXES)


def dead_letter_queue(key: str) -> str:
    """The queue on the dead-letter address that holds the dead letters of the setting `key`."""
    return DEAD_LETTER_PREFIX + key


# Queues that hold messages back, one for each setting that ever had some held; no key may hold a point.
HOLD = "MA.hold"


def hold_queue(key: str) -> str:
    """The queue on the address HOLD that keeps what is held back of the setting `key`."""
    return f"{HOLD}.{key}"


# Beside a subscription that is held; no key may hold a point.
_AHEAD = ".ahead"


def ahead_queue(key: str) -> str:
    """The queue from which a setting takes messages instead of its subscription, while that is held."""
    return key + _AHEAD


def subscription_of(queue: str) -> str:
    """The subscription that a queue stands in for; itself where it is none of these."""
    return queue.removesuffix(_AHEAD)


# What a KMA calls its connections to the broker, so that the MA can say which server holds a message.
_KMA = "kma."
# The connection adds a hyphen and a UUID, which makes each name the only one.
_UNIQUE = 1 + 36


def connection_name(server: str) -> str:
    return f"{_KMA}{server}"


def server_of(connection: str) -> str:
    """The server of the KMA whose connection has that name; empty when it is nobody's that we know."""
    if not connection.startswith(_KMA):
        return ""
    return connection[len(_KMA) : -_UNIQUE]


# The launch setting that holds the demo's month of history, which nobody ever did: the pipeline leaves it out
# once it was removed.
HISTORY_KEY = "demo-history"
