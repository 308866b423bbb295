"""The static files as browsers get them: collected, named by their content and compressed."""

import hashlib
import json
from importlib.metadata import version
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from django.core.management.base import OutputWrapper

STAMP = ".collected"
MANIFEST = "staticfiles.json"


def collect(stdout: OutputWrapper) -> None:
    """Does nothing where all is there already: compressing takes seconds of every start."""
    stamp = _root() / STAMP
    sources = _digest_of_sources()
    if stamp.exists() and stamp.read_text() == sources and _whole():
        return
    # Not believed any more from here on; the new one comes last, so that an interrupted start begins again.
    stamp.unlink(missing_ok=True)
    call_command("collectstatic", interactive=False, stdout=stdout)
    stamp.write_text(sources)


def _root() -> Path:
    return Path(settings.STATIC_ROOT)


def _digest_of_sources() -> str:
    """Of the files, and of what turns them into those that are served."""
    made_by = (
        version("django"),
        version("whitenoise"),
        settings.STATIC_URL,
        settings.STORAGES["staticfiles"],
    )
    digest = hashlib.sha256(repr(made_by).encode())
    for finder in get_finders():
        for name, storage in sorted(finder.list([]), key=lambda each: each[0]):
            digest.update(
                f"{name}\0".encode() + hashlib.sha256(Path(storage.path(name)).read_bytes()).digest()
            )
    return digest.hexdigest()


def _whole() -> bool:
    """Whether no file is missing that a page may name."""
    try:
        named = json.loads((_root() / MANIFEST).read_text())["paths"].values()
    except (OSError, ValueError, KeyError):
        return False
    return all((_root() / name).exists() for name in named)
