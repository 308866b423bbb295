"""One site over REST: asked with a token, over TLS that is verified. Nothing follows a redirect, so that the
token goes to nobody else."""

import ipaddress
import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any, BinaryIO
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, urlencode, urlsplit
from urllib.request import (
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    build_opener,
)

MOST_BYTES = 64 * 1024 * 1024  # of an answer that is no file
CHUNK = 64 * 1024
SAID = 300  # characters of an answer that is none of ours


# By the verification error of OpenSSL (x509_vfy.h): what another authority would not mend.
WHAT_TO_DO = {
    9: "It is not valid yet: compare the clocks of both machines.",
    10: "It has expired: renew it there.",
    62: "It is for another host: use a name that it contains.",
    64: "It is for another host: use a name that it contains.",
}


class Exit(IntEnum):
    """DONE, also where there was nothing to do. REFUSED by the site. CHANGES: a plan has some. AWAY: the
    site, its database or its broker does not answer. USAGE: the command itself is wrong."""

    DONE = 0
    REFUSED = 1
    CHANGES = 2
    AWAY = 3
    USAGE = 64


class RemoteError(Exception):
    """Why nothing came of it. `answer`: the body of a refusal, for programs."""

    def __init__(self, code: Exit, what: str, what_to_do: str = "", answer: Any = None) -> None:
        super().__init__(what)
        self.code, self.what, self.what_to_do, self.answer = code, what, what_to_do, answer


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_args: Any, **_options: Any) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Site:
    """`base` without a slash at its end. `token` is in no text that is shown: `repr` leaves it out."""

    base: str
    token: str = field(repr=False)
    opener: OpenerDirector = field(repr=False)
    timeout: float = 60.0

    def asked(self, method: str, path: str, query: Any = (), body: Any = None) -> Any:
        """The answer as JSON; None where it has no body. Raises RemoteError."""
        with self._answer(method, path, query, body) as answer:
            raw = self._read(answer)
            if not raw:
                return None
            try:
                return json.loads(raw)
            except ValueError as error:
                raise _no_answer_of_ours(self.base, answer.status, raw) from error

    def saved(self, path: str, query: Any, out: BinaryIO) -> None:
        """Writes what comes, in pieces. Raises RemoteError."""
        with self._answer("GET", path, query, None) as answer, self._heard():
            while piece := answer.read(CHUNK):
                out.write(piece)

    @contextmanager
    def _answer(self, method: str, path: str, query: Any, body: Any) -> Iterator[HTTPResponse]:
        address = f"{self.base}{path}" + (f"?{urlencode(query, doseq=True)}" if query else "")
        data = None if body is None else json.dumps(body).encode()
        request = Request(address, data, method=method, headers={"Accept": "*/*", "User-Agent": "ma"})
        if data is not None:
            request.add_header("Content-Type", "application/json")
        if self.token:
            request.add_unredirected_header("Authorization", f"Bearer {self.token}")
        with self._heard():
            try:
                answer = self.opener.open(request, timeout=self.timeout)
            except HTTPError as error:
                with error:
                    raise self._refusal(error) from None
        with answer:
            yield answer

    def _refusal(self, error: HTTPError) -> RemoteError:
        if 300 <= error.code < 400:
            leads = urlsplit(error.headers.get("Location", ""))
            where = f"{leads.scheme}://{leads.netloc}" if leads.netloc else "elsewhere"
            return RemoteError(
                Exit.REFUSED, f"{self.base} redirects to {where}.", "Use that address as --url."
            )
        raw = error.read(MOST_BYTES)
        try:
            said = json.loads(raw)
            what, what_to_do = str(said["detail"]), str(said.get("what_to_do", ""))
        except (ValueError, KeyError, TypeError):
            return _no_answer_of_ours(self.base, error.code, raw)
        where = f" ({said['where']})" if said.get("where") and str(said["where"]) not in what else ""
        away = error.code >= 500 or error.code == 429
        return RemoteError(Exit.AWAY if away else Exit.REFUSED, what + where, what_to_do, said)

    def _read(self, answer: HTTPResponse) -> bytes:
        with self._heard():
            raw = answer.read(MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise RemoteError(
                Exit.REFUSED, f"The answer is larger than {MOST_BYTES} bytes.", "Narrow the request."
            )
        return raw

    @contextmanager
    def _heard(self) -> Iterator[None]:
        try:
            yield
        except HTTPError:
            raise
        except ssl.SSLCertVerificationError as error:
            raise self._untrusted(error) from None
        except (URLError, HTTPException, OSError) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, ssl.SSLCertVerificationError):
                raise self._untrusted(reason) from None
            what = f"{self.base} does not answer: {reason or type(error).__name__}."
            raise RemoteError(Exit.AWAY, what, "Check the address, or try again later.") from None

    def _untrusted(self, error: ssl.SSLCertVerificationError) -> RemoteError:
        what = f"The certificate of {self.base} is not trusted: {error.verify_message}."
        known = "Pass the certificate of its authority: --ca FILE."
        return RemoteError(Exit.AWAY, what, WHAT_TO_DO.get(error.verify_code, known))


