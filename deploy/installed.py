"""The command `ma` where the product is installed from packages: the roles of the site, and its commands.

Its environment is a file of lines NAME=value, over which the shell's own counts.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from deploy import units
from deploy.config import LOOPBACK, REPOSITORY
from deploy.console import DeployError
from deploy.environment import parse_procfile
from deploy.remote import cli as remote

ROLES = ("web", "worker", "beat", "feed")
FILE = "/etc/ma/ma.env"
DEFAULTS = {
    "MA_HOST": LOOPBACK,
    "MA_PORT": "8000",
    "DJANGO_SETTINGS_MODULE": "ma_site.settings",
    "PYTHONUNBUFFERED": "1",
}
USAGE = f"""usage: ma COMMAND …

  {" | ".join(ROLES)}    runs this role in the foreground, as a service does
  manage COMMAND …            runs a command of Django's
  COMMAND …                   the same: ma migrate, ma doctor, ma create-server NAME
  install-units               writes services of systemd: --prefix FOLDER, --role ROLE
  --url URL COMMAND …         uses a site over REST
  --version

The environment comes from {FILE}, or from the file that MA_ENV_FILE names."""


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _run(given)
    except DeployError as problem:
        print(f"ma: {problem}", file=sys.stderr)
        return 1


def _run(given: Sequence[str]) -> int:
    if not given or given[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if given else 2
    if given[0] == "--version":
        print(installed_version())
        return 0
    if given[0] == "install-units":
        return units.install(given[1:])
    if given[0].startswith("-"):
        return remote.main(given, os.environ, ROLES)
    environ = environment(os.environ)
    os.chdir(REPOSITORY)
    command = given[1:] if given[0] == "manage" else [given[0].replace("-", "_"), *given[1:]]
    if given[0] in ROLES:
        os.execve("/bin/sh", ["sh", "-c", f"exec {_command_of(given[0])}"], environ)
    os.execve(sys.executable, [sys.executable, "manage.py", *command], environ)


def _command_of(role: str) -> str:
    """That of the Procfile, which a clone runs, too."""
    processes = parse_procfile((REPOSITORY / "Procfile").read_text("utf-8"))
    return next(process.command for process in processes if process.name == role)


def installed_version() -> str:
    """Without the site, which a bare call does not need."""
    from importlib.metadata import version

    return version("ma-server")


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What a role gets. Raises DeployError."""
    named = environ.get("MA_ENV_FILE")
    file = Path(named or FILE)
    known = read_variables(file) if named or file.exists() else {}
    programs = str(Path(sys.executable).parent)
    path = f"{programs}:{environ.get('PATH', os.defpath)}"
    return {**DEFAULTS, **known, **environ, "PATH": path}


def read_variables(file: Path) -> dict[str, str]:
    """Lines NAME=value as systemd's EnvironmentFile has them: quotes around a value are left out. Raises
    DeployError."""
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DeployError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    found = {}
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text[0] in "#;":
            continue
        name, separator, value = text.partition("=")
        if not separator or not name.isidentifier():
            raise DeployError(f"{file}, line {number}: not NAME=value")
        quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
        found[name] = value[1:-1] if quoted else value
    return found


if __name__ == "__main__":
    sys.exit(main())
