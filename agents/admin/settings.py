"""The form of a launch setting. Switching it on and off is a service, never a field."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.widgets import AdminTextInputWidget
from django.http import HttpRequest, HttpResponseRedirect
from django.utils.translation import gettext_lazy as _

from agents.admin.schedule_form import FIELDS as SCHEDULE_FIELDS
from agents.admin.schedule_form import ScheduleForm
from agents.models import Destination, LaunchSetting, Pool
from agents.models.parameters import JsonFormField
from agents.pages.previews import offers
from agents.pools.rights import destinations_for, may, may_anywhere, pools_for
from agents.provisioning.topology import save_setting
from agents.settings.enable import check_discarding, check_unmasking
from console.audit.forms import RecordedAdmin
from console.ui.page import link

FACTS = (
    "enabled",
    "state_since",
    "disabled_reason",
    "disabled_by",
    "disabled_ticket",
    "disabled_until",
    "provision_state",
    "provision_problem",
    "provisioned_at",
    "created_at",
)


class SettingForm(ScheduleForm):
    # Who fills it in: set by `get_form`, which makes a class for each request.
    person: Any = None

    def clean_masked_properties(self) -> Any:
        check_unmasking(self.person, self.instance, self.cleaned_data["masked_properties"])
        return self.cleaned_data["masked_properties"]

    def clean_after_last(self) -> Any:
        check_discarding(self.person, self.instance, self.cleaned_data["after_last"])
        return self.cleaned_data["after_last"]

    class Meta:
        # Of `parameters` the field says it itself.
        field_classes = {"masked_properties": JsonFormField}
        widgets = {"agent": AdminTextInputWidget(attrs={"list": "offered-agents", "autocomplete": "off"})}
        help_texts = {
            "key": _("Also the name of its subscription on the broker. It can never be changed."),
            "agent": _("The name under which servers offer it; those offered now are suggested."),
            "kind": _(
                "A message agent handles messages of its destination; a standalone one runs once per start."
            ),
            "timing": _(
                "As soon as possible: from enabling to disabling. By schedule: each start drains what has "
                "gathered "
                "and ends."
            ),
            "spread": _(
                "Of all live servers of the pool one (another takes over when it is lost), or every one."
            ),
            "pool": _("A pool without servers is allowed: then nothing can run."),
            "destination": _("Of a message agent only. It cannot be changed once messages gather."),
            "concurrency": _(
                "So many messages at once on each server; their order is lost with more than one."
            ),
            "drain_idle_seconds": _(
                "It ends when what was there at the start is gone for so long. With a limit below it also "
                "takes what "
                "comes later, until its subscription was empty for so long."
            ),
            "drain_wait_seconds": _(
                "Messages that are delayed for their redelivery are waited for; after that it ends with an "
                "error."
            ),
            "drain_limit_messages": _("The rest waits for the next start."),
            "drain_limit_minutes": _("The rest waits for the next start."),
            "restart_seconds": _(
                "Only as soon as possible: by schedule one that failed waits for the next start."
            ),
            "grace_seconds": _(
                "When it is stopped, a handler may finish for so long; then its process is killed."
            ),
            "mode": _(
                "Transacted: what the agent sends and the message commit or roll back together; a handling "
                "that sends "
                "costs a transaction. Automatic: the same without the limit on the transaction. Duplicates "
                "allowed: "
                "acknowledged in batches, the fewest writes; a crash repeats about one batch. Answered: "
                "the agent, "
                "or anybody later, commits or rolls back each message; until then a crash brings it again."
            ),
            "dups_ok_messages": _(
                "A crash of the server repeats about so many messages that were handled well."
            ),
            "acknowledgement_timeout_seconds": _(
                "Begins when the agent returned unanswered; then it is rolled back."
            ),
            "acknowledgement_property": _(
                "A message may bring a timeout of its own in it, a whole number of seconds."
            ),
            "committed_destination": _(
                "Each commit sends a small JSON event there, in the same transaction."
            ),
            "rolled_back_destination": _("Each rollback, or answer that did not come, sends one there."),
            "dups_ok_seconds": _("So long a quiet subscription shows messages that are handled already."),
            "handling_timeout_seconds": _("Longer handling is killed and counts as a failure."),
            "breaker_m": _(
                "M failures of any type in a row trip it, or M / 3 of one type; N is derived and no field."
            ),
            "count_once": _(
                "Repeated failures of one message count as one: a single bad message never trips it."
            ),
            "try_one_first": _(
                "One message on one server: handled well, all go on at full speed; failed, it is off again "
                "at once."
            ),
            "ordered": _(
                "One message at a time over all servers. One that failed is tried again before anything "
                "else; count "
                "each message once, else a bad one soon trips the breaker."
            ),
            "blocked_seconds": _("So long after a failure of the first message; 0 = at once."),
            "after_last": _(
                "What becomes of a message whose last attempt failed, or that is invalid. Exception "
                "destination: a "
                "marked copy goes there, and to the dead-letter queue what it cannot take. Discard: gone, "
                "only its "
                "protocol and a line in the log remain. Stay: it is tried again without end, and all others "
                "wait."
            ),
            "exception_destination": _("An address of the broker that somebody takes these messages from."),
            "duplicate_key": _(
                "Empty: every message is handled. “key” (the message key), “property:NAME” or “pointer:/a/b” "
                "into a "
                "JSON body: what a server has handled well it accepts from then on without the agent. Each "
                "server "
                "knows its own."
            ),
            "duplicate_window_seconds": _("A repeat that comes later is handled."),
            "masked_properties": _("Values of these message properties are never stored with a failure."),
            "retention_days": _(
                "After an activation that finished well all its protocols are deleted; after one with an "
                "error those "
                "that are older than so many days before its start."
            ),
        }


@admin.register(LaunchSetting)
class LaunchSettingAdmin(RecordedAdmin, admin.ModelAdmin):
    form = SettingForm
    list_display = ("key", "enabled", "agent", "timing", "spread", "pool", "provision_state", "state_since")
    list_select_related = ("pool",)
    list_filter = ("enabled", "provision_state", "timing", "kind", "spread", "pool", "destination")
    search_fields = ("key", "agent", "description")
    list_per_page = 50
    readonly_fields = FACTS
    fieldsets = (
        (
            _("What"),
            {
                "fields": ("key", "kind", "agent", "parameters", "description"),
                "description": _("Once saved it gathers messages, also while it is disabled."),
            },
        ),
        (_("When"), {"fields": ("timing", *SCHEDULE_FIELDS)}),
        (_("Where"), {"fields": ("spread", "pool", "destination")}),
        (
            _("When a start by schedule ends"),
            {
                "fields": (
                    "drain_idle_seconds",
                    "drain_wait_seconds",
                    "drain_limit_messages",
                    "drain_limit_minutes",
                ),
                "description": _("For message agents that are started by schedule."),
            },
        ),
        (
            _("Limits"),
            {
                "fields": (
                    "mode",
                    "concurrency",
                    "handling_timeout_seconds",
                    "transaction_timeout_seconds",
                    "dups_ok_messages",
                    "dups_ok_seconds",
                    "acknowledgement_timeout_seconds",
                    "acknowledgement_property",
                    "committed_destination",
                    "rolled_back_destination",
                    "grace_seconds",
                    "isolate",
                    "child_memory_mb",
                )
            },
        ),
        (
            _("After failure"),
            {
                "fields": (
                    "breaker_m",
                    "count_once",
                    "try_one_first",
                    "restart_seconds",
                    "ordered",
                    "blocked_seconds",
                    "after_last",
                    "exception_destination",
                    "duplicate_key",
                    "duplicate_window_seconds",
                    "masked_properties",
                    "retention_days",
                )
            },
        ),
        (_("State"), {"fields": FACTS}),
    )

    class Media:
        js = ("ma/setting-form.js",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return may_anywhere(request.user, "add")

    def has_change_permission(self, request: HttpRequest, obj: LaunchSetting | None = None) -> bool:
        return may_anywhere(request.user, "edit") if obj is None else may(request.user, "edit", obj)

    def get_actions(self, request: HttpRequest) -> Any:
        """One at a time, after a look at what goes with it."""
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any) -> Any:
        """Offers pools where this person may make settings and destinations that they may read; both may
        always stay as they are."""
        form: Any = super().get_form(request, obj, change, **options)
        form.person = request.user
        if "pool" in form.base_fields:
            mine = pools_for(request.user, "add")
            field: Any = form.base_fields["pool"]
            field.queryset = (mine | Pool.objects.filter(pk=obj.pool_id)).distinct() if obj else mine
        if "destination" in form.base_fields:
            readable = destinations_for(request.user, "edit" if obj else "add")
            stays = Destination.objects.filter(pk=obj.destination_id) if obj else Destination.objects.none()
            chosen: Any = form.base_fields["destination"]
            chosen.queryset = (readable | stays).distinct()
        return form

    def get_readonly_fields(self, request: HttpRequest, obj: LaunchSetting | None = None) -> tuple[str, ...]:
        if obj is None:
            return FACTS
        fixed = ("key", "kind", "destination") if obj.provisioned_hash else ("key", "kind")
        return (*fixed, *FACTS)

    def get_fieldsets(self, request: HttpRequest, obj: LaunchSetting | None = None) -> Any:
        """One that is not saved has no state yet; the fields of the schedule are no machine facts to look
        at."""
        shown: Any = self.fieldsets if obj else self.fieldsets[:-1]
        if obj and not self.has_change_permission(request, obj):
            shown = tuple(
                (
                    title,
                    {**rest, "fields": tuple(name for name in rest["fields"] if name not in SCHEDULE_FIELDS)},
                )
                for title, rest in shown
            )
        return shown

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any
    ) -> Any:
        return super().render_change_form(request, {**context, "offers": offers()}, *args, **options)

    def response_post_save_add(self, request: HttpRequest, obj: LaunchSetting) -> HttpResponseRedirect:
        """Leads to its page: there it is enabled."""
        return HttpResponseRedirect(link("setting", obj.key))

    def response_post_save_change(self, request: HttpRequest, obj: LaunchSetting) -> HttpResponseRedirect:
        return HttpResponseRedirect(link("setting", obj.key))

    def save_model(self, request: HttpRequest, obj: LaunchSetting, form: Any, change: bool) -> None:
        """Both in the transaction of the admin's view."""
        save_setting(obj, by=request.user)
        form.save_schedule(request.user)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        """Asked and done as on its own page."""
        setting = self.get_object(request, object_id)
        if setting is None or not self.has_delete_permission(request, setting):
            return super().delete_view(request, object_id, extra_context)
        return HttpResponseRedirect(link("setting_remove", setting.key))
