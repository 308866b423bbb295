"""Whose messages are thrown away at their end: only who has the permission may choose that."""

from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from agents.models import LaunchSetting, PoisonPolicy

DISCARD = "agents.can_discard"


def check_discarding(user: Any, setting: LaunchSetting | None, wanted: Any) -> None:
    """Raises ValidationError. Who may not choose it may leave it as it is."""
    if wanted != PoisonPolicy.DISCARD or user.has_perm(DISCARD):
        return
    stored = LaunchSetting.objects.filter(pk=setting.pk) if setting is not None and setting.pk else None
    if stored is None or not stored.filter(after_last=PoisonPolicy.DISCARD).exists():
        text = _(
            "You may not choose that messages are discarded. Ask somebody with the permission “Can choose "
            "that "
            "messages without an attempt left are discarded”."
        )
        raise ValidationError(text, code="not_yours")
