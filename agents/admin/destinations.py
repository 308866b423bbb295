"""Destinations, with the schedule that their policy means and who shares it."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponseRedirect
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from agents.destinations.redelivery import preview
from agents.models import Destination, LaunchSetting
from agents.provisioning.topology import save_destination
from console.audit.forms import RecordedAdmin
from console.ui.page import link


class DestinationForm(forms.ModelForm):
    """The button "Preview" of a browser without scripts sends it only to be looked at: then it is never
    valid, so that nothing is saved, and comes back with what was typed."""

    previewed = False

    def is_valid(self) -> bool:
        valid = super().is_valid()
        self.previewed = valid and "_preview" in self.data
        return valid and "_preview" not in self.data


class SettingInline(admin.TabularInline):
    """Says who shares the policy."""

    model = LaunchSetting
    verbose_name_plural = _("Launch settings with this policy")
    extra = 0
    max_num = 0
    can_delete = False
    fields = ("setting", "agent", "enabled", "provision_state", "provision_problem")
    readonly_fields = fields

    @admin.display(description=_("setting"))
    def setting(self, setting: LaunchSetting) -> SafeString | str:
        if not setting.key:  # the empty form, from which the admin would make another one
            return ""
        return format_html('<a href="{}">{}</a>', link("setting", setting.key), setting.key)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Destination)
class DestinationAdmin(RecordedAdmin, admin.ModelAdmin):
    form = DestinationForm
    list_display = ("name", "max_attempts", "delay_ms", "multiplier", "max_delay_ms", "collision_avoidance")
    search_fields = ("name", "description")
    list_per_page = 50
    inlines = (SettingInline,)
    fieldsets: ClassVar[Any] = (
        (
            None,
            {
                "fields": ("name", "description"),
                "description": _(
                    "A destination is a broker address. Every setting below receives the messages "
                    "published to this address. The broker creates the address with this policy when the "
                    "first setting subscribes. Until the address exists, the broker rejects messages sent "
                    "to it."
                ),
            },
        ),
        (
            _("Redelivery policy"),
            {
                "fields": (
                    "max_attempts",
                    "delay_ms",
                    "multiplier",
                    "max_delay_ms",
                    "collision_avoidance",
                    "expiry_ms",
                ),
                "description": _(
                    "The broker keeps one policy per address, so a change applies to all launch settings "
                    "of this destination. If the maximum number of attempts is −1, there is no limit. If "
                    "the maximum delay is empty, 10 times the delay is used. If the expiry is empty, "
                    "messages never expire. Failed and expired messages always go to the dead-letter "
                    "queue of their setting."
                ),
            },
        ),
    )

    def get_readonly_fields(self, request: HttpRequest, obj: Destination | None = None) -> tuple[str, ...]:
        return ("name",) if obj else ()

    def get_fieldsets(self, request: HttpRequest, obj: Destination | None = None) -> Any:
        """Adds, for a destination that nothing receives from, that the broker does not have it."""
        if obj is None or obj.settings.exists():
            return self.fieldsets
        (title, shown), *rest = self.fieldsets
        lone = _(
            "No setting receives messages from this destination. It does not exist on the broker, "
            "so messages sent to it are rejected."
        )
        return [(title, {**shown, "description": lone}), *rest]

    def render_change_form(self, request: HttpRequest, context: Any, *how: Any, **kinds: Any) -> Any:
        """Renders the schedule of the values in the form, so that it is there without a script as well."""
        form = context["adminform"].form
        shown = preview(form.instance) if not form.is_bound or form.previewed else None
        told = {**context, "preview": shown, "editing": True}
        return super().render_change_form(request, told, *how, **kinds)

    def response_post_save_add(self, request: HttpRequest, obj: Destination) -> HttpResponseRedirect:
        return HttpResponseRedirect(link("destination", obj.pk))

    def response_post_save_change(self, request: HttpRequest, obj: Destination) -> HttpResponseRedirect:
        return HttpResponseRedirect(link("destination", obj.pk))

    def save_model(self, request: HttpRequest, obj: Destination, form: forms.ModelForm, change: bool) -> None:
        save_destination(obj)
