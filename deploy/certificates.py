"""The authority and the certificate of an installation that speaks TLS on its own machine: ./ma up --tls."""

import os
import shutil
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy import secret_files
from deploy.config import LOOPBACK, Config
from deploy.console import DeployError
from deploy.layout import Layout

# Of the authority, and of what it signs. A start renews what has less left than RENEW_DAYS.
AUTHORITY_DAYS, DAYS, RENEW_DAYS = 3650, 397, 30
KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


@dataclass(frozen=True)
class Files:
    """All in PEM format, readable by their owner only."""

    folder: Path

    @property
    def authority(self) -> Path:
        return self.folder / "ca.pem"

    @property
    def authority_key(self) -> Path:
        return self.folder / "ca.key"

    @property
    def certificate(self) -> Path:
        return self.folder / "server.pem"

    @property
    def key(self) -> Path:
        return self.folder / "server.key"

    @property
    def pair(self) -> Path:
        """Key and certificate in one, for Artemis."""
        return self.folder / "server-pair.pem"

    @property
    def names(self) -> Path:
        """What the certificate is for."""
        return self.folder / "server.names"


def files_of(layout: Layout) -> Files:
    return Files(layout.data / "tls")


def ensure(config: Config, layout: Layout) -> None:
    """Makes what is missing, ends soon, or is for other names than those of today. Raises DeployError."""
    files = files_of(layout)
    files.folder.mkdir(parents=True, exist_ok=True)
    files.folder.chmod(0o700)
    if not _lasts(files.authority):
        # First: whoever is killed before the end signs once more.
        files.names.unlink(missing_ok=True)
        _openssl(
            "req", "-x509", *KEY, "-days", AUTHORITY_DAYS, "-subj", "/CN=MA installation",
            "-addext", "basicConstraints=critical,CA:TRUE",
            "-addext", "keyUsage=critical,keyCertSign,cRLSign",
            "-keyout", files.authority_key, "-out", files.authority,
        )  # fmt: skip
    wanted = ",".join(names(config.host))
    known = files.names.read_text() if files.names.exists() else ""
    if not (_lasts(files.certificate) and known == wanted):
        _sign(files, wanted)


def names(host: str) -> Sequence[str]:
    """Under which broker, Redis and site are reached."""
    found = dict.fromkeys([f"IP:{LOOPBACK}", "DNS:localhost", f"DNS:{socket.gethostname()}"])
    if host not in (LOOPBACK, "0.0.0.0", "localhost"):
        found[f"IP:{host}" if host.replace(".", "").isdigit() else f"DNS:{host}"] = None
    return tuple(found)


def _sign(files: Files, wanted: str) -> None:
    request, extensions = files.folder / "request", files.folder / "extensions"
    files.names.unlink(missing_ok=True)
    _openssl("req", "-new", *KEY, "-subj", f"/CN={LOOPBACK}", "-keyout", files.key, "-out", request)
    extensions.write_text(
        f"subjectAltName={wanted}\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth,clientAuth\n"
    )
    _openssl(
        "x509", "-req", "-in", request, "-CA", files.authority, "-CAkey", files.authority_key,
        "-CAcreateserial", "-days", DAYS, "-extfile", extensions, "-out", files.certificate,
    )  # fmt: skip
    secret_files.write(files.pair, files.key.read_text() + files.certificate.read_text())
    request.unlink()
    extensions.unlink()
    secret_files.write(files.names, wanted)


def _lasts(certificate: Path) -> bool:
    if not certificate.exists():
        return False
    seconds = str(RENEW_DAYS * 86_400)
    return _run("x509", "-in", certificate, "-noout", "-checkend", seconds).returncode == 0


def _openssl(*arguments: object) -> None:
    done = _run(*arguments)
    if done.returncode != 0:
        raise DeployError(f"openssl {arguments[0]} failed: {done.stderr.strip()[-500:]}")


def _run(*arguments: object) -> "subprocess.CompletedProcess[str]":
    program = shutil.which("openssl")
    if program is None:
        raise DeployError("TLS needs the program openssl. On Debian: sudo apt-get install openssl")
    mask = os.umask(0o077)
    try:
        return subprocess.run(
            [program, *map(str, arguments)],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    finally:
        os.umask(mask)
