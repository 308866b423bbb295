"""Describes what people do with a setting: enable or disable it, run it now, stop its activation, have a
message tried again."""

from datetime import datetime
from functools import partial
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.activations.operations import run_now, start_refusal, stop_activation, stop_refusal
from agents.activations.switch import enable_refusal
from agents.breaker.interruption import resume_on_server
from agents.groups.group import group_of
from agents.models import Activation, LaunchSetting, Server, Spread, Timing
from agents.models.activation import OPEN_ACTIVATIONS
from agents.models.labels import LONGEST_TEXT, label_words, relabelled
from agents.pools.rights import SettingRight
from agents.provisioning.queue_counts import figures_of
from agents.settings import enable, server_stops
from agents.settings.enable import disable_setting, enable_setting, in_group
from agents.settings.removal import removal_refusal, remove_setting
from agents.settings.text import what_starts, what_starts_there, what_stops, what_stops_there
from agents.state_history import why_of
from console.operations.inputs import REASON, Flag, RowInput, TextInput, Until
from console.operations.operation import UNCHANGED, Act, Done, Operation, Question, Resource
from console.operations.refusals import Refused, WronglyAsked

SETTINGS = Resource(
    name="setting",
    rows=lambda: LaunchSetting.objects.select_related("pool", "destination", "disabled_by"),
    key="key",
    route="settings/<slug:key>/",
    view="agents.view_launchsetting",
    list_page="settings",
    title=_("Settings"),
    setting_key=lambda setting: setting.key,
)


class EnableSetting(Operation[LaunchSetting]):
    """Starts an activation and returns it; returns the open one if the setting is enabled already. 204
    without an activation: a scheduled setting starts later. 409 with the reason if refused."""

    code, label, icon = "setting.enable", _("Enable"), "play"
    on, permission = SETTINGS, SettingRight("enable")
    inputs = {
        "try_one_first": Flag(
            _("Try one message first"),
            _(
                "If this message is processed successfully, all instances start. If it fails, the "
                "setting is disabled again."
            ),
        )
    }
    template = "agents/question.html"

    def offered(self, setting: LaunchSetting) -> bool:
        return not setting.enabled

    def refusal(self, setting: LaunchSetting, now: datetime) -> Refused | None:
        if setting.enabled:
            return None
        group = group_of(setting)
        return in_group(group) if group else enable_refusal(setting, now)

    def hidden(self, setting: LaunchSetting) -> frozenset[str]:
        asks = setting.takes_messages and not setting.enabled
        return frozenset() if asks else frozenset(self.inputs)

    def question(self, setting: LaunchSetting, by: Any, **named: Any) -> Question:
        trips = setting.trips.select_related("group").prefetch_related("interruptions__server")
        trip = trips.filter(ended_at=None).first()
        shown = {} if setting.enabled else {"off": setting, "trip": trip}
        return Question(
            gettext("Enable %(key)s?") % {"key": setting.key},
            [what_starts(setting), _("The breaker counters start at 0.")],
            {**shown, **_figures(setting)},
            initial={"try_one_first": setting.try_one_first or trip is not None},
        )

    def run(self, setting: LaunchSetting, act: Act, *, try_one_first: bool | None, **inputs: Any) -> Done:
        activation = enable_setting(setting, act.by, act.now, try_one_first=try_one_first, record=act.record)
        text = gettext("Enabled: %(key)s") if act.is_recorded else gettext("Already enabled: %(key)s")
        return Done(text % {"key": setting.key}, activation)


