"""The form of a launch setting. Switching it on and off is a service, never a field."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.widgets import AdminTextInputWidget
from django.core.exceptions import PermissionDenied
from django.forms import model_to_dict
from django.http import HttpRequest, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext_lazy as _

from agents.admin.schedule_form import FIELDS as SCHEDULE_FIELDS
from agents.admin.schedule_form import ScheduleForm, in_words
from agents.models import Destination, LaunchSetting, Pool, Schedule
from agents.models.labels import LabelsField
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


# Fieldsets of this class are folded together in templates/admin/agents/launchsetting/change_form.html.
ADVANCED = "advanced"


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
        field_classes = {"masked_properties": JsonFormField, "labels": LabelsField}
        widgets = {
            "agent": AdminTextInputWidget(attrs={"list": "offered-agents", "autocomplete": "off"}),
            "labels": AdminTextInputWidget(),
        }
        help_texts = {
            "key": _("Also used as the subscription name on the broker. Cannot be changed later."),
            "agent": _("The name of the agent on the servers. Available agents are suggested."),
            "kind": _(
                "A message agent processes the messages of its destination. A standalone agent runs "
                "once per activation."
            ),
            "timing": _(
                "Continuous: runs until it is disabled. Scheduled: each run processes the waiting "
                "messages and ends."
            ),
            "spread": _(
                "The setting runs on one server in the pool, with failover, or on all servers. Only "
                "online servers are used."
            ),
            "labels": _("For example: team=billing, critical. Separate labels with commas."),
            "pool": _("A pool without servers is allowed, but nothing can run in it."),
            "destination": _(
                "Only for message agents. Cannot be changed after the subscription has received messages."
            ),
            "concurrency": _("If the value is greater than 1, messages may be processed out of order."),
            "drain_idle_seconds": _(
                "The run processes the messages that are waiting when it starts. After the last of "
                "them leaves the queue, the run waits this long and ends. If a limit is set below, "
                "the run also processes messages that arrive later. In this case, it ends when the "
                "subscription has been empty for this long."
            ),
            "drain_wait_seconds": _(
                "The activation waits at most this long for messages delayed for redelivery. If they "
                "do not arrive in time, it ends with an error."
            ),
            "drain_limit_messages": _("The remaining messages wait for the next run."),
            "drain_limit_minutes": _("The remaining messages wait for the next run."),
            "restart_seconds": _("Only for continuous settings. A scheduled setting waits for its next run."),
            "grace_seconds": _(
                "When the setting is stopped, messages in progress have this long to finish. Then the "
                "process is killed."
            ),
            "mode": _(
                "Transacted: the message and everything that the agent sends are committed or rolled "
                "back together. If the agent sends nothing, no transaction is used. Auto acknowledge: "
                "works the same way, but without the transaction timeout. Dups-OK: messages are "
                "acknowledged in batches, with the fewest disk writes. After a crash, about one batch "
                "is redelivered. Client acknowledge: the agent or another client commits or rolls "
                "back each message. If the server crashes before that, the message is redelivered."
            ),
            "dups_ok_messages": _(
                "After a server crash, about this many processed messages are redelivered."
            ),
            "acknowledgement_timeout_seconds": _(
                "The timeout starts when the agent returns without acknowledging. When it expires, "
                "the message is rolled back."
            ),
            "acknowledgement_property": _(
                "A message can set its own timeout in this property: a whole number of seconds."
            ),
            "committed_destination": _(
                "Each commit sends a short JSON event to this destination in the same transaction."
            ),
            "rolled_back_destination": _(
                "Each rollback and each acknowledgement timeout sends a short JSON event to this destination."
            ),
            "dups_ok_seconds": _(
                "If no new messages arrive, processed messages stay visible in the subscription for "
                "at most this long."
            ),
            "handling_timeout_seconds": _(
                "Processing that takes longer is terminated and counts as a failure."
            ),
            "breaker_m": _(
                "The breaker trips after M consecutive failures of any type, or after M / 3 of the same type."
            ),
            "count_once": _(
                "Repeated failures of one message count as one failure. A single bad message never "
                "trips the breaker."
            ),
            "try_one_first": _(
                "One server processes one trial message. If processing succeeds, all servers start at "
                "full speed. If it fails, the setting is disabled again."
            ),
            "ordered": _(
                "One message at a time across all servers. A failed message is retried before any "
                "other. Turn on “count each message once”; otherwise one bad message soon trips the "
                "breaker."
            ),
            "blocked_seconds": _("Delay before a failed message is retried; 0 = no delay."),
            "after_last": _(
                "Applies to a message that is invalid or has failed on every attempt. Exception "
                "destination: a marked copy is sent there. If the copy cannot be delivered, the "
                "message goes to the dead-letter queue. Discard: the message is deleted. Only its "
                "protocol and a log entry remain. Keep first: the message is retried without limit, "
                "and all other messages wait."
            ),
            "exception_destination": _("Enter a destination that has a consumer for these messages."),
            "duplicate_key": _(
                "If empty, every message is processed. Use “key” (the message key), “property:NAME” "
                "or “pointer:/a/b” (in a JSON body). If a server has already processed a message, it "
                "acknowledges a repeat without calling the agent. Each server remembers only the "
                "messages that it processed."
            ),
            "duplicate_window_seconds": _("A repeat that arrives after this period is processed again."),
            "goal_seconds": _(
                "Time from sending a message to the end of its processing. An alert opens when too "
                "many messages take longer."
            ),
            "goal_percent": _(
                "The share of messages over 30 days that must be processed within the goal time."
            ),
            "masked_properties": _(
                "The values of these message properties are never stored in failure protocols."
            ),
            "retention_days": _(
                "After a successful activation, its protocols and those of earlier activations are "
                "deleted. After a failed activation, only protocols that were already older than this "
                "number of days when it started are deleted."
            ),
        }


def _says_more(form: Any, name: str) -> bool:
    """Returns whether a setting that is saved, or copied, has another value there than a new one."""
    field: Any = LaunchSetting._meta.get_field(name)
    value = form.initial.get(name, getattr(form.instance, field.attname))
    return bool(value != field.get_default() and (value or field.get_default()))


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
            {"fields": ("key", "kind", "agent", "parameters", "labels", "description")},
        ),
        (_("When"), {"fields": ("timing", *SCHEDULE_FIELDS)}),
        (_("Where"), {"fields": ("spread", "pool", "destination")}),
        (
            _("End of a scheduled run"),
            {
                "classes": (ADVANCED,),
                "fields": (
                    "drain_idle_seconds",
                    "drain_wait_seconds",
                    "drain_limit_messages",
                    "drain_limit_minutes",
                ),
                "description": _("For message agents that run on a schedule."),
            },
        ),
        (
            _("Limits"),
            {
                "classes": (ADVANCED,),
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
                    "goal_seconds",
                    "goal_percent",
                ),
            },
        ),
        (
            _("After a failure"),
            {
                "classes": (ADVANCED,),
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
                ),
            },
        ),
        (_("State"), {"classes": (ADVANCED,), "fields": FACTS}),
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
        """*Advanced* is open where a field in it has a problem or says more than a new setting does."""
        form = context["adminform"].form
        changed = [name for name in self._advanced() if name in form.errors or _says_more(form, name)]
        more = {"offers": offers(), "advanced_open": bool(changed), "copied": request.GET.get("copy", "")}
        return super().render_change_form(request, {**context, **more}, *args, **options)

    def _advanced(self) -> list[str]:
        folded = [rest["fields"] for _title, rest in self.fieldsets if ADVANCED in rest.get("classes", ())]
        return [str(name) for names in folded for name in names if name not in FACTS]

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """`?copy=KEY`: the values of another setting, which this person may see, with its schedule."""
        if "copy" not in request.GET:
            return super().get_changeform_initial_data(request)
        source = get_object_or_404(LaunchSetting, key=request.GET["copy"])
        if not self.has_view_permission(request, source):
            raise PermissionDenied
        values = model_to_dict(source, exclude=("id", "key"))
        schedule = in_words(Schedule.objects.filter(setting=source).first())
        return values | {f"schedule_{name}": value for name, value in schedule.items()}

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
