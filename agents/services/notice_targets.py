"""Addresses that are told of trips. The secret that signs a webhook is made here and shown once."""

import secrets

from agents.models import Channel, NoticeTarget


def save_target(target: NoticeTarget) -> str:
    """The secret, if one was made now, else an empty text. `target` was validated."""
    made = ""
    if target.channel == Channel.WEBHOOK and not target.secret:
        made = target.secret = secrets.token_urlsafe(32)
    elif target.channel == Channel.EMAIL:
        target.secret = ""
    target.save()
    return made


def renew_secret(target: NoticeTarget) -> str:
    """Signatures with the one before are no longer made."""
    target.secret = ""
    return save_target(target)
