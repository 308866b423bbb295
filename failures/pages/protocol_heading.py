"""What a list of protocols is headed by: the one thing that all of it has in common, most particular
first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from agents.models import Activation, LaunchSetting, Server
from console.ui.page import Text, link
from console.ui.text import visible
from failures.models import FailureProtocol


@dataclass(frozen=True, slots=True)
class Heading:
    """`url` leads to the page of what it names, empty: it has none (any more)."""

    title: str | SafeString
    about: Text
    url: str = ""
    to: Text = ""


def heading_of(cleaned: Mapping[str, Any], rows: Sequence[FailureProtocol]) -> Heading:
    """`cleaned`: the filter; `rows`: of the page that is shown."""
    if fingerprint := cleaned.get("fingerprint"):
        return _of_fingerprint(fingerprint, rows)
    if key := cleaned.get("message_key"):
        about = _("Each failure of one message, newest first.")
        return Heading(visible(_("Protocols of the message %(key)s") % {"key": key}, limit=120), about)
    if activation := cleaned.get("activation"):
        there = Activation.objects.filter(pk=activation).exists()
        title = _("Protocols of the activation %(id)s") % {"id": str(activation)[:8]}
        about = _("What failed in one activation, on every server of it.")
        return Heading(title, about, link("activation", activation) if there else "", _("The activation"))
    server, setting = cleaned.get("server"), cleaned.get("setting")
    if server and not setting:
        there = Server.objects.filter(name=server).exists()
        title = visible(_("Protocols of the server %(name)s") % {"name": server}, limit=120)
        return Heading(
            title, _("What failed on one server, across all settings."), *_to_server(server, there)
        )
    if setting:
        there = LaunchSetting.objects.filter(key=setting).exists()
        title = visible(_("Protocols of the setting %(key)s") % {"key": setting}, limit=120)
        about = _("What failed in one setting, in every activation of it.")
        return Heading(title, about, link("setting", setting) if there else "", _("The setting"))
    about = _(
        "One record for each exception that a server caught, stored exactly once. A message that fails ten "
        "times has "
        "ten."
    )
    return Heading(_("Protocols"), about)


def _to_server(name: str, there: bool) -> tuple[str, Text]:
    return (link("server", name) if there else "", _("The server"))


def _of_fingerprint(fingerprint: str, rows: Sequence[FailureProtocol]) -> Heading:
    about = _("The same kind of failure at the same place, across all settings and servers.")
    if not rows:
        return Heading(
            visible(_("Protocols of the fingerprint %(name)s") % {"name": fingerprint}, limit=120), about
        )
    kind = f"{rows[0].exception_type} · {rows[0].place}" if rows[0].place else rows[0].exception_type
    return Heading(visible(kind, limit=160), about)
