"""Labels of launch settings: `key=value` or a key alone, in the characters that Kubernetes allows. Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

MOST_LABELS = 20
LONGEST_PART = 63
LONGEST_TEXT = MOST_LABELS * (2 * LONGEST_PART + 3)
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
KEY = re.compile(rf"(?:{_NAME}/)?{_NAME}")
VALUE = re.compile(rf"(?:{_NAME})?")

Labels = Mapping[str, str]


def check_labels(value: Any) -> None:
    """Raises ValidationError. A label without a value has an empty one."""
    if not isinstance(value, dict):
        raise ValidationError(_("Enter labels as key-value pairs."), code="not_labels")
    if len(value) > MOST_LABELS:
        text = _("A setting can have at most %(most)s labels.")
        raise ValidationError(text, code="too_many", params={"most": MOST_LABELS})
    for key, text in value.items():
        if not _fits(KEY, key) or not _fits(VALUE, text):
            raise _invalid(f"{key}={text}" if text else str(key))


def labels_of(text: str) -> dict[str, str]:
    """Reads `team=billing, critical`; commas, spaces and lines part them. Raises ValidationError."""
    found: dict[str, str] = {}
    for word in filter(None, re.split(r"[\s,]+", text)):
        key, _equals, value = word.partition("=")
        if not _fits(KEY, key) or not _fits(VALUE, value):
            raise _invalid(word)
        if found.setdefault(key, value) != value:
            raise ValidationError(
                _("The label “%(key)s” has two different values. Keep one of them."),
                code="twice",
                params={"key": key},
            )
    check_labels(found)
    return dict(sorted(found.items()))


def relabelled(labels: Any, add: str, remove: str) -> dict[str, str]:
    """Returns the labels as they are to be: `remove` takes what a filter would find, then `add` is added.
    Raises ValidationError."""
    leaving, mine = wanted_in(remove), labels if isinstance(labels, dict) else {}
    kept = {
        key: value
        for key, value in mine.items()
        if not any(has_labels({key: value}, [word]) for word in leaving)
    }
    check_labels(found := kept | labels_of(add))
    return dict(sorted(found.items()))


def label_words(labels: Any) -> list[str]:
    """Each as it is written, in order; none of what is stored and is no label."""
    pairs = labels.items() if isinstance(labels, dict) else ()
    return [f"{key}={value}" if value else str(key) for key, value in sorted(pairs)]


def has_labels(labels: Any, wanted: Iterable[str]) -> bool:
    """Returns whether each of `wanted` is among them: `key` with any value, or `key=value` with this one."""
    mine = labels if isinstance(labels, dict) else {}
    return all(_has(mine, *word.partition("=")) for word in wanted)


def wanted_in(text: str) -> list[str]:
    """The labels of a filter, parted as those of a form."""
    return list(filter(None, re.split(r"[\s,]+", text)))


def _has(labels: Labels, key: str, equals: str, value: str) -> bool:
    return key in labels and (not equals or labels[key] == value)


def _fits(pattern: "re.Pattern[str]", text: Any) -> bool:
    return isinstance(text, str) and len(text) <= LONGEST_PART and pattern.fullmatch(text) is not None


def _invalid(label: str) -> ValidationError:
    text = _(
        "Invalid label “%(label)s”. Use “key” or “key=value”. Allowed: A–Z, a–z, 0–9, “-”, "
        "“_” and “.”, at most %(most)s characters in each part."
    )
    return ValidationError(text, code="invalid", params={"label": label[:200], "most": LONGEST_PART})


class LabelsField(forms.JSONField):
    """A line of labels in a form."""

    widget = forms.TextInput

    def to_python(self, value: Any) -> Any:
        return labels_of(str(value or ""))

    def bound_data(self, data: Any, initial: Any) -> Any:
        return data

    def prepare_value(self, value: Any) -> str:
        return value if isinstance(value, str) else ", ".join(label_words(value))

    def has_changed(self, initial: Any, data: Any) -> bool:
        return self.prepare_value(initial) != self.prepare_value(data or "")
