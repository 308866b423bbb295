"""Encrypts what a backup has of secrets, by openssl and a passphrase. Whoever has neither this program nor
its Python reads it with `openssl enc -d -aes-256-cbc -pbkdf2 -iter 600000 -in FILE -pass file:FILE`."""

import getpass
import hashlib
import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from deploy.console import DeployError

ROUNDS = 600_000
SHORTEST = 12
VARIABLE = "MA_BACKUP_PASSPHRASE_FILE"
COMMAND = ("openssl", "enc", "-aes-256-cbc", "-pbkdf2", "-iter", str(ROUNDS), "-md", "sha256")


class WrongPassphrase(DeployError):
    """Says that what was encrypted does not open."""


def passphrase(file: str, environ: Mapping[str, str], *, twice: bool) -> str:
    """Of a file, or asked for at a terminal; `twice`: of a new one. Raises DeployError."""
    name = file or environ.get(VARIABLE, "")
    if name:
        try:
            found = Path(name).read_text("utf-8").strip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise DeployError(f"the passphrase cannot be read from {name}: {why}") from None
    elif sys.stdin.isatty():
        found = getpass.getpass("passphrase of the backup: ")
        if twice and getpass.getpass("the same once more: ") != found:
            raise DeployError("these are two passphrases: nothing was done")
    else:
        raise DeployError(
            f"a backup holds secrets, encrypted: name a file with a passphrase (--passphrase-file, "
            f"{VARIABLE}), or leave them out (--without-secrets)"
        )
    if len(found) < SHORTEST:
        raise DeployError(f"the passphrase has {len(found)} characters: take {SHORTEST} or more")
    return found


def new_salt() -> bytes:
    return secrets.token_bytes(16)


def key_of(phrase: str, salt: bytes) -> bytes:
    """For the seal of the manifest; openssl derives its own by a salt of its own."""
    return hashlib.pbkdf2_hmac("sha256", phrase.encode(), b"ma-backup-seal" + salt, ROUNDS)


def encrypted(plain: bytes, phrase: str) -> bytes:
    return _openssl((*COMMAND, "-salt"), plain, phrase)


def decrypted(cipher: bytes, phrase: str) -> bytes:
    """Raises WrongPassphrase."""
    return _openssl((*COMMAND, "-d"), cipher, phrase)


def _openssl(command: tuple[str, ...], data: bytes, phrase: str) -> bytes:
    """The passphrase goes through a pipe: arguments and environment are seen by others."""
    reading, writing = os.pipe()
    try:
        process = subprocess.Popen(
            [*command, "-pass", f"fd:{reading}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=(reading,),
        )  # fmt: skip
    except FileNotFoundError:
        os.close(writing)
        raise DeployError("openssl is missing: apt-get install openssl, or --without-secrets") from None
    finally:
        os.close(reading)
    feeding = threading.Thread(target=_feed, args=(writing, phrase))
    feeding.start()
    out, err = process.communicate(data)
    feeding.join()
    if process.returncode == 0:
        return out
    if "-d" in command:
        raise WrongPassphrase("the passphrase does not open the secrets of this backup")
    raise DeployError(f"openssl could not encrypt: {err.decode(errors='replace').strip()}")


def _feed(writing: int, phrase: str) -> None:
    with os.fdopen(writing, "wb") as pipe:
        pipe.write(phrase.encode() + b"\n")
