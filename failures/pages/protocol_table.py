"""Protocols as rows of a table."""

from urllib.parse import urlencode

import django_tables2 as tables
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.templatetags.console import ago_tag
from console.ui.page import link
from console.ui.text import visible
from contract.outcomes import Disposition, Outcome
from failures.models import FailureProtocol
from failures.pages.skew import is_ahead, skew_of

# Hidden where there is little room.
LESS = {"td": {"class": "less"}, "th": {"class": "less"}}


class ProtocolTable(tables.Table):
    occurred_at = tables.Column(verbose_name=gettext_lazy("When"))
    exception_type = tables.Column(verbose_name=gettext_lazy("Exception"), attrs={"td": {"class": "wraps"}})
    setting_key = tables.Column(verbose_name=gettext_lazy("Setting"))
    server_name = tables.Column(verbose_name=gettext_lazy("Server"))
    place = tables.Column(verbose_name=gettext_lazy("Place"), attrs=LESS)
    attempt = tables.Column(
        verbose_name=gettext_lazy("Attempt"),
        attrs={"td": {"class": "num least"}, "th": {"class": "num least"}},
    )
    message_key = tables.Column(verbose_name=gettext_lazy("Message"), attrs=LESS)

    class Meta:
        template_name = "ma/table.html"
        orderable = False
        attrs = {"class": "grid"}

    def render_occurred_at(self, record: FailureProtocol) -> SafeString:
        return format_html('<a href="{}">{}</a>', link("protocol", record.pk), ago_tag(record.occurred_at))

    def render_exception_type(self, record: FailureProtocol) -> SafeString:
        head, url = (
            visible(record.exception_text.strip(), limit=160),
            link("protocol", record.pk),
        )
        tags = protocol_tags(record)
        kind = visible(record.exception_type)
        return format_html(
            '<a href="{}"><b>{}</b></a>{}<br><span class="quiet small">{}</span>', url, kind, tags, head
        )

    def render_setting_key(self, record: FailureProtocol) -> SafeString:
        if record.setting_id is None:
            return visible(record.setting_key)
        return format_html('<a href="{}">{}</a>', link("setting", record.setting_key), record.setting_key)

    def render_server_name(self, record: FailureProtocol) -> SafeString:
        return visible(record.server_name)

    def render_place(self, record: FailureProtocol) -> SafeString:
        return format_html('<span class="mono">{}</span>', visible(record.place, limit=60))

    def render_message_key(self, record: FailureProtocol) -> SafeString:
        return case_link(record)


def protocol_tags(protocol: FailureProtocol) -> SafeString:
    """Words that change what a failure means, as small tags."""
    words = []
    if protocol.by_hand:
        words.append(_("sent to the dead letters by a person"))
    elif protocol.outcome == Outcome.NOTED.value:
        words.append(protocol.get_outcome_display())
    elif protocol.temporary:
        words.append(_("temporary"))
    if protocol.last_attempt:
        words.append(_("last attempt"))
    if protocol.disposition in (Disposition.EXCEPTION.value, Disposition.DISCARDED.value):
        words.append(protocol.get_disposition_display())
    if protocol.given_back:
        words.append(_("was given back before"))
    if not protocol.durable:
        words.append(_("non-persistent"))
    if protocol.is_erased:
        words.append(_("erased"))
    if not protocol.verified:
        words.append(_("unverified"))
    if protocol.activation_id is None:
        words.append(_("unknown activation"))
    if is_ahead(protocol):
        words.append(_("clock ahead"))
    elif skew_of(protocol) is not None:
        words.append(_("clock differs"))
    return SafeString("".join(format_html(' <span class="tag">{}</span>', word) for word in words))


def case_link(protocol: FailureProtocol) -> SafeString:
    if not protocol.message_key:
        return SafeString("—")
    text = visible(protocol.message_key, limit=24)
    return format_html(
        '<a class="mono" href="{}" title="{}">{}</a>', case_url(protocol), _("Case file"), text
    )


def case_url(protocol: FailureProtocol) -> str:
    return f"{link('case')}?{urlencode({'key': protocol.message_key, 'setting': protocol.setting_key})}"
