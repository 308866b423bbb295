"""When messages died: attempts of before count no more for one that was given back."""

from collections.abc import Collection, Mapping
from datetime import datetime

from django.db.models import Max

from dlq.models import DeadLetter


def deaths(setting_key: str, message_keys: Collection[str]) -> Mapping[str, datetime]:
    letters = DeadLetter.objects.filter(setting_key=setting_key, message_key__in=message_keys).order_by()
    return dict(letters.values_list("message_key").annotate(Max("seen_at")))
