"""Describes which properties of a dead letter are masked, what is shown in their place, and whose masks hold:
of everybody but those who have the right to see what settings mask."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from agents.models import LaunchSetting
from agents.pools.rights import settings_for
from contract.names import DEAD_LETTER_PREFIX
from dlq.dead_letters.rules.json_masks import HIDDEN, looks_like_json, masked_body, masked_head
from dlq.models import DeadLetter
from dlq.rights import SEE_MASKED as ACTION

MASK = HIDDEN

Item = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Masks:
    """Holds what one person may not see: `lists` are the masked names by setting key, of every setting that
    exists, also of those that mask nothing. Without any list (who may see everything) nothing is masked."""

    lists: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def names(self, letter: DeadLetter) -> frozenset[str]:
        """Both by the queue that it lies in and by the setting that it says it is of: whoever sends to a
        dead-letter queue chooses what the dead letter says. Of no setting that exists: whatever any setting
        masks."""
        return self.names_of((letter.setting_key, letter.queue.removeprefix(DEAD_LETTER_PREFIX)))

    def names_of(self, keys: Iterable[str]) -> frozenset[str]:
        known = [self.lists[key] for key in keys if key in self.lists]
        return frozenset().union(*(known or self.lists.values()))

    @property
    def any(self) -> bool:
        """Returns whether there is anything at all that this person may not see."""
        return any(self.lists.values())

    def items(self, letter: DeadLetter, items: Sequence[Item]) -> list[Item]:
        """Properties or annotations in their stored form (`typed_list`), masked ones without type and
        value."""
        names = self.names(letter)
        return [masked(item) if str(item.get("name")) in names else item for item in items]

    def hides_bytes(self, letter: DeadLetter) -> bool:
        """Bytes that are no message cannot be taken apart: its properties are somewhere in them."""
        return not letter.body_kind and bool(self.names(letter))

    def head_of_body(self, letter: DeadLetter) -> str:
        """`body_text` without masked fields; of what is no message that is the head of its bytes."""
        if self.hides_bytes(letter):
            return MASK
        names = self.names(letter)
        if names and letter.body_text.startswith("0x"):
            return MASK  # bytes in hexadecimal: whoever reads them reads what is masked in them
        if letter.truncated and looks_like_json(letter.body_text) and names:
            return MASK
        return masked_head(letter.body_text, names)

    def body(self, letter: DeadLetter, text: str) -> str | None:
        """The text of a whole body without masked fields; None: nothing of it may be told."""
        return masked_body(text, self.names(letter), cut=letter.truncated)

    def refusal(self, name: str, keys: Iterable[str] = ()) -> str:
        """Returns why dead letters of these settings (none: of every one) may not be searched by this
        property; empty: they may.

        An answer to "which letters have card = 4111…" tells the value as well as a look at it.
        """
        wanted = tuple(keys)
        masked_names = self.names_of(wanted) if wanted else frozenset().union(*self.lists.values())
        if name not in masked_names:
            return ""
        return _(
            "Cannot use the property “%(name)s”: it is masked. Ask for the permission “Can see "
            "masked properties of dead letters”."
        ) % {"name": name}


def masked(item: Item) -> Item:
    """Hides its type too: it would reveal a null or a boolean."""
    return {"name": item.get("name"), "type": "", "value": MASK, "masked": True}


# -- masks: for everybody without the right to see what settings mask, everywhere or in a pool ---------------


SEE_MASKED = "dlq.can_see_masked"


def masks_for(user: Any) -> Masks:
    """Returns None for who may see everything; else one query more than `everybodys_masks`."""
    if user.has_perm(SEE_MASKED):
        return Masks()
    return _masks(set(settings_for(user, ACTION).order_by().values_list("key", flat=True)))


def masked_for(user: Any) -> Mapping[str, frozenset[str]]:
    """The names by setting that this person may not see; None: somebody without any right."""
    return (everybodys_masks() if user is None else masks_for(user)).lists


def everybodys_masks() -> Masks:
    """Returns the masks of somebody without any right."""
    return _masks(frozenset())


def _masks(seen: Collection[str]) -> Masks:
    """`seen`: keys of settings whose masks do not hold. Lists in the database are older than what checks them
    now."""
    stored = LaunchSetting.objects.order_by().values_list("key", "masked_properties")
    return Masks({key: _names(names) if key not in seen else frozenset() for key, names in stored})


def _names(names: Any) -> frozenset[str]:
    return frozenset(map(str, names)) if isinstance(names, list) else frozenset()
