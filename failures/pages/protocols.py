"""The list of protocols: newest first, filtered by what they speak of."""

from datetime import datetime
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import django_filters
import django_tables2 as tables
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from agents.models import LaunchSetting, Server
from agents.pages.consoles import link, needs, page
from agents.pages.lists import BEFORE, PAGE, Page, SpanFilter, counted, page_of
from agents.pages.visible import visible
from agents.templatetags.console import ago
from failures.models import FailureProtocol

VIEW = "failures.view_failureprotocol"


def setting_choices() -> list[tuple[str, str]]:
    return [(key, key) for key in LaunchSetting.objects.values_list("key", flat=True)]


def server_choices() -> list[tuple[str, str]]:
    return [(name, name) for name in Server.objects.values_list("name", flat=True)]


class ProtocolFilter(django_filters.FilterSet):
    setting = django_filters.ChoiceFilter(
        field_name="setting_key",
        choices=setting_choices,
        label=gettext_lazy("Setting"),
        empty_label=gettext_lazy("all"),
    )
    server = django_filters.ChoiceFilter(
        field_name="server_name", choices=server_choices, label=gettext_lazy("Server"), empty_label=gettext_lazy("all")
    )
    exception = django_filters.CharFilter(
        field_name="exception_type", lookup_expr="icontains", label=gettext_lazy("Exception contains"), max_length=255
    )
    span = SpanFilter(field_name="occurred_at")
    temporary = django_filters.ChoiceFilter(
        choices=[("true", gettext_lazy("only temporary")), ("false", gettext_lazy("not temporary"))],
        label=gettext_lazy("Temporary"),
        empty_label=gettext_lazy("all"),
        method="of_kind",
    )
    activation = django_filters.UUIDFilter(field_name="activation_uuid", label=gettext_lazy("Activation"))
    fingerprint = django_filters.CharFilter(label=gettext_lazy("Fingerprint"), max_length=64)
    message_key = django_filters.CharFilter(label=gettext_lazy("Message key"), max_length=255)
    # Shown in the form only when a link has set them.
    quiet = ("activation", "fingerprint")

    class Meta:
        model = FailureProtocol
        fields: list[str] = []

    def of_kind(self, rows: QuerySet[FailureProtocol], name: str, value: str) -> QuerySet[FailureProtocol]:
        return rows.filter(temporary=value == "true")


# Hidden where there is little room.
LESS = {"td": {"class": "less"}, "th": {"class": "less"}}


class ProtocolTable(tables.Table):
    occurred_at = tables.Column(verbose_name=gettext_lazy("When"))
    exception_type = tables.Column(verbose_name=gettext_lazy("Exception"), attrs={"td": {"class": "wraps"}})
    setting_key = tables.Column(verbose_name=gettext_lazy("Setting"))
    server_name = tables.Column(verbose_name=gettext_lazy("Server"))
    place = tables.Column(verbose_name=gettext_lazy("Place"), attrs=LESS)
    attempt = tables.Column(
        verbose_name=gettext_lazy("Attempt"), attrs={"td": {"class": "num least"}, "th": {"class": "num least"}}
    )
    message_key = tables.Column(verbose_name=gettext_lazy("Message"), attrs=LESS)

    class Meta:
        template_name = "ma/table.html"
        orderable = False
        attrs = {"class": "grid"}

    def render_occurred_at(self, record: FailureProtocol) -> SafeString:
        return format_html('<a href="{}">{}</a>', link("protocol", record.pk), ago(record.occurred_at))

    def render_exception_type(self, record: FailureProtocol) -> SafeString:
        head, url = visible(record.exception_text.strip(), limit=160), link("protocol", record.pk)
        tags = protocol_tags(record)
        kind = visible(record.exception_type)
        return format_html('<a href="{}"><b>{}</b></a>{}<br><span class="quiet small">{}</span>', url, kind, tags, head)

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
    if protocol.temporary:
        words.append(_("temporary"))
    if protocol.last_attempt:
        words.append(_("last attempt"))
    if protocol.given_back:
        words.append(_("was given back before"))
    return SafeString("".join(format_html(' <span class="tag">{}</span>', word) for word in words))


def case_link(protocol: FailureProtocol) -> SafeString:
    if not protocol.message_key:
        return SafeString("—")
    text = visible(protocol.message_key, limit=24)
    return format_html('<a class="mono" href="{}" title="{}">{}</a>', case_url(protocol), _("Case file"), text)


def case_url(protocol: FailureProtocol) -> str:
    return f"{link('case')}?{urlencode({'key': protocol.message_key, 'setting': protocol.setting_key})}"


@require_safe
@needs(VIEW)
def protocol_list(request: HttpRequest) -> HttpResponseBase:
    filters = ProtocolFilter(request.GET, FailureProtocol.objects.order_by("-occurred_at", "-id"))
    rows = filters.qs
    listed = _page(request, rows)
    table = ProtocolTable(listed.rows)
    return page(
        request,
        "failures/protocols.html",
        title=_("Protocols"),
        section="protocols",
        filters=filters,
        filtered=any(value for name, value in request.GET.items() if name in filters.filters),
        table=table,
        listed=listed,
        total=counted(rows),
    )


def _page(request: HttpRequest, rows: QuerySet[FailureProtocol]) -> Page:
    cursor = _read(request.GET.get(BEFORE, ""))
    if cursor:
        instant, key = cursor
        rows = rows.filter(occurred_at__lte=instant).filter(Q(occurred_at__lt=instant) | Q(pk__lt=key))
    return page_of(request, list(rows.defer("traceback", "properties")[: PAGE + 1]), _write)


def _write(protocol: FailureProtocol) -> str:
    return f"{protocol.occurred_at.isoformat()}_{protocol.pk}"


def _read(text: str) -> tuple[datetime, UUID] | None:
    """What `_write` wrote; anything else begins at the newest."""
    instant, _separator, key = text.rpartition("_")
    try:
        parsed = datetime.fromisoformat(instant), UUID(key)
    except ValueError:
        return None
    return parsed if parsed[0].tzinfo else None


def protocols_url(**wanted: Any) -> str:
    return f"{link('protocols')}?{urlencode({name: str(value) for name, value in wanted.items()})}"
