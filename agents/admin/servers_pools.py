"""Servers with their tokens; pools: whether every agent may run in one, or only those that are listed; and
maintenance windows."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.widgets import AdminTextInputWidget
from django.http import HttpRequest, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy
from django.utils.translation import gettext_lazy as _

from agents.crontab import time_zones
from agents.liveness import poll_after_commit
from agents.models import MaintenanceWindow, OfferedAgent, Pool, Server, ServerToken, SettingKind
from agents.models.pool import join_names
from agents.pages.previews import EVERY, LISTED, meaning_of, names_of, withheld_text
from agents.pages.previews import VIEW as VIEW_LIST
from agents.servers.operations import RevokeServerToken
from agents.settings.pools import save_pool
from console.admin import TokenAdmin
from console.audit.forms import RecordedAdmin
from console.ui.page import link

LONGEST_TEXT = 150_000
CHOICES = [
    (EVERY, gettext_lazy("all agents available on the servers in the pool")),
    (LISTED, gettext_lazy("only the agents listed here")),
]


class PoolForm(forms.ModelForm):
    """`allows` and `listed_agents` are the two parts of `Pool.allowed_agents`."""

    allows = forms.ChoiceField(
        label=gettext_lazy("Agents allowed in this pool"),
        choices=CHOICES,
        initial=EVERY,
        required=False,
        widget=forms.RadioSelect,
    )
    listed_agents = forms.CharField(
        label=gettext_lazy("Allowed agents"),
        required=False,
        max_length=LONGEST_TEXT,
        widget=forms.Textarea(attrs={"rows": 8, "cols": 60, "spellcheck": "false"}),
        help_text=gettext_lazy(
            "One registered agent name per line. If the list is empty, nothing can run in this pool."
        ),
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        listed = self.instance.allowlist if self.instance.pk else None
        self.initial.setdefault("allows", EVERY if listed is None else LISTED)
        self.initial.setdefault("listed_agents", "\n".join(map(str, listed or ())))

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        names = names_of(self.cleaned_data.get("listed_agents", ""))
        if "allows" not in self.data or "listed_agents" in self.errors:
            return cleaned  # a form without it says nothing of it
        if self.cleaned_data.get("allows") == LISTED:
            self.instance.allowed_agents = names
        elif names:
            self.add_error(
                "listed_agents",
                gettext(
                    "This list has no effect while all agents are allowed. Choose the other option above, "
                    "or clear the list."
                ),
            )
        else:
            self.instance.allowed_agents = None
        return cleaned

    def _post_clean(self) -> None:
        """Shows what is wrong with the list where it was typed."""
        super()._post_clean()  # type: ignore[misc]  # the stubs leave it out
        try:
            self.instance.clean_fields(exclude={"id", "name", "description"})
        except forms.ValidationError as error:
            for problem in error.message_dict.get("allowed_agents", []):
                self.add_error("listed_agents", problem)


class OfferedAgentInline(admin.TabularInline):
    model = OfferedAgent
    extra = 0
    max_num = 0
    can_delete = False
    fields = ("name", "kind_label", "version", "summary", "seen_at")
    readonly_fields = fields

    @admin.display(description=_("kind"))
    def kind_label(self, offered: OfferedAgent) -> str:
        return str(dict(SettingKind.choices).get(offered.kind, offered.kind))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Server)
class ServerAdmin(RecordedAdmin, admin.ModelAdmin):
    """A server made here has no token yet: `./ma manage create_server NAME` prints one."""

    list_display = ("name", "state_now", "last_seen_at", "kma_version", "clock_skew_seconds", "spool_rows")
    search_fields = ("name",)
    list_per_page = 50
    facts = (
        "state_now",
        "last_seen_at",
        "kma_version",
        "boot",
        "clock_skew_seconds",
        "spool_rows",
        "spool_bytes",
        "spool_limit_bytes",
        "spool_full",
        "reported",
        "created_at",
    )
    readonly_fields = facts
    fieldsets = (
        (
            None,
            {
                "fields": ("name",),
                "description": _("To get a token for the server, run: ./ma manage create_server NAME"),
            },
        ),
        (_("Last KMA report"), {"fields": facts}),
    )
    inlines = (OfferedAgentInline,)

    @admin.display(description=_("problems"))
    def reported(self, server: Server) -> str:
        return "; ".join(map(str, server.problems)) or "—"

    def get_fieldsets(self, request: HttpRequest, obj: Server | None = None) -> Any:
        """Of a new one nothing has been reported."""
        return self.fieldsets if obj else self.fieldsets[:1]

    def get_inlines(self, request: HttpRequest, obj: Server | None) -> Any:
        return self.inlines if obj else ()

    def get_actions(self, request: HttpRequest) -> Any:
        """One at a time, after a look at what goes with it."""
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        """Asked and done as on its own page."""
        server = self.get_object(request, object_id)
        if server is None or not self.has_delete_permission(request, server):
            return super().delete_view(request, object_id, extra_context)
        return HttpResponseRedirect(link("server_remove", server.name))

    @admin.display(description=_("state"))
    def state_now(self, server: Server) -> str:
        return str(server.state(timezone.now()).label)

    def get_readonly_fields(self, request: HttpRequest, obj: Server | None = None) -> tuple[str, ...]:
        return ("name", *self.facts) if obj else self.facts


@admin.register(ServerToken)
class ServerTokenAdmin(TokenAdmin):
    revoking = RevokeServerToken
    list_display = ("server", "created_at", "last_used_at", "revoked_at", "to_revoke")
    list_select_related = ("server",)


@admin.register(Pool)
class PoolAdmin(RecordedAdmin, admin.ModelAdmin):
    """Which agents its settings may run is for those who may change pools, not for those who edit its
    settings."""

    form = PoolForm
    list_display = ("name", "description", "agents_allowed")
    search_fields = ("name",)
    filter_horizontal = ("servers",)
    list_per_page = 50

    @admin.display(description=_("allowed agents"))
    def agents_allowed(self, pool: Pool) -> str:
        """Renders the list for those who may only view."""
        if pool.allowlist is None:
            return gettext("all agents available on the servers in the pool")
        return join_names(pool.allowlist) or gettext("no agent")

    def get_fieldsets(self, request: HttpRequest, obj: Pool | None = None) -> Any:
        """Who may only look sees the list itself instead of the two fields that make it."""
        may = self.has_change_permission(request, obj) if obj else self.has_add_permission(request)
        agents = ("allows", "listed_agents") if may else ("agents_allowed",)
        text = _(
            "A setting with any other agent cannot be saved or enabled. If it is already enabled, "
            "servers no longer receive it. Messages in progress are completed or returned to the "
            "queue; the others wait."
        )
        return (
            (None, {"fields": ("name", "description", "servers")}),
            (_("Agents"), {"fields": agents, "description": text}),
        )

    def get_readonly_fields(self, request: HttpRequest, obj: Pool | None = None) -> tuple[str, ...]:
        return ("name", "agents_allowed") if obj else ("agents_allowed",)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any
    ) -> Any:
        """Renders what the stored list means, so that it is there without a script as well."""
        original: Pool | None = context.get("original")
        stored = (
            Pool.objects.filter(pk=original.pk).first()
            if original and request.user.has_perms(VIEW_LIST)
            else None
        )
        shown = {"pool": stored, "list": meaning_of(stored, stored.allowlist) if stored else None}
        return super().render_change_form(request, {**context, **shown}, *args, **options)

    def save_model(self, request: HttpRequest, obj: Pool, form: Any, change: bool) -> None:
        """Saves in the transaction of the admin's view."""
        affected = save_pool(obj, request.user, timezone.now())
        form.saving.counts = affected.counts
        if affected.enabled:
            messages.warning(request, withheld_text(affected.enabled))

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        poll_after_commit(form.instance.servers.values_list("name", flat=True))


def _time_zones() -> list[tuple[str, str]]:
    return [(name, name) for name in time_zones()]


class MaintenanceForm(forms.ModelForm):
    time_zone = forms.ChoiceField(label=gettext_lazy("Time zone"), choices=_time_zones, initial="UTC")

    class Meta:
        widgets = {"crontab": AdminTextInputWidget()}


@admin.register(MaintenanceWindow)
class MaintenanceWindowAdmin(RecordedAdmin, admin.ModelAdmin):
    """They are listed on the page of freezes, where each shows when it opens next."""

    form = MaintenanceForm
    list_display = ("__str__", "pool", "reason")
    list_select_related = ("pool",)
    list_per_page = 50
    fields = ("pool", "crontab", "time_zone", "minutes", "reason")

    def response_post_save_add(self, request: HttpRequest, obj: Any) -> HttpResponseRedirect:
        return HttpResponseRedirect(link("freezes"))

    def response_post_save_change(self, request: HttpRequest, obj: Any) -> HttpResponseRedirect:
        return HttpResponseRedirect(link("freezes"))

    def response_delete(self, request: HttpRequest, obj_display: str, obj_id: Any) -> HttpResponseRedirect:
        return HttpResponseRedirect(link("freezes"))
