"""What a setting says of messages that cannot be handled, or that were handled before."""

from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext_lazy as _

from contract import duplicates
from contract.outcomes import AfterLast


class PoisonPolicy(models.TextChoices):
    """What becomes of a message whose last attempt failed, or that is invalid."""

    DLQ = AfterLast.DLQ.value, _("dead-letter queue")
    EXCEPTION = AfterLast.EXCEPTION.value, _("exception destination")
    DISCARD = AfterLast.DISCARD.value, _("discard")


def check_duplicate_key(value: str) -> None:
    try:
        duplicates.check_key(value)
    except ValueError as error:
        text = _("“key”, “property:NAME” or “pointer:/json/pointer”; empty for none.")
        raise ValidationError(text, code="no_key") from error
