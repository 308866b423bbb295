"""Taking a name off a setting's masking list shows what it hid: only who may see that anyway may do it."""

from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from agents.models import LaunchSetting

# Of the dlq app, which is above this one.
SEE_MASKED = "dlq.can_see_masked"


def check_unmasking(user: Any, setting: LaunchSetting, wanted: Any) -> None:
    """`wanted`: the list as it is to be, not looked at yet. Raises ValidationError; adding names is always
    allowed."""
    stored = LaunchSetting.objects.filter(pk=setting.pk).values_list("masked_properties", flat=True).first()
    kept = wanted if isinstance(wanted, list) else []
    removed = sorted(name for name in stored or [] if name not in kept)
    if removed and not user.has_perm(SEE_MASKED):
        text = _(
            "You may not stop masking: %(names)s. Ask somebody with the permission “Can see masked "
            "properties of dead "
            "letters”."
        )
        raise ValidationError(text, code="not_yours", params={"names": ", ".join(removed)})
