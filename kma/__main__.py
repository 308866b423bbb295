"""`kma`, or `python -m kma`: runs the KMA of this server in the foreground, as a service does.

Its environment is a file of lines NAME=value (/etc/ma/kma.env, or what KMA_ENV_FILE names), over which the
process's own counts. Quotes around a value are left out, as systemd does.
"""

import os
import sys
from pathlib import Path

from contract import __version__

FILE = "/etc/ma/kma.env"
THREADS = 2


def main() -> None:
    if sys.argv[1:] == ["--version"]:
        print(__version__)
        return
    if sys.argv[1:]:
        sys.exit("usage: kma [--version]; its environment: docs/reference/environment.md")
    _read_file()
    from kma.host.config import ConfigError, read_config

    try:
        server = read_config().server
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(78)  # EX_CONFIG
    options = ("--pool=threads", "-c", str(THREADS), "--without-gossip", "--without-mingle")
    worker = ("-A", "kma.app", "worker", *options, "-Q", f"kma.{server}", "-n", f"kma.{server}@%h")
    os.execv(sys.executable, [sys.executable, "-m", "celery", *worker])


def _read_file() -> None:
    named = os.environ.get("KMA_ENV_FILE", "")
    file = Path(named or FILE)
    if not (named or file.exists()):
        return
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        sys.exit(f"kma: {file} cannot be read: {error}")
    for number, line in enumerate(map(str.strip, lines), start=1):
        if not line or line[0] in "#;":
            continue
        name, separator, value = line.partition("=")
        if not separator or not name.isidentifier():
            sys.exit(f"kma: {file}, line {number}: not NAME=value")
        quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
        os.environ.setdefault(name, value[1:-1] if quoted else value)


if __name__ == "__main__":
    main()
