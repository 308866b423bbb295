"""Random secrets, each written once into a file that only its owner can read."""

import hashlib
import os
import secrets
from pathlib import Path
from urllib.parse import quote, urlsplit

from deploy.config import LOOPBACK, Config
from deploy.console import DeployError
from deploy.layout import Layout

BROKER_ACCOUNTS = {"kma": "broker_kma", "publisher": "broker_publisher", "ma-ops": "broker_ops"}


# Values of a person's shell that hold a password. The scripts of processes name a file instead.
FROM_SHELL = {
    "MA_DATABASE_URL": "database_url",
    "MA_DEADMAN_URL": "deadman_url",
    "MA_EMAIL_URL": "email_url",
    "MA_METRICS_TOKEN": "shell_metrics_token",
}


def write(path: Path, text: str) -> None:
    """Replaces the file in one step; it never exists with other rights or half written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.parent.chmod(0o700)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def read_secret(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except PermissionError:
        raise DeployError(
            f"{path} is readable only by its owner: run ma as the user who started it first"
        ) from None
    except (FileNotFoundError, NotADirectoryError):
        raise DeployError(f"{path} is missing: ./ma up creates it") from None


def ensure_secret(path: Path) -> str:
    """The secret in this file; a new one of 256 bits where there is none yet."""
    if not path.exists():
        write(path, secrets.token_urlsafe(32))
    path.chmod(0o600)
    return read_secret(path)


def shell_file(layout: Layout, name: str, value: str) -> Path:
    """The file of one value: a start that fails never changes what the last one refers to."""
    digest = hashlib.sha256(value.encode()).hexdigest()[:12]
    return layout.secrets / f"{FROM_SHELL[name]}_{digest}"


def refuse_unreadable(config: Config) -> None:
    """Raises DeployError where a file that the shell names for such a value tells nothing: before anything
    starts."""
    for name in (f"{name}_FILE" for name in FROM_SHELL):
        if not (path := config.handed_on.get(name)):
            continue
        try:
            wrong = "" if Path(path).read_text(encoding="utf-8").strip() else "it is empty"
        except (OSError, UnicodeDecodeError) as error:
            wrong = getattr(error, "strerror", None) or str(error)
        if wrong:
            raise DeployError(
                f"{name}={path} cannot be used: {wrong}. Set a file that this user can read, or unset it."
            )


def keep_from_shell(config: Config, layout: Layout) -> None:
    """Call it before a script refers to them."""
    for name in FROM_SHELL:
        if value := config.handed_on.get(name):
            write(shell_file(layout, name, value), value)


def forget_other_values(config: Config, layout: Layout) -> None:
    """Deletes what earlier starts were told. Call it when nothing refers to that any more."""
    kept = {shell_file(layout, name, value) for name in FROM_SHELL if (value := config.handed_on.get(name))}
    for stem in FROM_SHELL.values():
        for path in layout.secrets.glob(f"{stem}_*"):
            if path not in kept:
                path.unlink(missing_ok=True)


def ensure_all(config: Config, layout: Layout, authority: Path | None = None) -> None:
    """`authority`: of the certificate of Redis, where it speaks TLS."""
    ensure_secret(layout.secrets / "django_key")
    ensure_secret(layout.secrets / "metrics_token")
    for name in BROKER_ACCOUNTS.values():
        ensure_secret(layout.secrets / name)
    ensure_redis_url(layout.secrets / "redis_url", config.redis_port, authority)


def ensure_redis_url(path: Path, port: int, authority: Path | None = None) -> str:
    """Keeps the password when the rest has changed since the last start."""
    password = urlsplit(read_secret(path)).password if path.exists() else None
    scheme, query = ("rediss", f"?ssl_ca_certs={quote(str(authority))}") if authority else ("redis", "")
    url = f"{scheme}://:{password or secrets.token_urlsafe(32)}@{LOOPBACK}:{port}/0{query}"
    if not path.exists() or read_secret(path) != url:
        write(path, url)
    path.chmod(0o600)
    return url


def broker_passwords(layout: Layout) -> dict[str, str]:
    return {user: read_secret(layout.secrets / name) for user, name in BROKER_ACCOUNTS.items()}


def token_file(layout: Layout, server: str) -> Path:
    return layout.secrets / f"token_{server}"


def first_password(layout: Layout) -> Path:
    """Of the demo's administrator, as long as nobody has changed it."""
    return layout.secrets / "admin_first_password"
