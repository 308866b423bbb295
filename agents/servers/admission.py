"""Describes who is let in as the KMA of a server: its token, and the version of the wire that it speaks."""

import os
from datetime import datetime
from pathlib import Path

from django.db import transaction
from django.utils.translation import gettext as _

from agents.models import Server, ServerToken
from console.models import SERVER_PREFIX, digest_of, new_secret, use_is_news
from contract import __version__
from contract.messages import OLDEST_VERSION, VERSION
from contract.support import Support, support_of

VALID_AT_A_TIME = 2


@transaction.atomic
def issue_server_token(server: Server, *, now: datetime, secret: str = "") -> str:
    """A new secret for the server's KMA, or this one. The newest one before it stays valid, older ones are
    revoked."""
    Server.objects.select_for_update().get(pk=server.pk)
    secret = secret or new_secret(SERVER_PREFIX)
    valid = ServerToken.objects.filter(server=server, revoked_at=None).order_by("-created_at", "-pk")
    outdated = [token.pk for token in valid[VALID_AT_A_TIME - 1 :]]
    ServerToken.objects.filter(pk__in=outdated).update(revoked_at=now)
    ServerToken.objects.create(server=server, digest=digest_of(secret), created_at=now)
    return secret


def find_server_token(secret: str, *, now: datetime) -> ServerToken | None:
    """The valid token behind a secret, its use noted."""
    token = (
        ServerToken.objects.select_related("server").filter(digest=digest_of(secret), revoked_at=None).first()
    )
    if token is not None and use_is_news(token.last_used_at, now):
        ServerToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token


# -- files that hold a secret: whole or not at all, and never readable by others in between ------------------


def write_draft(path: Path, secret: str) -> Path:
    """The file beside `path` that may replace it. Raises OSError, then there is none."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{secret}\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    return draft


# -- what people are told of a KMA whose version of the wire this site does not speak ------------------------


def version_problem(server: str, version: int) -> str:
    if version < OLDEST_VERSION:
        text = _(
            "The KMA on %(server)s is too old for this site: its protocol version is %(n)s, but "
            "the site needs at least %(least)s."
        )
    else:
        text = _(
            "The KMA of %(server)s is newer than this site: its protocol version is %(n)s, but "
            "the site supports up to %(most)s."
        )
    return text % {"server": server, "n": version, "least": OLDEST_VERSION, "most": VERSION}


def version_advice(version: int) -> str:
    if version < OLDEST_VERSION:
        return _("Upgrade the KMA. Until then, it keeps running its instances and stores records locally.")
    return _("Upgrade this site. Until then, the KMA keeps running its instances and stores records locally.")


# -- and of one whose wire it speaks, but that is none of the versions that were tested together -------------


def support_problem(server: str, kma_version: str) -> str:
    """Returns "" for a KMA that is supported, and for one that says no version."""
    support = support_of(kma_version)
    if support is Support.TOO_OLD:
        text = _(
            "The KMA on %(server)s has version %(kma)s, which is no longer supported: this site has %(site)s "
            "and supports its own minor version and the one before."
        )
    elif support is Support.TOO_NEW:
        text = _("The KMA on %(server)s has version %(kma)s, which is newer than this site (%(site)s).")
    else:
        return ""
    return text % {"server": server, "kma": kma_version, "site": __version__}


def support_advice(kma_version: str) -> str:
    if support_of(kma_version) is Support.TOO_NEW:
        return _("Upgrade this site: it is always upgraded before its KMAs. Until then, the KMA continues.")
    return _("Upgrade the KMA. Until then, it continues as far as the site understands its reports.")
