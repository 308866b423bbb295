"""Servers and pools."""

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agents.models import OfferedAgent, Pool, Run, Server
from agents.pages.consoles import link
from agents.services.looking import look_after_commit
from agents.services.removal import RemovalRefused, removal_refusal, remove_server


class OfferedAgentInline(admin.TabularInline):
    model = OfferedAgent
    extra = 0
    max_num = 0
    can_delete = False
    fields = ("name", "kind", "version", "summary", "seen_at")
    readonly_fields = fields

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Server)
class ServerAdmin(admin.ModelAdmin):
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
        "problems",
        "created_at",
    )
    readonly_fields = facts
    fieldsets = (
        (None, {"fields": ("name",), "description": _("Its token comes from: ./ma manage create_server NAME")}),
        (_("What its KMA said last"), {"fields": facts}),
    )
    inlines = (OfferedAgentInline,)

    def get_actions(self, request: HttpRequest) -> Any:
        """One at a time, after a look at what goes with it."""
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        server = self.get_object(request, object_id)
        if server and self.has_delete_permission(request, server):
            try:
                if refused := removal_refusal(server, timezone.now()):
                    raise RemovalRefused(refused)
                return super().delete_view(request, object_id, extra_context)
            except RemovalRefused as error:
                messages.error(request, str(error))
                return HttpResponseRedirect(link("agents_server_change", server.pk))
        return super().delete_view(request, object_id, extra_context)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Who may delete a server may delete what is nothing without it: its tokens, offers and closed runs."""
        shown, counts, _missing, _protected = super().get_deleted_objects(objs, request)
        runs = Run.objects.filter(server__in=objs).count()
        return shown, counts | ({Run._meta.verbose_name_plural: runs} if runs else {}), set(), []

    def delete_model(self, request: HttpRequest, obj: Server) -> None:
        remove_server(obj, timezone.now())

    @admin.display(description=_("state"))
    def state_now(self, server: Server) -> str:
        return str(server.state(timezone.now()).label)

    def get_readonly_fields(self, request: HttpRequest, obj: Server | None = None) -> tuple[str, ...]:
        return ("name", *self.facts) if obj else self.facts


@admin.register(Pool)
class PoolAdmin(admin.ModelAdmin):
    list_display = ("name", "description")
    search_fields = ("name",)
    filter_horizontal = ("servers",)
    list_per_page = 50

    def get_readonly_fields(self, request: HttpRequest, obj: Pool | None = None) -> tuple[str, ...]:
        return ("name",) if obj else ()

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        look_after_commit(form.instance.servers.values_list("name", flat=True))