def _no_answer_of_ours(base: str, status: int, raw: bytes) -> RemoteError:
    said = " ".join(raw[:SAID].decode("utf-8", "replace").split())
    code = Exit.AWAY if status >= 500 else Exit.REFUSED
    return RemoteError(code, f"{base} answered {status}, but not as an MA: {said}", "Check the address.")


def site_at(url: str, token: str, *, ca: str = "", plain: bool = False, timeout: float = 60.0) -> Site:
    """`plain`: the token may go in the clear to another host. Raises RemoteError."""
    parts = _checked(url)
    loopback = _is_loopback(parts.hostname or "")
    if parts.scheme == "http" and not (loopback or plain):
        what = f"{parts.netloc} is another host, and http:// would send the token unencrypted."
        raise RemoteError(Exit.USAGE, what, "Use https:// or --allow-plain-http.")
    if not (token.isascii() and token.isprintable() and " " not in token):
        raise RemoteError(Exit.USAGE, "The token contains invalid characters.", "Copy it again, as one line.")
    try:
        context = ssl.create_default_context(cafile=ca or None)
    except (OSError, ssl.SSLError) as error:
        raise RemoteError(Exit.USAGE, f"--ca {ca}: {error}.", "Pass a file of PEM certificates.") from None
    handlers: list[Any] = [_NoRedirect(), HTTPSHandler(context=context)]
    opener = build_opener(*handlers, *([ProxyHandler({})] if loopback else []))
    return Site(f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}", token, opener, timeout)


def _checked(url: str) -> SplitResult:
    """Raises RemoteError."""
    try:
        parts = urlsplit(url.strip())
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or parts.query or parts.fragment or "@" in parts.netloc:
        raise RemoteError(
            Exit.USAGE, "The address of the site is not https://HOST[:PORT].", "Set --url or MA_URL."
        )
    return parts


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_file(name: str, most: int, standard_input: BinaryIO) -> bytes:
    """`-` is standard input. Raises RemoteError."""
    try:
        if name == "-":
            raw = standard_input.read(most + 1)
        else:
            with Path(name).open("rb") as file:
                raw = file.read(most + 1)
    except OSError as error:
        raise RemoteError(Exit.USAGE, f"{name} cannot be read: {error.strerror}.") from None
    if len(raw) > most:
        raise RemoteError(Exit.USAGE, f"{name} is larger than {most} bytes.")
    return raw


def rows_of(site: Site, path: str, query: Any) -> Iterator[Mapping[str, Any]]:
    """Of all pages; a page names the next one by its query. Raises RemoteError."""
    while True:
        answer = site.asked("GET", path, query)
        yield from answer if isinstance(answer, list) else answer.get("results", [])
        following = answer.get("next") if isinstance(answer, dict) else None
        if not following:
            return
        path, query = path.partition("?")[0] + f"?{urlsplit(following).query}", ()
