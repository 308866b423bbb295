"""`python -m handbook FOLDER`: builds the site in FOLDER/html. Exit code 1 where a link or a page is
wrong."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import django

from deploy.config import REPOSITORY
from handbook import source

# A warning is an error, every reference must be found, and all errors are shown at once.
STRICT = ("-q", "-E", "-n", "-W", "--keep-going")


def build(folder: Path) -> int:
    pages, site = folder / "source", folder / "html"
    source.write(pages)
    _write_reference(pages / "reference")
    command = (sys.executable, "-m", "sphinx", *STRICT, "-b", "html", pages, site)
    return subprocess.run(command, cwd=REPOSITORY, check=False).returncode


def _write_reference(folder: Path) -> None:
    """With an environment that is good for reading the code, whatever the shell has."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.typed_settings"
    django.setup()
    from handbook import reference  # its modules import models

    reference.write(folder)


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python -m handbook FOLDER", file=sys.stderr)
        return 2
    folder = Path(arguments[0]).resolve()
    code = build(folder)
    if code == 0:
        print(f"{folder / 'html' / 'index.html'}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
