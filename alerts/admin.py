"""Bounds of alerts that differ from the built-in ones, and who is told of trips."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from alerts.kinds import AlertKind
from alerts.models import SECRET_ADDRESSES, AlertRule, Channel, NoticeTarget, is_secret
from alerts.notices.operations import DeleteTarget, save_target
from alerts.sources import every_kind, kind_of
from console.audit.forms import RecordedAdmin
from console.operations.operation import Act
from console.ui.amounts import duration, number
from console.ui.page import link
from console.ui.text import masked


def defaults_of(kind: AlertKind) -> str:
    """Returns what is built in, in one line."""
    limits = kind.limits
    return _(
        "opens at %(upper)s or more for %(open)s, closes below %(lower)s for %(close)s; unit: %(unit)s"
    ) % {
        "unit": kind.unit,
        "upper": number(limits.upper, 1),
        "lower": number(limits.lower, 1),
        "open": duration(limits.open_after),
        "close": duration(limits.close_after),
    }


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A built-in rule as a row of the list. `rule` is the rule of the site in its place."""

    kind: AlertKind
    upper: str
    lower: str
    open_after: timedelta
    close_after: timedelta
    rule: int | None


def built_in_rules() -> list[BuiltIn]:
    """One query."""
    of_site = dict(AlertRule.objects.filter(pool=None).values_list("kind", "pk"))
    return [
        BuiltIn(
            kind,
            number(kind.limits.upper, 1),
            number(kind.limits.lower, 1),
            kind.limits.open_after,
            kind.limits.close_after,
            of_site.get(kind.name),
        )
        for kind in every_kind()
    ]


class AlertRuleForm(forms.ModelForm):
    kind = forms.ChoiceField(label=gettext_lazy("Kind"))

    class Meta:
        model = AlertRule
        fields = ("kind", "pool", "watched", "upper", "lower", "open_after_seconds", "close_after_seconds")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        kinds = self.fields.get("kind")
        if isinstance(kinds, forms.ChoiceField):
            kinds.choices = [(kind.name, kind.label) for kind in every_kind()]


@admin.register(AlertRule)
class AlertRuleAdmin(RecordedAdmin, admin.ModelAdmin):
    form = AlertRuleForm
    list_display = (
        "kind_label",
        "pool",
        "watched",
        "upper",
        "lower",
        "open_after_seconds",
        "close_after_seconds",
    )
    list_select_related = ("pool",)
    list_filter = ("pool",)
    list_per_page = 50
    readonly_fields = ("built_in", "kind_label")
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "kind",
                    "pool",
                    "watched",
                    "upper",
                    "lower",
                    "open_after_seconds",
                    "close_after_seconds",
                ),
                "description": gettext_lazy(
                    "Without a pool, the rule applies to the whole site. An empty field uses the value of "
                    "the site rule or, if there is none, the built-in value."
                ),
            },
        ),
        (gettext_lazy("Built-in values"), {"fields": ("built_in",)}),
    )

    def get_fieldsets(self, request: HttpRequest, obj: AlertRule | None = None) -> Any:
        """Who may only look sees the kind in words instead of the field with its code."""
        if obj is None or self.has_change_permission(request, obj):
            return self.fieldsets
        (title, shown), *rest = self.fieldsets
        fields = tuple("kind_label" if name == "kind" else name for name in shown["fields"])
        return [(title, {**shown, "fields": fields}), *rest]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """Shows the built-in rules below those that somebody made: an empty list is not without rules."""
        more = {"built_in": built_in_rules(), "may_add": self.has_add_permission(request)}
        return super().changelist_view(request, {**(extra_context or {}), **more})

    @admin.display(description=gettext_lazy("kind"), ordering="kind")
    def kind_label(self, obj: AlertRule) -> str:
        kind = kind_of(obj.kind)
        return str(kind.label) if kind else obj.kind

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> AlertRule | None:
        """Named in words by the titles of its pages."""
        found = super().get_object(request, object_id, from_field)
        if found is not None:
            found.label = self.kind_label(found)
        return found

    @admin.display(description=gettext_lazy("Rules and thresholds"))
    def built_in(self, obj: AlertRule | None) -> SafeString:
        rows = [(kind.label, defaults_of(kind)) for kind in every_kind()]
        return format_html_join("", "<p>{}: {}</p>", rows)


# -- who is told of trips ------------------------------------------------------------------------------------