class DisableSetting(Operation[LaunchSetting]):
    """Stops the setting on every server, together with its group; its subscription keeps receiving messages.
    No effect if it is disabled already."""

    code, label, icon, tone = "setting.disable", _("Disable"), "off", "danger"
    on, permission = SETTINGS, SettingRight("disable")
    inputs = {"reason": REASON, "until": Until(), "ticket": TextInput(_("Ticket"), 200)}
    template = "agents/question.html"

    def offered(self, setting: LaunchSetting) -> bool:
        return setting.enabled

    def hidden(self, setting: LaunchSetting) -> frozenset[str]:
        """A member is off with its group, which has no end."""
        return frozenset(("until", "ticket")) if group_of(setting) else frozenset()

    def question(self, setting: LaunchSetting, by: Any, **named: Any) -> Question:
        texts = [what_stops(setting)]
        if group := group_of(setting):
            text = gettext(
                "The setting belongs to the group %(name)s, so disabling it also disables the whole group."
            )
            texts.append(text % {"name": group.name})
        return Question(gettext("Disable %(key)s?") % {"key": setting.key}, texts, _figures(setting))

    def run(
        self, setting: LaunchSetting, act: Act, *, ticket: str, until: datetime | None, **inputs: Any
    ) -> Done:
        group = group_of(setting)
        record = partial(act.record, group=group.name) if group else act.record
        was_on = disable_setting(
            setting, act.by, why_of(act.by, act.reason), act.now, ticket=ticket, until=until, record=record
        )
        names = {"key": setting.key, "group": group.name if group else ""}
        if not was_on:
            return Done(gettext("Already disabled: %(key)s") % names)
        with_group = gettext("Disabled: %(key)s and its group %(group)s")
        return Done((with_group if group else gettext("Disabled: %(key)s")) % names)


class RunSetting(Operation[LaunchSetting]):
    """Starts a scheduled setting now, or a standalone agent that has ended. 409 if refused."""

    code, label = "setting.run", _("Run now")
    on, permission = SETTINGS, SettingRight("run")
    template = "agents/question.html"

    def offered(self, setting: LaunchSetting) -> bool:
        return _starts_and_ends(setting) and open_activation_of(setting) is None

    def refusal(self, setting: LaunchSetting, now: datetime) -> Refused | None:
        return start_refusal(setting, now)

    def question(self, setting: LaunchSetting, by: Any, **named: Any) -> Question:
        once = _("The agent runs once, and the activation ends with it.")
        handles = _("The activation processes the messages waiting in the subscription, then ends.")
        texts = [handles if setting.takes_messages else once]
        return Question(gettext("Run %(key)s now?") % {"key": setting.key}, texts, _figures(setting))

    def run(self, setting: LaunchSetting, act: Act, **inputs: Any) -> Done:
        activation = run_now(setting, act.by, act.now, record=act.record)
        return Done(gettext("Started: %(key)s") % {"key": setting.key}, activation)


class StopSetting(Operation[LaunchSetting]):
    """Stops the current activation; the setting stays enabled. 409 if nothing is running, or if only
    disabling stops it."""

    code, label, icon, tone, quiet = "setting.stop", _("Stop"), "pause", "danger", True
    on, permission, inputs = SETTINGS, SettingRight("stop"), {"reason": REASON}

    def offered(self, setting: LaunchSetting) -> bool:
        return _starts_and_ends(setting) and open_activation_of(setting) is not None

    def refusal(self, setting: LaunchSetting, now: datetime) -> Refused | None:
        activation = open_activation_of(setting)
        return stop_refusal(activation) if activation else _nothing_runs()

    def question(self, setting: LaunchSetting, by: Any, **named: Any) -> Question:
        text = _("Work in progress can still finish within the grace period. The setting stays enabled.")
        return Question(gettext("Stop the activation of %(key)s?") % {"key": setting.key}, [text])

    def run(self, setting: LaunchSetting, act: Act, **inputs: Any) -> Done:
        activation = open_activation_of(setting)
        if activation is None:
            raise _nothing_runs()
        stopped = stop_activation(activation, act.by, why_of(act.by, act.reason), act.now, record=act.record)
        activation.refresh_from_db()
        text = gettext("Stopping: %(key)s") if stopped else gettext("Already ended: %(key)s")
        return Done(text % {"key": setting.key}, activation)


