"""Protocols as rows of a table."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import django_tables2 as tables
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.models import Activation, LaunchSetting, Server
from agents.pages.servers import SKEW_TOLERATED_SECONDS
from console.templatetags.console import ago_tag
from console.ui.page import Text, link
from console.ui.text import visible_html, visible_name
from contract.outcomes import Disposition, Outcome
from failures.models import FailureProtocol
from failures.protocols.messages import MessageState, message_states

# -- by how much the clock of a server was off when it told of a failure -------------------------------------


def skew_of(protocol: FailureProtocol) -> float | None:
    """Seconds that its clock was ahead (negative: behind), None while nobody has to know.

    A KMA that does not say when it sends cannot be behind for certain: its records may have waited in its
    spool. But what had not occurred yet by our clock when it came has a clock that is ahead.
    """
    skew = protocol.clock_skew_seconds
    if skew is None:
        skew = max(0.0, (protocol.occurred_at - protocol.received_at).total_seconds())
    return skew if abs(skew) > SKEW_TOLERATED_SECONDS else None


def is_ahead(protocol: FailureProtocol) -> bool:
    """Returns whether it came before it occurred, by more than clocks may differ: its place in a list is none
    to believe."""
    return (protocol.occurred_at - protocol.received_at).total_seconds() > SKEW_TOLERATED_SECONDS


# Hidden where there is little room.
LESS = {"td": {"class": "less"}, "th": {"class": "less"}}


class ProtocolTable(tables.Table):
    occurred_at = tables.Column(verbose_name=gettext_lazy("When"))
    exception_type = tables.Column(verbose_name=gettext_lazy("Exception"), attrs={"td": {"class": "wraps"}})
    setting_key = tables.Column(verbose_name=gettext_lazy("Setting"))
    server_name = tables.Column(verbose_name=gettext_lazy("Server"))
    place = tables.Column(verbose_name=gettext_lazy("Location"), attrs=LESS)
    attempt = tables.Column(
        verbose_name=gettext_lazy("Attempt"),
        attrs={"td": {"class": "num least"}, "th": {"class": "num least"}},
    )
    message_key = tables.Column(verbose_name=gettext_lazy("Message"), attrs=LESS)

    class Meta:
        template_name = "ma/table.html"
        orderable = False
        attrs = {"class": "grid"}

    def __init__(self, data: Sequence[FailureProtocol], **options: Any) -> None:
        super().__init__(data, **options)
        self.states = message_states(data)

    def render_occurred_at(self, record: FailureProtocol) -> SafeString:
        return format_html('<a href="{}">{}</a>', link("protocol", record.pk), ago_tag(record.occurred_at))

    def render_exception_type(self, record: FailureProtocol) -> SafeString:
        head, url = (
            visible_html(record.exception_text.strip(), limit=160),
            link("protocol", record.pk),
        )
        tags = protocol_tags(record)
        state = self.states.get((record.setting_key, record.message_key))
        if state is not None and not record.message_key_weak:
            tags += state_tag(state)
        kind = visible_name(record.exception_type)
        return format_html(
            '<a href="{}"><b>{}</b></a>{}<br><span class="quiet small">{}</span>', url, kind, tags, head
        )

    def render_setting_key(self, record: FailureProtocol) -> SafeString:
        if record.setting_id is None:
            return visible_html(record.setting_key)
        return format_html('<a href="{}">{}</a>', link("setting", record.setting_key), record.setting_key)

    def render_server_name(self, record: FailureProtocol) -> SafeString:
        return visible_html(record.server_name)

    def render_place(self, record: FailureProtocol) -> SafeString:
        return format_html('<span class="mono">{}</span>', visible_html(record.place, limit=60))

    def render_message_key(self, record: FailureProtocol) -> SafeString:
        return case_link(record)


def state_tag(state: MessageState) -> SafeString:
    return format_html(' <span class="tag" title="{}">{}</span>', _("Current message state"), state.label)


def protocol_tags(protocol: FailureProtocol) -> SafeString:
    """Words that change what a failure means, as small tags."""
    words = [word for word in (_kind_of_failure(protocol), *_marks(protocol), _clock(protocol)) if word]
    return SafeString("".join(format_html(' <span class="tag">{}</span>', word) for word in words))


def _kind_of_failure(protocol: FailureProtocol) -> str:
    if protocol.by_hand:
        return _("moved to DLQ manually")
    if protocol.outcome == Outcome.NOTED.value:
        return protocol.get_outcome_display()
    return _("temporary") if protocol.temporary else ""


def _marks(protocol: FailureProtocol) -> Iterator[str]:
    if protocol.last_attempt:
        yield _("last attempt")
    if protocol.disposition in (Disposition.EXCEPTION.value, Disposition.DISCARDED.value):
        yield protocol.get_disposition_display()
    if protocol.given_back:
        yield _("replayed before")
    if not protocol.durable:
        yield _("non-persistent")
    if protocol.is_erased:
        yield _("erased")
    if not protocol.verified:
        yield _("unverified")
    if protocol.activation_id is None:
        yield _("unknown activation")


def _clock(protocol: FailureProtocol) -> str:
    if is_ahead(protocol):
        return _("clock ahead")
    return _("clock skew") if skew_of(protocol) is not None else ""


def case_link(protocol: FailureProtocol) -> SafeString:
    if not protocol.message_key:
        return SafeString("—")
    text = visible_html(protocol.message_key, limit=24)
    return format_html(
        '<a class="mono" href="{}" title="{}">{}</a>', case_url(protocol), _("Case file"), text
    )


def case_url(protocol: FailureProtocol) -> str:
    return f"{link('case')}?{urlencode({'key': protocol.message_key, 'setting': protocol.setting_key})}"


# -- heading of a list of protocols: the most particular thing that all have in common -----------------------


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
        about = _("All failures of one message, newest first.")
        return Heading(visible_html(_("Failures of message %(key)s") % {"key": key}, limit=120), about)
    if activation := cleaned.get("activation"):
        there = Activation.objects.filter(pk=activation).exists()
        title = _("Failures in activation %(id)s") % {"id": str(activation)[:8]}
        about = _("Failures of one activation, on all its servers.")
        return Heading(title, about, link("activation", activation) if there else "", _("Open activation"))
    server, setting = cleaned.get("server"), cleaned.get("setting")
    if server and not setting:
        there = Server.objects.filter(name=server).exists()
        title = visible_html(_("Failures on server %(name)s") % {"name": server}, limit=120)
        return Heading(title, _("Failures on one server, across all settings."), *_to_server(server, there))
    if setting:
        there = LaunchSetting.objects.filter(key=setting).exists()
        title = visible_html(_("Failures of setting %(key)s") % {"key": setting}, limit=120)
        about = _("Failures of one setting, in all its activations.")
        return Heading(title, about, link("setting", setting) if there else "", _("Open setting"))
    about = _(
        "Each exception caught on a server is stored exactly once. A message that fails ten "
        "times has ten records."
    )
    return Heading(_("Failures"), about)


def _to_server(name: str, there: bool) -> tuple[str, Text]:
    return (link("server", name) if there else "", _("Open server"))


def _of_fingerprint(fingerprint: str, rows: Sequence[FailureProtocol]) -> Heading:
    about = _("Failures of one error group, across all settings and servers.")
    if not rows:
        return Heading(
            visible_html(_("Failures with fingerprint %(name)s") % {"name": fingerprint}, limit=120), about
        )
    kind = f"{rows[0].exception_type} · {rows[0].place}" if rows[0].place else rows[0].exception_type
    return Heading(visible_html(kind, limit=160), about)