class NoticeTargetForm(forms.ModelForm):
    """The routing key is entered, never shown."""

    routing_key = forms.CharField(
        label=gettext_lazy("Routing key"),
        required=False,
        max_length=100,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=gettext_lazy(
            "For PagerDuty only. The key is not shown after saving. To keep the current key, "
            "leave the field empty."
        ),
    )

    class Meta:
        model = NoticeTarget
        fields = (
            "setting",
            "pool",
            "channel",
            "address",
            "least_severity",
            "weekdays",
            "hours_from",
            "hours_until",
            "time_zone",
        )

    def __init__(self, *args: Any, **options: Any) -> None:
        """What is left out is as the model says."""
        super().__init__(*args, **options)
        for name in ("address", "least_severity"):
            if name in self.fields:
                self.fields[name].required = False

    def clean(self) -> Any:
        given, channel = super().clean() or {}, self.cleaned_data.get("channel", self.instance.channel)
        if key := self.cleaned_data.get("routing_key"):
            if channel != Channel.PAGERDUTY:
                self.add_error("routing_key", _("Only PagerDuty uses a routing key. Leave this field empty."))
            else:
                self.instance.secret = key
        return given


@admin.register(NoticeTarget)
class NoticeTargetAdmin(RecordedAdmin, admin.ModelAdmin):
    form = NoticeTargetForm
    list_display = ("channel", "seen_address", "setting", "pool", "least_severity", "created_at", "log")
    list_select_related = ("setting", "pool")
    list_filter = ("channel", "pool")
    list_per_page = 50
    fieldsets = (
        (
            None,
            {
                "fields": ("setting", "pool"),
                "description": gettext_lazy(
                    "Applies to one setting or to all settings of a pool. If neither is selected, applies "
                    "to the whole installation."
                ),
            },
        ),
        (
            gettext_lazy("Channel"),
            {
                "fields": ("channel", "address", "routing_key"),
                "description": gettext_lazy(
                    "An e-mail address, a webhook URL, or the address of Alertmanager. For PagerDuty, a "
                    "routing key is required and the address is optional. The signing secret of a webhook "
                    "is shown once, when the recipient is saved."
                ),
            },
        ),
        (
            gettext_lazy("Severity and hours"),
            {"fields": ("least_severity", "weekdays", "hours_from", "hours_until", "time_zone")},
        ),
    )

    def get_fieldsets(self, request: HttpRequest, obj: NoticeTarget | None = None) -> Any:
        """Who may only look sees of a webhook no more than its host; of a secret address nobody does."""
        if obj is None:
            return self.fieldsets
        owner, (title, rest), hours = self.fieldsets
        may_change = self.has_change_permission(request, obj)
        shown = may_change and not is_secret(obj.channel, obj.address)
        address = "address" if shown else "seen_address"
        key = ("routing_key",) if may_change and obj.channel == Channel.PAGERDUTY else ()
        return owner, (title, {**rest, "fields": ("channel", address, *key)}), hours

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        """Nobody finds out by searching what is not shown."""
        return ("address",) if request.user.has_perm("alerts.change_noticetarget") else ()

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[NoticeTarget], search_term: str
    ) -> tuple[QuerySet[NoticeTarget], bool]:
        if search_term and self.get_search_fields(request):
            with_password = Q(address__contains="@") & ~Q(channel=Channel.EMAIL)
            queryset = queryset.exclude(Q(channel__in=SECRET_ADDRESSES) | with_password)
        return super().get_search_results(request, queryset, search_term)

    def get_readonly_fields(self, request: HttpRequest, obj: NoticeTarget | None = None) -> tuple[str, ...]:
        """The channel of a target stays: its secret belongs to it."""
        return () if obj is None else ("channel", "seen_address")

    @admin.display(description=gettext_lazy("address"))
    def seen_address(self, obj: NoticeTarget) -> str:
        return masked(obj.address)

    @admin.display(description=gettext_lazy("Notifications"))
    def log(self, obj: NoticeTarget) -> SafeString:
        return format_html('<a href="{}?target={}">{}</a>', link("notices"), obj.pk, _("Delivery log"))

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Deletes by the operation, which leaves the audit entry."""
        deletion = DeleteTarget()
        deletion.run(obj, Act(deletion, obj, request.user, timezone.now(), {}))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[NoticeTarget]) -> None:
        for target in queryset:
            self.delete_model(request, target)

    def save_model(self, request: HttpRequest, obj: NoticeTarget, form: Any, change: bool) -> None:
        if secret := save_target(obj):
            text = _("Webhook signing secret (shown only once, copy it now): %(secret)s")
            messages.warning(request, text % {"secret": secret})