class RetryMessage(Operation[LaunchSetting]):
    """Retries the blocking message of an ordered subscription at once. 409 if refused."""

    code, label, quiet = "setting.retry", _("Retry now"), True
    on, permission = SETTINGS, SettingRight("run")

    def offered(self, setting: LaunchSetting) -> bool:
        return setting.enabled and setting.ordered

    def refusal(self, setting: LaunchSetting, now: datetime) -> Refused | None:
        return enable.retry_refusal(setting)

    def question(self, setting: LaunchSetting, by: Any, **named: Any) -> Question:
        text = _(
            "If a failed message blocks the subscription, its next attempt starts at once. "
            "Otherwise nothing happens."
        )
        title = gettext("Retry the message that blocks %(key)s?") % {"key": setting.key}
        return Question(title, [text])

    @transaction.atomic
    def run(self, setting: LaunchSetting, act: Act, **inputs: Any) -> Done:
        enable.retry_now(setting, act.by, act.now)
        act.record()
        return Done(gettext("Retry requested: %(key)s") % {"key": setting.key})


class ResumeRun(Operation[LaunchSetting]):
    """Starts a new run on the one server where it was interrupted; its counts restart at 0. 409 if
    refused."""

    code, label, place = "setting.resume", _("Resume on this server"), "<str:server>/"
    on, permission = SETTINGS, SettingRight("enable")
    inputs = {"server": RowInput(Server.objects.all, "name")}

    def question(self, setting: LaunchSetting, by: Any, *, server: Server, **named: Any) -> Question:
        begins = _(
            "A new instance starts on this server only. Its failure counters start at 0. Earlier "
            "failures are kept."
        )
        again = _(
            "If the setting is interrupted on this server again while it is also interrupted on "
            "another server, it is disabled everywhere."
        )
        title = gettext("Resume %(key)s on %(server)s?") % {"key": setting.key, "server": server.name}
        return Question(title, [begins, again] if setting.spread == Spread.MANY else [begins])

    @transaction.atomic
    def run(self, setting: LaunchSetting, act: Act, *, server: Server, **inputs: Any) -> Done:
        run = resume_on_server(setting, server, act.by, act.now)
        act.record()
        return Done(
            gettext("Resumed on %(server)s: %(key)s") % {"key": setting.key, "server": server.name}, run
        )


class StopOnServer(Operation[LaunchSetting]):
    """Stops the setting on one server until it is started there again; other servers continue. 409 if no
    other server of its pool can run it: disable the setting instead. No effect if it is stopped already."""

    code, label, icon, tone, quiet = "setting.stop_on", _("Stop on this server"), "pause", "danger", True
    on, permission, place = SETTINGS, SettingRight("stop"), "<str:server>/"
    inputs = {"server": RowInput(Server.objects.all, "name"), "reason": REASON}

    def question(self, setting: LaunchSetting, by: Any, *, server: Server, **named: Any) -> Question:
        title = gettext("Stop %(key)s on %(server)s?") % {"key": setting.key, "server": server.name}
        texts = what_stops_there(server_stops.other_servers(setting, server))
        return Question(title, texts, refusal=server_stops.refusal_there(setting, server))

    def run(self, setting: LaunchSetting, act: Act, *, server: Server, **inputs: Any) -> Done:
        stopped = server_stops.stop_on_server(setting, server, act)
        text = gettext("Stopping on %(server)s: %(key)s")
        already = gettext("Already stopped on %(server)s: %(key)s")
        return Done((text if stopped else already) % {"key": setting.key, "server": server.name})


class StartOnServer(Operation[LaunchSetting]):
    """Ends a stop on one server: an enabled setting can start there at once. No effect if it is not
    stopped."""

    code, label, icon = "setting.start_on", _("Start on this server"), "play"
    on, permission, place = SETTINGS, SettingRight("stop"), "<str:server>/"
    inputs = {"server": RowInput(Server.objects.all, "name")}

    def question(self, setting: LaunchSetting, by: Any, *, server: Server, **named: Any) -> Question:
        title = gettext("Start %(key)s on %(server)s?") % {"key": setting.key, "server": server.name}
        return Question(title, what_starts_there())

    def run(self, setting: LaunchSetting, act: Act, *, server: Server, **inputs: Any) -> Done:
        started = server_stops.start_on_server(setting, server, act)
        text = gettext("Stop on %(server)s removed: %(key)s")
        already = gettext("Was not stopped on %(server)s: %(key)s")
        return Done((text if started else already) % {"key": setting.key, "server": server.name})


