"""A part of the house on the health page."""

from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext_lazy

from console.ui.labels import Shown
from console.ui.page import Text

OK, DEGRADED, DOWN, UNUSED = "ok", "degraded", "down", "unused"


@dataclass(frozen=True, slots=True)
class Part:
    """`since` is when it was last known to be well, or since when it is not; `todo` what a person does about
    it."""

    name: Text
    state: str
    says: Text
    todo: Text = ""
    since: datetime | None = None
    url: str = ""

    @property
    def shown(self) -> Shown:
        return SHOWN[self.state]


SHOWN = {
    OK: Shown(gettext_lazy("ok"), "ok", "ok"),
    DEGRADED: Shown(gettext_lazy("degraded"), "warn", "warn"),
    DOWN: Shown(gettext_lazy("down"), "bad", "bad"),
    UNUSED: Shown(gettext_lazy("not in use"), "off", "off"),
}
