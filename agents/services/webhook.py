"""A JSON body to an address that somebody chose, signed with a secret that both know.

The address may be private: an operator names it, on purpose. Redirects are not followed: the secret's
signature and the body belong to that address only.
"""

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import requests
from requests.utils import requote_uri

from console.ui.text import masked

# The time of who waits for it belongs to all other addresses as well.
CONNECT_SECONDS = 3.0
ANSWER_SECONDS = 5.0
SIGNATURE_VERSION = "v1"
# "Max retries exceeded with url: /hook?key=…".
BY_URLLIB3 = re.compile(r"(with url:) \S+")


class Undelivered(Exception):
    """Nobody took it, or it is not known whether somebody did: tried again later. The text is for people."""


def sign(secret: str, timestamp: str, body: bytes) -> str:
    """HMAC-SHA256 in hex over the timestamp, a point, and the body, as docs/operations.md tells receivers."""
    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def headers_of(secret: str, event: str, body: bytes, now: datetime) -> dict[str, str]:
    timestamp = str(int(now.timestamp()))
    return {
        "Content-Type": "application/json",
        "User-Agent": "MA",
        "MA-Event": event,
        "MA-Timestamp": timestamp,
        "MA-Signature": f"{SIGNATURE_VERSION}={sign(secret, timestamp, body)}",
    }


def _told(error: Exception, url: str) -> str:
    """Without path and query of the address, which are secrets as a rule: the text is shown to everybody."""
    text = str(error)
    for whole in (url, requote_uri(url)):
        text = text.replace(whole, masked(url))
    text = BY_URLLIB3.sub(r"\1 /…", text)
    return f"{type(error).__name__}: {text}"


def post(url: str, secret: str, content: Mapping[str, Any], now: datetime) -> None:
    """Returns when the address answered 2xx. Raises Undelivered."""
    body = json.dumps(content, ensure_ascii=False, sort_keys=True).encode()
    headers = headers_of(secret, str(content.get("event", "")), body, now)
    try:
        # What it answers is not read: only the status counts.
        with requests.post(
            url,
            data=body,
            headers=headers,
            timeout=(CONNECT_SECONDS, ANSWER_SECONDS),
            allow_redirects=False,
            stream=True,
        ) as answer:
            status = answer.status_code
    except (requests.RequestException, OSError, ValueError) as error:
        raise Undelivered(_told(error, url)[:500]) from error
    if 300 <= status < 400:
        raise Undelivered(f"answered {status}: redirects are not followed, name the final address")
    if not 200 <= status < 300:
        raise Undelivered(f"answered {status}")
