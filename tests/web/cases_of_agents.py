"""An object of each operation of agents/, with which it can be done."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from agents.acknowledgements.operations import Commit, RollBack
from agents.activations.operations import StopActivation, run_now
from agents.freezes.operations import FreezePool, FreezeSite, UnfreezePool, UnfreezeSite
from agents.groups.group import enable_group, run_group_now
from agents.groups.operations import DeleteGroup, DisableGroup, EnableGroup, MoveMember, RunGroup, StopGroup
from agents.models import (
    Acknowledgement,
    Activation,
    Duty,
    Freeze,
    LaunchSetting,
    OfferedAgent,
    Pool,
    Run,
    ScheduledGroup,
    Server,
    ServerStop,
    SiteIdentity,
)
from agents.servers.admission import issue_server_token
from agents.servers.operations import Cordon, Drain, RemoveServer, Uncordon, set_duty
from agents.settings.enable import enable_setting
from agents.settings.operations import (
    DisableSetting,
    EnableSetting,
    LabelSetting,
    RemoveSetting,
    ResumeRun,
    RetryMessage,
    RunSetting,
    StartOnServer,
    StopOnServer,
    StopSetting,
)
from alerts.models import Alert, AlertState, Notice, NoticeState, NoticeTarget
from alerts.notices.operations import DeleteTarget, RenewSecret, ResendNotice, SendTest
from alerts.operations import CloseAlert, SnoozeAlert
from tests.web.launching import group_of
from tests.web.operation_case import Case
from tests.web.rows import make_setting


def server_of(pool: Pool) -> Server:
    return pool.servers.get(name="srv-1")


def cordoned(pool: Pool) -> Server:
    set_duty(server_of(pool), Duty.CORDONED, None, timezone.now())
    return server_of(pool)


def silent(pool: Pool) -> Server:
    server = Server.objects.create(name="gone")
    issue_server_token(server, now=timezone.now())
    OfferedAgent.objects.create(server=server, name="demo.orders", kind="message")
    return server


def off(pool: Pool) -> LaunchSetting:
    return make_setting(pool, "off")


def on(pool: Pool) -> LaunchSetting:
    setting = make_setting(pool, "on", timing="DELAYED")
    enable_setting(setting, None, timezone.now())
    return LaunchSetting.objects.get(pk=setting.pk)


def running(pool: Pool) -> LaunchSetting:
    setting = on(pool)
    run_now(setting, None, timezone.now())
    return setting


def ordered(pool: Pool) -> LaunchSetting:
    setting = make_setting(pool, "ordered", ordered=True, spread="MANY", mode="AUTO")
    enable_setting(setting, None, timezone.now())
    return LaunchSetting.objects.get(pk=setting.pk)


def interrupted(pool: Pool) -> LaunchSetting:
    setting = make_setting(pool, "interrupted", spread="MANY")
    enable_setting(setting, None, timezone.now())
    runs = Run.objects.filter(activation__setting=setting, server__name="srv-1")
    runs.update(state="interrupted", closed_at=timezone.now())
    return LaunchSetting.objects.get(pk=setting.pk)


def elsewhere_too(pool: Pool) -> LaunchSetting:
    return make_setting(pool, "everywhere", spread="MANY")


def stopped_there(pool: Pool) -> LaunchSetting:
    setting = elsewhere_too(pool)
    ServerStop.objects.create(setting=setting, server=server_of(pool))
    return setting


def standalone(pool: Pool) -> LaunchSetting:
    """Nothing of it is on the broker."""
    return make_setting(pool, "report", kind="standalone", destination=None, timing="DELAYED")


def group_off(pool: Pool) -> ScheduledGroup:
    return group_of(make_setting(pool, "m-1", timing="DELAYED"), make_setting(pool, "m-2", timing="DELAYED"))


def group_on(pool: Pool) -> ScheduledGroup:
    return enable_group(group_off(pool), None, timezone.now())


def group_running(pool: Pool) -> ScheduledGroup:
    group = group_on(pool)
    run_group_now(group, None, timezone.now())
    return group


def activation(pool: Pool) -> Activation:
    return Activation.objects.get(setting=running(pool))


def alert(pool: Pool) -> Alert:
    return Alert.objects.create(kind="spool_filling", subject="srv-1", severity=2, state=AlertState.OPEN)


def webhook(pool: Pool) -> NoticeTarget:
    return NoticeTarget.objects.create(pool=pool, channel="webhook", address="http://127.0.0.1:1/hook")


def failed_notice(pool: Pool) -> Notice:
    target = webhook(pool)
    return Notice.objects.create(
        target=target, channel=target.channel, address=target.address, state=NoticeState.FAILED
    )


def waiting(pool: Pool) -> Acknowledgement:
    started = activation(pool)
    return Acknowledgement.objects.create(
        setting=started.setting,
        server=server_of(pool),
        activation_uuid=started.pk,
        epoch=1,
        acknowledgement="a-1",
        jms_message_id="ID:7",
        created_at=timezone.now(),
    )


def on_first_server(pool: Pool) -> dict[str, Any]:
    return {"server": server_of(pool)}


def for_an_hour(pool: Pool) -> dict[str, Any]:
    return {"reason": "known", "until": timezone.now() + timedelta(hours=1)}


def site(pool: Pool) -> SiteIdentity:
    return SiteIdentity.objects.get_or_create(pk=1)[0]


def frozen_site(pool: Pool) -> SiteIdentity:
    Freeze.objects.create(scope="*", by_name="somebody", reason="release")
    return site(pool)


def frozen_pool(pool: Pool) -> Pool:
    Freeze.objects.create(scope=f"p{pool.pk}", pool=pool, by_name="somebody", reason="release")
    return pool


MOVE = {"member": "m-2", "to": "up"}
HOOK = {"address": "http://127.0.0.1:1/…"}
WHICH = {"server": "srv-1", "message": "ID:7"}
CASES = (
    Case(Cordon, server_of, "agents.can_change_duty", {"reason": "new disk"}),
    Case(Drain, server_of, "agents.can_change_duty", {"reason": "new disk"}),
    Case(Uncordon, cordoned, "agents.can_change_duty"),
    Case(RemoveServer, silent, "agents.delete_server"),
    Case(FreezeSite, site, "agents.can_freeze", {"reason": "release"}),
    Case(UnfreezeSite, frozen_site, "agents.can_freeze", {"reason": "released"}),
    Case(FreezePool, lambda pool: pool, "agents.can_freeze", {"reason": "release"}),
    Case(UnfreezePool, frozen_pool, "agents.can_freeze", {"reason": "released"}),
    Case(EnableSetting, off, "agents.can_enable"),
    Case(DisableSetting, on, "agents.can_disable", {"reason": "mending"}),
    Case(RunSetting, on, "agents.can_run"),
    Case(StopSetting, running, "agents.can_stop", {"reason": "wrong day"}),
    Case(RetryMessage, ordered, "agents.can_run"),
    Case(
        ResumeRun,
        interrupted,
        "agents.can_enable",
        lambda pool: {"server": server_of(pool)},
        detail={"server": "srv-1"},
    ),
    Case(
        StopOnServer,
        elsewhere_too,
        "agents.can_stop",
        lambda pool: {"server": server_of(pool), "reason": "disk full"},
        detail={"server": "srv-1"},
    ),
    Case(
        StartOnServer,
        stopped_there,
        "agents.can_stop",
        lambda pool: {"server": server_of(pool)},
        detail={"server": "srv-1"},
    ),
    Case(
        LabelSetting,
        off,
        "agents.change_launchsetting",
        {"add": "team=billing", "remove": "tier"},
        detail={"add": "team=billing", "remove": "tier"},
    ),
    Case(RemoveSetting, standalone, "agents.delete_launchsetting", detail={"decided": True}),
    Case(EnableGroup, group_off, "agents.can_enable"),
    Case(DisableGroup, group_on, "agents.can_disable", {"reason": "mending"}),
    Case(RunGroup, group_on, "agents.can_run"),
    Case(StopGroup, group_running, "agents.can_stop", {"reason": "wrong day"}),
    Case(
        MoveMember,
        group_off,
        "agents.change_launchsetting",
        {"member": "m-2", "to": "up"},
        detail={"member": "m-2", "to": "up"},
    ),
    Case(DeleteGroup, group_off, "agents.change_launchsetting"),
    Case(StopActivation, activation, "agents.can_stop", {"reason": "wrong day"}),
    Case(
        SnoozeAlert,
        alert,
        "alerts.can_handle_alerts",
        lambda pool: {"reason": "known", "until": timezone.now() + timedelta(hours=1)},
    ),
    Case(CloseAlert, alert, "alerts.can_handle_alerts", {"reason": "known"}),
    Case(SendTest, webhook, "agents.change_launchsetting", detail=HOOK | {"begun": True}),
    Case(RenewSecret, webhook, "agents.change_launchsetting", detail=HOOK),
    Case(DeleteTarget, webhook, "agents.change_launchsetting", detail=HOOK),
    Case(ResendNotice, failed_notice, "agents.change_launchsetting", detail=HOOK),
    Case(Commit, waiting, "agents.can_answer", detail=WHICH),
    Case(RollBack, waiting, "agents.can_answer", detail=WHICH),
)
