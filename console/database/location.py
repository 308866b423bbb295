"""Where the database lies, and how others reach it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

# -- how a program of Java reaches it, with the same TLS as Django's connection ------------------------------
#
# pgjdbc takes the names that libpq has, with two differences. Its `require` verifies nothing, where libpq's
# verifies the authority as soon as `sslrootcert` is given. And it reads a client's key as PKCS-8 in DER, or
# PKCS-12, never as PEM.


PKCS12 = (".p12", ".pfx")
DER = ".pk8"
PEM = b"-----BEGIN"


class KeyUnreadable(Exception):
    """The driver cannot read the client's `key` as it is; `converted`: where it finds one in DER."""

    def __init__(self, key: Path, converted: Path) -> None:
        super().__init__(str(key))
        self.key, self.converted = key, converted


def jdbc_url(known: Mapping[str, Any]) -> str:
    """Makes it of an entry of DATABASES. Raises KeyUnreadable."""
    if known["ENGINE"].endswith("sqlite3"):
        # Read only: a database that is away is told of instead of made anew.
        return f"jdbc:sqlite:{known['NAME']}?open_mode=1&busy_timeout=20000"
    host, port = known["HOST"] or "localhost", known["PORT"] or "5432"
    parameters = {"connectTimeout": "10", "tcpKeepAlive": "true", **_tls(known.get("OPTIONS") or {})}
    database, asked = quote(str(known["NAME"]), safe=""), urlencode(parameters, quote_via=quote)
    return f"jdbc:postgresql://{host}:{port}/{database}?{asked}"


def _tls(options: Mapping[str, Any]) -> dict[str, str]:
    found = {name: str(options[name]) for name in ("sslmode", "sslrootcert", "sslcert") if options.get(name)}
    if found.get("sslmode") == "require" and "sslrootcert" in found:
        found["sslmode"] = "verify-ca"
    if key := options.get("sslkey"):
        found["sslkey"] = _readable_key(Path(str(key)))
    return found


def _readable_key(key: Path) -> str:
    """The key itself, or the one in DER beside it."""
    if key.suffix in PKCS12 or not key.read_bytes().startswith(PEM):
        return str(key)
    converted = key.with_name(key.name + DER)
    if converted.exists():
        return str(converted)
    raise KeyUnreadable(key, converted)
