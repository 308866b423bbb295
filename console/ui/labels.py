"""The small things that pages are made of: states, facts, buttons, tags."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from console.ui.page import Text


@dataclass(frozen=True, slots=True)
class StateLabel:
    """`tone`: ok · bad · warn · info · off. `icon` is a symbol of templates/ma/icons.html."""

    word: Text
    tone: str
    icon: str


@dataclass(frozen=True, slots=True)
class Fact:
    """`follows` is the consequence of the value; `warns` when somebody should think about it."""

    name: Text
    value: Text
    follows: Text = ""
    warns: bool = False
    code: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    title: Text
    facts: list[Fact]


@dataclass(frozen=True, slots=True)
class Button:
    """`name` is its id on the page; `refusal` says why it is disabled, empty where it is not. `posts`: it
    acts at once, with `sent`."""

    name: str
    text: Text
    url: str
    icon: str
    tone: str = ""
    refusal: str = ""
    posts: bool = False
    sent: Mapping[str, str] = field(default_factory=dict)


def kept_tag(durable: bool) -> SafeString:
    """Renders a tag for a message that the broker forgets when it restarts; nothing for any other."""
    return SafeString("") if durable else format_html(' <span class="tag">{}</span>', _("non-persistent"))


@dataclass(frozen=True, slots=True)
class Bar:
    """`show` is the filter of the list below that shows what this bar counts."""

    label: Text
    count: int
    total: int
    tone: str
    show: str

    @property
    def short(self) -> str:
        """Returns the label up to what explains it."""
        return str(self.label).partition(":")[0]
