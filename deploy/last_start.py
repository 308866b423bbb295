"""What the last `./ma up` was started with: the other commands mean that installation also from a shell that
does not set it again. A command that knew of no archive would erase nothing there, and retention would wait
for nothing."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from urllib.parse import urlsplit

from deploy import config as configuration
from deploy import pipeline_default, secret_files
from deploy.config import Config
from deploy.console import DeployError
from deploy.layout import Layout

# What makes an installation this one: with another of these the site would begin empty, or beside its data.
# The address of the dead letters and the archive belong to it, because rows of the database point there.
IDENTITY = (
    "MA_DATABASE_URL",
    "MA_DATABASE_URL_FILE",
    "MA_DLA_ADDRESS",
    "MA_ARCHIVE_URL",
    "MA_HOST",
    "MA_PORT",
    "MA_AMQP_PORT",
    "MA_STOMP_PORT",
    "MA_CORE_PORT",
    "MA_REDIS_PORT",
    "MA_TLS",
)
# Ends the name under which the file of a value is remembered.
KEPT = "_KEPT_IN"
# An archive that is named for the first time is no other one. Encrypting is begun, but not ended, unasked.
MAY_BEGIN = ("MA_ARCHIVE_URL", "MA_TLS")


class Choice(Enum):
    """What `./ma up` does where the shell's environment is another than that of the last start."""

    REFUSE = "refuse"
    REMEMBERED = "remembered"
    CHANGED = "changed"


@dataclass(frozen=True)
class Difference:
    name: str
    before: str
    now: str

    def __str__(self) -> str:
        return f"  {self.name}: {_shown(self.name, self.before)}, now {_shown(self.name, self.now)}"


def keep(config: Config, layout: Layout) -> None:
    """Of what holds a password it names the file alone."""
    values = _values(config)
    secret_files.keep_from_shell(config, layout)
    for name in secret_files.FROM_SHELL:
        if value := values.pop(name, ""):
            values[f"{name}{KEPT}"] = str(secret_files.shell_file(layout, name, value))
    secret_files.write(_file(layout), json.dumps(values, indent=1))
    secret_files.forget_other_values(config, layout)


def config_of_last_start(environ: Mapping[str, str]) -> Config:
    """What the shell sets counts, also where it sets it to nothing. Raises DeployError."""
    now = configuration.read(environ)
    return configuration.read(_merged(_known(Layout(now.data)), environ))


def config_for_start(environ: Mapping[str, str], choice: Choice) -> Config:
    """The configuration of `./ma up`. Raises DeployError where the shell means another installation than
    the one that this data folder has, unless a person chose between the two."""
    now = configuration.read(environ)
    known = _known(Layout(now.data))
    found = differences(configuration.read({"MA_DATA": str(now.data), **known}), now) if known else []
    if not found or choice is Choice.CHANGED:
        return now
    if choice is Choice.REMEMBERED:
        own = {name: value for name, value in environ.items() if name not in IDENTITY}
        return configuration.read(_merged(known, own))
    raise DeployError(
        f"{now.data} was last started with another environment:\n"
        + "\n".join(map(str, found))
        + "\nNothing was started. With the environment of the last start: ./ma up --remembered"
        "\nWith this environment: ./ma up --changed (docs/how-to/another-environment.md)"
    )


def differences(before: Config, now: Config) -> list[Difference]:
    """What makes it another installation. A new password or parameter of the same database does not."""
    old, new = _identity(before), _identity(now)
    return [
        Difference(name, old.get(name, ""), new.get(name, ""))
        for name in IDENTITY
        if _place(name, old.get(name, "")) != _place(name, new.get(name, ""))
        and (old.get(name) or name not in MAY_BEGIN)
    ]


def _values(config: Config) -> dict[str, str]:
    return {
        "MA_HOST": config.host,
        "MA_PORT": str(config.port),
        "MA_AMQP_PORT": str(config.amqp_port),
        "MA_STOMP_PORT": str(config.stomp_port),
        "MA_CORE_PORT": str(config.core_port),
        "MA_REDIS_PORT": str(config.redis_port),
        "MA_SERVERS": ",".join(config.servers),
        **({"MA_TLS": "1"} if config.tls else {}),
        **config.handed_on,
    }


def _identity(config: Config) -> dict[str, str]:
    """The same database is the same, whether its URL stands in a variable or in a file. An archive that is
    there is one, also where nobody named it."""
    values = _values(config)
    if path := values.get("MA_DATABASE_URL_FILE"):
        with suppress(OSError, UnicodeDecodeError):
            values["MA_DATABASE_URL"] = Path(path).read_text(encoding="utf-8").strip()
            del values["MA_DATABASE_URL_FILE"]
    layout = Layout(config.data)
    if layout.archive.is_dir():
        values.setdefault("MA_ARCHIVE_URL", pipeline_default.url(layout))
    return values


def _merged(known: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """The shell counts: what it says by a file replaces what was known by a variable, and the other way
    round."""
    told = {name for name in secret_files.FROM_SHELL if name in environ or f"{name}_FILE" in environ}
    rest = {name: value for name, value in known.items() if name.removesuffix("_FILE") not in told}
    return {**rest, **environ}


def _place(name: str, value: str) -> str:
    """Where a database is, without who asks it: for people and for comparing. Other values as they are."""
    if name != "MA_DATABASE_URL" or not value:
        return value
    try:
        url = urlsplit(value)
        port = f":{url.port}" if url.port else ""
    except ValueError:  # the site refuses it with its reason
        return "a URL that cannot be read"
    return f"{url.scheme}://{url.hostname or ''}{port}{url.path}"


def _shown(name: str, value: str) -> str:
    return _place(name, value) or "not set"


def _known(layout: Layout) -> dict[str, str]:
    """Empty where nothing was started yet, or by somebody else."""
    try:
        known = dict(json.loads(_file(layout).read_text("utf-8")))
    except (OSError, ValueError):
        return {}
    for name in secret_files.FROM_SHELL:
        if path := known.pop(f"{name}{KEPT}", ""):
            known[name] = secret_files.read_secret(Path(path))
    return known


def _file(layout: Layout) -> Path:
    return layout.run / "environment.json"
