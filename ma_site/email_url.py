"""The server that takes e-mail, as a URL of the environment."""

from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit


@dataclass(frozen=True, slots=True)
class Email:
    """A server that takes e-mail. `security`: "", "starttls" or "tls"."""

    host: str
    port: int
    sender: str
    user: str = ""
    password: str = field(default="", repr=False)
    security: str = ""


EMAIL_PORTS = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}
EMAIL_SECURITY = {"smtp": "", "smtp+starttls": "starttls", "smtps": "tls"}


def parse_email(url: str) -> Email:
    """`smtp://[user:password@]host[:port]/?from=ADDRESS`, also smtp+starttls:// and smtps://."""
    parts = urlsplit(url)
    if parts.scheme not in EMAIL_PORTS:
        raise ValueError(f"must begin with {', '.join(f'{scheme}://' for scheme in EMAIL_PORTS)}")
    query = parse_qs(parts.query)
    sender = query.pop("from", [""])[-1]
    if query or parts.path not in ("", "/"):
        raise ValueError("takes nothing but ?from=ADDRESS after the host")
    if "@" not in sender or not sender.isprintable():
        raise ValueError("needs the address of the sender: smtp://host:port/?from=ma@example.org")
    if not parts.hostname:
        raise ValueError("needs a host: smtp://host:port/?from=ma@example.org")
    if bool(parts.username) != bool(parts.password):
        raise ValueError("takes a user and a password, or neither")
    return Email(
        host=parts.hostname,
        port=parts.port or EMAIL_PORTS[parts.scheme],
        sender=sender,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        security=EMAIL_SECURITY[parts.scheme],
    )
