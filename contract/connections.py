"""What a KMA calls its connections to the broker, so that the MA can say which server holds a message."""

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
