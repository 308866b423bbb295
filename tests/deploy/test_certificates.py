"""What `./ma up --tls` makes: once, for its owner alone, renewed in time, whole wherever it was killed."""

import subprocess
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from contract.encryption import end_of_chain
from deploy import certificates, config, secret_files
from deploy.layout import Layout

pytestmark = pytest.mark.process


class Killed(BaseException):
    """Nobody catches it."""


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path)


def ensure(layout: Layout, host: str = "127.0.0.1") -> certificates.Files:
    certificates.ensure(config.read({"MA_DATA": str(layout.data), "MA_HOST": host}), layout)
    return certificates.files_of(layout)


def openssl(*arguments: str | Path) -> str:
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def contents(files: certificates.Files) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in files.folder.iterdir()}


def refuse_what_is_not_whole(files: certificates.Files) -> None:
    """Broker, Redis and site show the same certificate, with its key, of the authority that is trusted."""
    openssl("verify", "-CAfile", files.authority, files.certificate)
    shown = openssl("x509", "-in", files.certificate, "-noout", "-pubkey")
    assert openssl("pkey", "-in", files.key, "-pubout") == shown
    assert files.pair.read_bytes() == files.key.read_bytes() + files.certificate.read_bytes()
    for path in (files.authority, files.certificate, files.pair):
        assert end_of_chain(str(path)) > datetime.now(UTC) + timedelta(days=certificates.RENEW_DAYS)


def test_it_is_made_once_and_only_its_owner_reads_it(layout: Layout) -> None:
    files = ensure(layout)
    refuse_what_is_not_whole(files)
    assert {path.stat().st_mode & 0o777 for path in files.folder.iterdir()} == {0o600}
    assert files.folder.stat().st_mode & 0o777 == 0o700
    before = contents(files)
    ensure(layout)
    assert contents(files) == before


def test_another_host_gets_a_certificate_of_the_same_authority(layout: Layout) -> None:
    files = ensure(layout)
    before = contents(files)
    ensure(layout, "10.1.2.3")
    refuse_what_is_not_whole(files)
    assert files.authority.read_bytes() == before["ca.pem"]
    assert files.certificate.read_bytes() != before["server.pem"]
    assert "IP Address:10.1.2.3" in openssl(
        "x509", "-in", files.certificate, "-noout", "-ext", "subjectAltName"
    )


@pytest.mark.parametrize("renewed", ["DAYS", "AUTHORITY_DAYS"])
def test_what_ends_soon_is_renewed_wherever_a_start_was_killed(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, renewed: str
) -> None:
    files = certificates.files_of(layout)
    run = certificates._run
    write = secret_files.write
    left = 0

    def step() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Killed

    def killed_run(*arguments: object) -> "subprocess.CompletedProcess[str]":
        done = run(*arguments)
        step()
        return done

    def killed_write(path: Path, text: str) -> None:
        write(path, text)
        step()

    for after in range(1, 20):
        with monkeypatch.context() as soon:
            soon.setattr(certificates, renewed, 10)
            for path in (files.authority, files.certificate):
                path.unlink(missing_ok=True)
            ensure(layout)
        old, left = files.certificate.read_bytes(), after
        with monkeypatch.context() as killer:
            killer.setattr(certificates, "_run", killed_run)
            killer.setattr(secret_files, "write", killed_write)
            killed = True
            with suppress(Killed):
                ensure(layout)
                killed = False
        ensure(layout)
        refuse_what_is_not_whole(files)
        assert files.certificate.read_bytes() != old
        if not killed:
            assert after > 4
            return
    raise AssertionError("it never comes to an end")
