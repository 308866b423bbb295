"""The form of a launch setting. Switching it on and off is a service, never a field."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.widgets import AdminTextInputWidget
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponseRedirect
from django.utils.translation import gettext_lazy as _

from agents.models import LaunchSetting
from agents.pages.consoles import link
from agents.pages.offers import offers
from agents.services.wishes import save_setting

FACTS = (
    "enabled",
    "state_since",
    "disabled_reason",
    "disabled_by",
    "provision_state",
    "provision_problem",
    "provisioned_at",
    "created_at",
)


class SettingForm(ModelForm):
    class Meta:
        widgets = {"agent": AdminTextInputWidget(attrs={"list": "offered-agents", "autocomplete": "off"})}
        help_texts = {
            "agent": _("The name under which servers offer it; those offered now are suggested."),
            "breaker_m": _("M failures of any type in a row trip it, or M / 3 of one type; N is derived and no field."),
        }


@admin.register(LaunchSetting)
class LaunchSettingAdmin(admin.ModelAdmin):
    form = SettingForm
    list_display = ("key", "enabled", "agent", "spread", "pool", "destination", "provision_state", "state_since")
    list_select_related = ("pool", "destination")
    list_filter = ("enabled", "provision_state", "spread", "pool", "destination")
    search_fields = ("key", "agent", "description")
    list_per_page = 50
    readonly_fields = FACTS
    fieldsets = (
        (
            _("What"),
            {
                "fields": ("key", "agent", "parameters", "description"),
                "description": _("Once saved it gathers messages, also while it is disabled."),
            },
        ),
        (_("When"), {"fields": ("timing",)}),
        (_("Where"), {"fields": ("spread", "pool", "destination")}),
        (
            _("Limits"),
            {
                "fields": (
                    "mode",
                    "concurrency",
                    "handling_timeout_seconds",
                    "transaction_timeout_seconds",
                    "grace_seconds",
                    "isolate",
                    "child_memory_mb",
                )
            },
        ),
        (_("After failure"), {"fields": ("breaker_m", "masked_properties")}),
        (_("State"), {"fields": FACTS}),
    )

    def get_readonly_fields(self, request: HttpRequest, obj: LaunchSetting | None = None) -> tuple[str, ...]:
        if obj is None:
            return FACTS
        fixed = ("key", "destination") if obj.provisioned_hash else ("key",)
        return (*fixed, *FACTS)

    def get_fieldsets(self, request: HttpRequest, obj: LaunchSetting | None = None) -> Any:
        """One that is not saved has no state yet."""
        return self.fieldsets if obj else self.fieldsets[:-1]

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any) -> Any:
        return super().render_change_form(request, {**context, "offers": offers()}, *args, **options)

    def response_post_save_add(self, request: HttpRequest, obj: LaunchSetting) -> HttpResponseRedirect:
        """To its page: there it is switched on."""
        return HttpResponseRedirect(link("setting", obj.key))

    def response_post_save_change(self, request: HttpRequest, obj: LaunchSetting) -> HttpResponseRedirect:
        return HttpResponseRedirect(link("setting", obj.key))

    def save_model(self, request: HttpRequest, obj: LaunchSetting, form: ModelForm, change: bool) -> None:
        save_setting(obj, by=request.user)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Its queues on the broker may hold messages: it is disabled, not deleted."""
        return False
