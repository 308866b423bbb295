"""Certificates and servers with TLS for tests, made with the program openssl, on loopback."""

import socket
import ssl
import subprocess
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Authority:
    """An authority that signs certificates of servers and clients. Its own is `certificate`."""

    folder: Path

    @classmethod
    def create(cls, folder: Path) -> "Authority":
        folder.mkdir(parents=True)
        key, certificate = folder / "ca.key", folder / "ca.crt"
        _openssl(
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", f"/CN={folder.name}", "-addext", "basicConstraints=critical,CA:TRUE",
            "-keyout", key, "-out", certificate,
        )  # fmt: skip
        return cls(folder)

    @property
    def certificate(self) -> Path:
        return self.folder / "ca.crt"

    def sign(
        self, name: str, *alternatives: str, subject: str = "server", days: int = 2
    ) -> tuple[Path, Path]:
        """(certificate, key) for `alternatives`, as `IP:127.0.0.1` or `DNS:db.example`. With less than 0
        `days` it has expired."""
        key, request, certificate = (self.folder / f"{name}.{end}" for end in ("key", "csr", "crt"))
        _openssl(
            "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
            f"/CN={subject}",
            "-keyout", key, "-out", request,
        )  # fmt: skip
        extensions = self.folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName={','.join(alternatives)}\n" if alternatives else "")
        _openssl(
            "x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.folder / "ca.key",
            "-CAcreateserial", "-days", str(days), "-extfile", extensions, "-out", certificate,
        )  # fmt: skip
        key.chmod(0o600)
        return certificate, key

    def pair(self, name: str, *alternatives: str) -> Path:
        """Certificate and key in one file, as Artemis reads them."""
        certificate, key = self.sign(name, *alternatives)
        both = self.folder / f"{name}.pem"
        both.write_bytes(key.read_bytes() + certificate.read_bytes())
        both.chmod(0o600)
        return both


class Echo:
    """A server that shakes hands and says nothing."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve)
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> "Echo":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                plain, _address = self._listener.accept()
                with suppress(OSError), self._context.wrap_socket(plain, server_side=True) as client:
                    client.recv(1)


def _openssl(*arguments: str | Path) -> None:
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
