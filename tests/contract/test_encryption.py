"""What TLS verifies, where a connection in clear is allowed, and the sentences for what is wrong."""

import ssl
from pathlib import Path

import pytest

from contract.encryption import (
    SYSTEM,
    TlsFiles,
    clear_problem,
    context_of,
    is_local,
    parse_allowed,
    problems_of,
    tls_problem,
)

NAMES = TlsFiles("CA", "CERT", "KEY")


@pytest.mark.parametrize("host", ["", "localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]", "/run/db"])
def test_what_stays_on_this_machine(host: str) -> None:
    assert is_local(host)


@pytest.mark.parametrize("host", ["10.0.0.1", "ma.example", "localhost.example", "0.0.0.0", "128.0.0.1"])
def test_what_leaves_it(host: str) -> None:
    assert not is_local(host)


def test_one_host_that_is_not_local_is_enough_and_is_named() -> None:
    assert clear_problem("redis", ["127.0.0.1"], frozenset(), "V") == ""
    problem = clear_problem("redis", ["127.0.0.1", "r.example"], frozenset({"broker"}), "V")
    assert "to r.example would" in problem and "list redis in V" in problem
    assert clear_problem("redis", ["r.example"], frozenset({"redis"}), "V") == ""


def test_only_known_kinds_may_be_allowed() -> None:
    assert parse_allowed(" broker, site,") == {"broker", "site"}
    with pytest.raises(ValueError, match="lists all, some; known: broker, redis, database, site"):
        parse_allowed("some,broker,all")


def test_old_versions_and_unverified_hosts_are_refused() -> None:
    context = context_of(SYSTEM)
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert context.check_hostname and context.verify_mode is ssl.CERT_REQUIRED


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no certificate")
    assert problems_of(SYSTEM, NAMES) == []
    assert problems_of(TlsFiles("ca.pem"), NAMES) == ["CA: must be an absolute path"]
    assert problems_of(TlsFiles("/none/such"), NAMES) == ["CA: cannot be read: No such file or directory"]
    assert problems_of(TlsFiles("", str(text)), NAMES) == ["KEY is not set: certificate and key are a pair"]
    assert problems_of(TlsFiles("", "", str(text)), NAMES) == [
        "CERT is not set: certificate and key are a pair"
    ]
    (problem,) = problems_of(TlsFiles(str(text)), NAMES)
    assert problem.startswith("CA: no certificate in PEM format")


def verification(code: int) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError()
    error.verify_code, error.verify_message = code, "by the library"
    return error


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (10, "has expired: renew it there"),
        (9, "not valid yet: compare the clocks"),
        (62, "is for another host: use a name that it contains"),
        (64, "is for another host: use a name that it contains"),
        (19, "of an unknown authority (by the library): name the file"),
    ],
)
def test_a_certificate_that_is_refused_says_why_where_and_what_to_do(code: int, said: str) -> None:
    problem = tls_problem(verification(code), "b:5671")
    assert "the certificate of b:5671" in problem and said in problem


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("WRONG_VERSION_NUMBER", "b:5671 does not speak TLS"),
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "b:5671 wants a certificate of ours"),
        ("SSLV3_ALERT_HANDSHAKE_FAILURE", "b:5671 wants a certificate of ours"),
        ("TLSV1_ALERT_UNKNOWN_CA", "b:5671 does not know the authority of our certificate"),
        ("SSLV3_ALERT_CERTIFICATE_EXPIRED", "our certificate for b:5671 has expired"),
        ("SOMETHING_ELSE", "TLS with b:5671 failed: SOMETHING_ELSE"),
    ],
)
def test_a_handshake_that_failed_says_what_the_other_side_wants(reason: str, said: str) -> None:
    error = ssl.SSLError()
    error.reason = reason
    assert said in tls_problem(error, "b:5671")
