"""One row of what needs a person."""

from collections.abc import Sequence
from dataclasses import dataclass

from console.ui.page import Text


@dataclass(frozen=True, slots=True)
class Need:
    """`acts` are the buttons: text and address."""

    tone: str
    icon: str
    who: str
    why: Text
    url: str
    acts: Sequence[tuple[Text, str]] = ()