class LabelSetting(Operation[LaunchSetting]):
    """Adds and removes labels of the setting. `remove`: `key` with any value, or `key=value` with this one.
    No effect if its labels are so already."""

    code, label, icon, quiet = "setting.label", _("Label"), "edit", True
    on, permission = SETTINGS, SettingRight("edit")
    inputs = {
        "add": TextInput(_("Labels to add, such as team=billing, critical"), LONGEST_TEXT),
        "remove": TextInput(_("Labels to remove"), LONGEST_TEXT),
    }

    def question(self, setting: LaunchSetting, by: Any, **named: Any) -> Question:
        present = ", ".join(label_words(setting.labels)) or gettext("none")
        text = gettext("Current labels: %(labels)s.") % {"labels": present}
        return Question(gettext("Change the labels of %(key)s?") % {"key": setting.key}, [text])

    @transaction.atomic
    def run(self, setting: LaunchSetting, act: Act, *, add: str, remove: str, **inputs: Any) -> Done:
        current = LaunchSetting.objects.select_for_update(no_key=True).get(pk=setting.pk)
        try:
            labels = relabelled(current.labels, add, remove)
        except ValidationError as error:
            raise WronglyAsked("bad_labels", " ".join(error.messages)) from error
        if labels == current.labels:
            return Done(UNCHANGED)
        LaunchSetting.objects.filter(pk=setting.pk).update(labels=labels)
        act.record()
        return Done(gettext("Labels changed: %(key)s") % {"key": setting.key})


class RemoveSetting(Operation[LaunchSetting]):
    """Removes the empty queues of the setting, then the setting; protocols and dead letters keep the key. 409
    while it is enabled, still ends, is in a group, or one of its queues holds messages. 202: accepted, done
    within seconds."""

    code, label, icon, tone = "setting.remove", _("Remove setting"), "trash", "danger"
    on, permission = SETTINGS, SettingRight("delete")

    def refusal(self, setting: LaunchSetting, now: datetime) -> Refused | None:
        return removal_refusal(setting)

    def question(self, setting: LaunchSetting, by: Any, **named: Any) -> Question:
        goes = _("The setting's activations, schedule and empty queues on the broker are also deleted.")
        stays = _("Failure protocols, dead letters and breaker trips are kept under its key.")
        return Question(gettext("Remove %(key)s permanently?") % {"key": setting.key}, [goes, stays])

    def run(self, setting: LaunchSetting, act: Act, **inputs: Any) -> Done:
        is_gone = remove_setting(setting, act.by, act.now, record=partial(act.record, decided=True))
        later = gettext("The setting is being removed. This takes a few seconds.")
        removed = gettext("Removed: %(key)s") % {"key": setting.key}
        return Done(removed if is_gone else later, is_gone=is_gone, to_list=True)


def open_activation_of(setting: LaunchSetting) -> Activation | None:
    return setting.activations.select_related("setting").filter(state__in=OPEN_ACTIVATIONS).first()


def _nothing_runs() -> Refused:
    return Refused(
        "nothing_runs", gettext("The setting has no running activation."), gettext("No action is needed.")
    )


def _starts_and_ends(setting: LaunchSetting) -> bool:
    """Returns whether, while it is on, a person starts and stops it."""
    return setting.enabled and not (setting.timing == Timing.ASAP and setting.takes_messages)


def _figures(setting: LaunchSetting) -> dict[str, Any]:
    return {"figures": figures_of(setting)} if setting.takes_messages else {}
