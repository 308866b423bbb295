"""What of the container's environment the processes of user code start with: an allowlist.

User code runs as the same user and could read more elsewhere. This keeps what it has no business with out of
its dumps, its logs and the programs that it starts.
"""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

# The variable in which an operator names what his agents need besides, separated by commas.
EXTRA = "KMA_CHILD_ENV"
SECRETS = frozenset({"KMA_TOKEN", "KMA_BROKER_PASSWORD", "KMA_REDIS_URL"})
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ALLOWED = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LANG", "LANGUAGE", "TZ"),
        *("VIRTUAL_ENV", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR"),
        # Which server this is, where the sample agents may write, and the mark by which `./ma` finds
        # leftovers.
        *("KMA_SERVER", "KMA_DATA", "KMA_SAMPLES_ANYWHERE", "MA_RUN_FOLDER"),
    }
)
_FAMILIES = ("LC_", "PYTHON")
_ROOT = str(Path(__file__).resolve().parent.parent)


def names_in(text: str) -> tuple[str, ...]:
    """The names of a KMA_CHILD_ENV. Raises ValueError for what is no name, or names a secret of the
    container."""
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    for name in found:
        if not NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a variable")
        if is_secret(name):
            raise ValueError(f"{name} is a secret of the KMA: agents never get it")
    return found


def is_secret(name: str) -> bool:
    return name.removesuffix("_FILE") in SECRETS


def child_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The allowed part of `environ`, or of this process's, with the product importable."""
    environ = os.environ if environ is None else environ
    extra = names_in(environ.get(EXTRA, ""))
    values = {name: value for name, value in environ.items() if _is_allowed(name, extra)}
    paths = [path for path in values.get("PYTHONPATH", "").split(os.pathsep) if path]
    values["PYTHONPATH"] = os.pathsep.join([*paths, *([] if _ROOT in paths else [_ROOT])])
    return values


def _is_allowed(name: str, extra: Iterable[str]) -> bool:
    return name in _ALLOWED or name.startswith(_FAMILIES) or name in extra
