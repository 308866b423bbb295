"""Addresses of notices as everybody may see them.

Whoever knows the address of a webhook can write there: its path and its query are secrets as a rule.
"""

from urllib.parse import urlsplit


def masked(address: str) -> str:
    """Of a URL scheme and host only: `https://host/…`. An e-mail address as it is."""
    scheme, separator, _rest = address.partition("://")
    if not separator:
        return address
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return f"{scheme}://…"
    name = f"[{host}]" if ":" in host else host
    return f"{scheme}://{name}{f':{port}' if port else ''}/…"
