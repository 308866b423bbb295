"""What sample agents may touch: files in a folder of this KMA, and addresses of the demo.

Whoever may edit a setting chooses its parameters and, with `demo.scripted`, its messages. Without these
limits that person could write any file of this user and fill any queue that the KMA's account may publish to.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

# Set by tests and benchmarks only: sample agents then write and send anywhere.
ANYWHERE = "KMA_SAMPLES_ANYWHERE"
FOLDER = "truth"
PREFIX = "demo."
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class OutsideLimits(PermissionError):
    """A sample agent was asked for something beyond the demo. Operator: name a file below KMA_DATA/truth, an
    address that begins with `demo.`, or register an agent of your own."""


def checked_destination(name: str) -> str:
    """The name of an address that sample agents may send to. Raises OutsideLimits."""
    # `address::queue` would reach a queue past its address.
    if not _anywhere() and ("::" in name or not name.startswith(PREFIX)):
        raise OutsideLimits(f"sample agents send to {PREFIX}… only, not to {name!r}")
    return name


def open_file(named: str, flags: int) -> int:
    """A descriptor of a regular file below KMA_DATA/truth, named from there or with its whole path. Raises
    OutsideLimits, OSError.

    Every folder on the way is opened from the one before it and may not be a link: what is swapped meanwhile
    leads nowhere else.
    """
    flags |= os.O_CLOEXEC
    if _anywhere():
        return os.open(named, flags, 0o600)
    *folders, name = _parts(named)
    folder = _open_folder()
    try:
        for part in folders:
            inner = _opened(part, _DIRECTORY, folder, named)
            os.close(folder)
            folder = inner
        # Without O_NONBLOCK a pipe of that name would hold the agent for ever.
        file = _opened(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, folder, named)
    finally:
        os.close(folder)
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        os.close(file)
        raise OutsideLimits(f"{named!r} is not a regular file below KMA_DATA/{FOLDER}")
    return file


def _anywhere() -> bool:
    return os.environ.get(ANYWHERE) == "1"


def _data() -> Path:
    data = os.environ.get("KMA_DATA", "")
    if not data:
        raise OutsideLimits("sample agents write files only below KMA_DATA, which is not set")
    return Path(data).absolute()


def _parts(named: str) -> list[str]:
    parts = named.split("/")
    if named.startswith("/"):
        allowed = str(_data() / FOLDER).split("/")
        if parts[: len(allowed)] != allowed:
            raise OutsideLimits(f"sample agents write files only below KMA_DATA/{FOLDER}, not {named!r}")
        parts = parts[len(allowed) :]
    if not parts or any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise OutsideLimits(f"{named!r} is not a file name below KMA_DATA/{FOLDER}")
    return parts


def _open_folder() -> int:
    data = os.open(_data(), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(FileExistsError):
            os.mkdir(FOLDER, 0o700, dir_fd=data)
        return _opened(FOLDER, _DIRECTORY, data, FOLDER)
    finally:
        os.close(data)


def _opened(name: str, flags: int, folder: int, named: str) -> int:
    try:
        return os.open(name, flags, 0o600, dir_fd=folder)
    except FileNotFoundError:
        raise
    except OSError as error:
        # A link, a folder in place of a file, a file in place of a folder.
        raise OutsideLimits(
            f"{named!r} cannot be opened below KMA_DATA/{FOLDER}: {error.strerror}"
        ) from error
