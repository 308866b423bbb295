"""What somebody looked for, as others may see it."""

from urllib.parse import quote

from django.http import QueryDict

from dlq.masking import MASK, Masks
from dlq.masks import everybodys_masks


def query_for_all(query: str, setting_key: str = "") -> str:
    """As somebody without any right may see it."""
    return query_told(query, everybodys_masks(), setting_key) if "prop" in query else query


def query_told(query: str, masks: Masks, setting_key: str = "") -> str:
    """A filter as of an address, without the values of masked properties: whoever reads it would know that a
    letter has them. Of `setting_key`; without one of letters of any setting."""
    data = QueryDict(query).copy()
    if not masks.any or "prop" not in data:
        return query
    keys = (setting_key,) if setting_key else ()
    told = []
    for pair in data.getlist("prop"):
        name, equals, _value = pair.partition("=")
        told.append(f"{name}={MASK}" if equals and masks.refusal(name.strip(), keys) else pair)
    data.setlist("prop", told)
    return data.urlencode().replace(quote(MASK), MASK)
