"""How connections are protected, for MA and KMA alike: files of certificates, what TLS verifies, and where a
connection in clear is allowed."""

import re
import ssl
from collections.abc import Collection
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

# What a variable may allow in clear beyond this machine. `site`: from a KMA to its MA.
KINDS = ("broker", "redis", "database", "site")


class TlsFiles(NamedTuple):
    """Absolute paths of files in PEM format. `ca`: the only authorities that are trusted; empty: those of the
    system. `certificate` and `key`: who asks, where the other side wants to know."""

    ca: str = ""
    certificate: str = ""
    key: str = ""


SYSTEM = TlsFiles()


def context_of(files: TlsFiles) -> ssl.SSLContext:
    """TLS 1.2 or newer; authority and host name are always verified. Raises OSError where a file is gone."""
    context = ssl.create_default_context(cafile=files.ca or None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if files.certificate:
        context.load_cert_chain(files.certificate, files.key)
    return context


def problems_of(files: TlsFiles, names: TlsFiles) -> list[str]:
    """Each as a sentence. `names` are the variables that name the files."""
    found = [
        f"{name}: {problem}"
        for name, path in zip(names, files, strict=True)
        if path and (problem := file_problem(path))
    ]
    if bool(files.certificate) != bool(files.key):
        missing = names.key if files.certificate else names.certificate
        return [*found, f"{missing} is not set: certificate and key are a pair"]
    if found:
        return found
    try:
        context_of(files)
    except ssl.SSLError as error:
        reason = error.reason or str(error)
        culprit = f"{names.certificate} and {names.key}" if files.certificate else names.ca
        if "KEY_VALUES_MISMATCH" in reason:
            return [f"{culprit}: the key does not belong to the certificate"]
        return [f"{culprit}: no certificate in PEM format, or not its key ({reason})"]
    return []


def file_problem(path: str) -> str:
    """Why it cannot be used; processes work in other folders, so it is to be an absolute path."""
    if not path.startswith("/"):
        return "must be an absolute path"
    try:
        Path(path).read_bytes()
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return ""


def is_local(host: str) -> bool:
    """Whether what is said to `host` stays on this machine: loopback, or the path of a Unix socket."""
    if host in ("", "localhost") or host.startswith("/"):
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def parse_allowed(text: str) -> frozenset[str]:
    """Of a list with commas. Raises ValueError."""
    named = frozenset(each.strip() for each in text.split(",") if each.strip())
    if unknown := sorted(named - set(KINDS)):
        raise ValueError(f"lists {', '.join(unknown)}; known: {', '.join(KINDS)}")
    return named


def clear_problem(kind: str, hosts: Collection[str], allowed: frozenset[str], variable: str) -> str:
    """Why what would go to `hosts` in clear is refused, "" where it may. `variable` lists what is allowed."""
    remote = [host for host in hosts if not is_local(host)]
    if not remote or kind in allowed:
        return ""
    return (
        f"the connection to {', '.join(remote)} would not be encrypted: use TLS (docs/how-to/tls.md), or "
        f"list {kind} in {variable} where others cannot read what goes over this network"
    )


# -- when a certificate ends ---------------------------------------------------------------------------------


UTC_TIME, GENERALIZED_TIME = 0x17, 0x18


def end_of_chain(path: str) -> datetime:
    """Of a certificate with those that signed it: where one has ended none is of use. Raises OSError,
    ValueError."""
    return min(ends_of_file(path))


def end_of_authorities(path: str) -> datetime:
    """The last end: beside a new authority the old one may end. Raises OSError, ValueError."""
    return max(ends_of_file(path))


CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----")


def ends_of_file(path: str) -> list[datetime]:
    """Of each certificate in a PEM file, at least one. Raises OSError, ValueError."""
    found = CERTIFICATE.findall(Path(path).read_text("ascii", errors="replace"))
    if not found:
        raise ValueError(f"{path} holds no certificate")
    return [ends_of(ssl.PEM_cert_to_DER_cert(text)) for text in found]


def ends_of(certificate: bytes) -> datetime:
    """`notAfter` of a certificate in DER (RFC 5280, section 4.1). Raises ValueError."""
    try:
        fields = _children(_children(_children(certificate)[0][1])[0][1])
        if fields[0][0] == 0xA0:  # the version
            del fields[0]
        _serial, _algorithm, _issuer, validity = fields[:4]
        _begin, (kind, text) = _children(validity[1])
        return _time(kind, text.decode("ascii"))
    except (IndexError, UnicodeDecodeError) as error:
        raise ValueError("not a certificate") from error


def _time(kind: int, text: str) -> datetime:
    if kind == UTC_TIME:
        text = f"{'19' if text[:2] >= '50' else '20'}{text}"
    elif kind != GENERALIZED_TIME:
        raise ValueError("not a certificate: no time where its end should be")
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def _children(data: bytes) -> list[tuple[int, bytes]]:
    """Kind and content of each element of a sequence."""
    found, at = [], 0
    while at < len(data):
        kind, length, at = data[at], data[at + 1], at + 2
        if length & 0x80:
            size = length & 0x7F
            length, at = int.from_bytes(data[at : at + size]), at + size
        found.append((kind, data[at : at + length]))
        at += length
    return found


# Verification errors of OpenSSL (x509_vfy.h).
EXPIRED, NOT_YET_VALID, HOST_MISMATCH, ADDRESS_MISMATCH = 10, 9, 62, 64


def tls_problem(error: ssl.SSLError, where: str) -> str:
    """What is wrong, where, and what to do. `where`: host:port."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code == EXPIRED:
            return f"the certificate of {where} has expired: renew it there"
        if error.verify_code == NOT_YET_VALID:
            return f"the certificate of {where} is not valid yet: compare the clocks of both machines"
        if error.verify_code in (HOST_MISMATCH, ADDRESS_MISMATCH):
            return f"the certificate of {where} is for another host: use a name that it contains"
        return (
            f"the certificate of {where} is of an unknown authority ({error.verify_message}): name the file "
            "of the right one"
        )
    reason = error.reason or type(error).__name__
    if reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"):
        return f"{where} does not speak TLS: check the port"
    if "CERTIFICATE_REQUIRED" in reason or "HANDSHAKE_FAILURE" in reason or "BAD_CERTIFICATE" in reason:
        return f"{where} wants a certificate of ours that it trusts ({reason}): check certificate and key"
    if "UNKNOWN_CA" in reason:
        return f"{where} does not know the authority of our certificate: have it signed by one that it trusts"
    if "CERTIFICATE_EXPIRED" in reason:
        return f"our certificate for {where} has expired: renew it"
    return f"TLS with {where} failed: {reason}"
