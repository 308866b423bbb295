"""The pages that are not in `pages.every_page`: forms, questions before something is done, and what needs
rows of its own. Together they are every page of the site."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import Group
from django.db.models import Model
from django.urls import reverse

from agents.models import (
    Acknowledgement,
    Activation,
    Destination,
    Duty,
    MaintenanceWindow,
    Pool,
    PoolGrant,
    ScheduledGroup,
    Server,
    ServerToken,
    StateChange,
)
from agents.settings.bulk import carry_out
from alerts.models import AlertRule, Notice, NoticeTarget
from console.audit.models import AuditEntry
from console.models import ApiToken, SavedFilter
from dlq.models import Action, JobState, KnownFault, LetterQueue, ReplayJob, Taking
from dlq.models.dead_letter import BIN_QUEUE
from insights.models import PipelineRun
from tests.web.factories import World
from tests.web.insight_rows import found
from tests.web.launches import make_setting

KEY = "orders-export"


def other_pages(world: World) -> dict[str, str]:
    """Makes the rows that they need."""
    return {
        **_settings(world),
        **_messages(world),
        **_site(world),
        **_forms(world),
        "audit of a busy day": _audit(world),
    }


def _settings(world: World) -> dict[str, str]:
    setting, server = world.settings[KEY], world.servers["srv-1"]
    Server.objects.filter(name="srv-5").update(duty=Duty.CORDONED)
    make_setting(world, "ordered-row", "demo.row", destination=setting.destination, ordered=True, mode="AUTO")
    answered = make_setting(
        world, "answered", "demo.answers", destination=setting.destination, mode="CLIENT", enabled=True
    )
    activation = Activation.objects.create(
        setting=answered, state="running", started_at=world.now, number=1, last_epoch=1
    )
    run = activation.runs.create(server=server, epoch=1)
    for number in range(3):
        Acknowledgement.objects.create(
            id=number + 1, setting=answered, server=server, activation_uuid=activation.pk, epoch=run.epoch,
            acknowledgement=f"a-{number}", message_key=f"ID:answer-{number}", attempt=number + 1,
            opened_at=world.now - timedelta(minutes=number), due_at=world.now + timedelta(minutes=5),
        )  # fmt: skip
    token = ServerToken.objects.create(server=server, digest="d")
    target = NoticeTarget.objects.create(setting=setting, channel="email", address="oncall@shop.example")
    notice = Notice.objects.create(target=target, channel="email", address=target.address)
    labels = {"add": "team=billing", "remove": "", "reason": ""}
    labelled, _items = carry_out("label", [KEY], world.people["chief"], labels)
    return {
        "answers": "/answers/",
        "commit an answer": "/answers/1/commit/",
        "roll an answer back": "/answers/1/rollback/",
        "retry the blocked message": "/settings/ordered-row/retry/",
        "remove a setting": "/settings/stock-sync/remove/",
        "delete a group": "/groups/nightly/delete/",
        "remove a server": "/servers/srv-5/remove/",
        "notification": f"/notices/{notice.pk}/",
        "result of a bulk change": f"/bulk/results/{labelled}/",
        "revoke a token of a server": f"/server-tokens/{token.pk}/revoke/",
    }


def _messages(world: World) -> dict[str, str]:
    chief = world.people["chief"]
    LetterQueue.objects.create(queue="OLD.DLQ", address="OLD", foreign=True)
    KnownFault.objects.create(
        by=chief, text="A new version comes.", setting_key=KEY, fingerprint=world.protocols[0].fingerprint
    )
    Taking.objects.create(by=chief, text="mine", setting_key="invoices")
    for name in ("dead_letters", "protocols"):
        SavedFilter.objects.create(list=name, owner=chief, name="Keys", query="exception=Key")
    binned = world.letters[1]
    type(binned).objects.filter(pk=binned.pk).update(queue=BIN_QUEUE)
    verbs = {
        "approve": JobState.AWAITING,
        "refuse": JobState.AWAITING,
        "release": JobState.RUNNING,
        "cancel": JobState.RUNNING,
    }
    return {
        "put back": f"/dead-letters/{KEY}/put-back/?letter={binned.pk}",
        **{
            f"{verb} a job": f"/replays/{_job(world, number, state).pk}/{verb}/"
            for number, (verb, state) in enumerate(verbs.items())
        },
        "give a blocked message up": "/settings/ordered-row/waiting/give-up/",
        "saved filters of failures": "/protocols/saved/",
    }


def _job(world: World, number: int, state: JobState) -> ReplayJob:
    return ReplayJob.objects.create(
        id=UUID(int=8800 + number), setting=world.settings[KEY], setting_key=KEY, scope="selection",
        state=state, action=Action.GIVE_BACK, by=world.people["operator"], needs_second=True, total=40,
        reason="the tax service is back", source_queue=f"DLQ.{KEY}", target_key=KEY,
    )  # fmt: skip


def _site(world: World) -> dict[str, str]:
    run = found()
    going = PipelineRun.objects.create(state="running", open=True, asked_at=world.now, heartbeat_at=world.now)
    token = ApiToken.objects.create(user=world.people["chief"], name="ci", digest="d")
    return {
        "glossary": "/glossary/",
        "search": "/search/",
        "search with results": "/search/?q=orders",
        "search without results": "/search/?q=nothing-has-this-name",
        "pipeline run": f"/insights/runs/{run.pk}/",
        "pipeline run that goes on": f"/insights/runs/{going.pk}/",
        "revoke a token": f"/tokens/{token.pk}/revoke/",
        "change the password": "/password_change/",
        "password was changed": "/password_change/done/",
    }


def _audit(world: World) -> str:
    """Entries as short and as long as people and programs make them."""
    changes = {
        "breaker_m": {"old": 10, "new": 40},
        "destination": {"old": "shop.orders", "new": "shop.orders.of-all-partners"},
        "description": {"old": "", "new": "Exports every order to the partner of its country. " * 3},
    }
    entries: list[dict[str, Any]] = [
        {"action": "setting.enable", "target": f"setting:{KEY}", "setting_key": KEY},
        {"action": "setting.change", "target": f"setting:{KEY}", "setting_key": KEY,
         "detail": {"changes": changes}},
        {"action": "dead_letters.replay", "target": f"replay:{UUID(int=8800)}", "setting_key": KEY,
         "scope": "all",
         "reason": "The tax service is back: all orders of the night go again, as agreed. " * 2,
         "counts": {"letters": 1_204, "skipped": 12}},
        {"action": "dead_letters.discard", "target": f"queue:DLQ.{KEY}", "setting_key": KEY,
         "result": "refused", "reason": "duplicates"},
        {"action": "server.cordon", "target": "server:payments-settlement-frankfurt-2.example",
         "result": "failed", "detail": {"account": "ma@host", "until": "2026-12-01 08:00 UTC"}},
        {"action": "retention.apply", "target": "retention", "by_name": "", "counts": {"protocols": 4_800}},
    ]  # fmt: skip
    for entry in entries:
        AuditEntry.objects.create(**{"by_name": "operator", **entry})
    return "/audit/"


def _forms(world: World) -> dict[str, str]:
    """Of each kind of row that the admin knows: list, new, one, its history, and the question before it
    goes."""
    pool, group = Pool.objects.get(name="main"), Group.objects.get(name="viewer")
    shown, kept, every = ("change", "history"), ("add", "change", "history"), ("change", "history", "delete")
    rows: list[tuple[Model, tuple[str, ...]]] = [
        (ApiToken.objects.all()[0], shown),
        (world.activations[KEY], shown),
        (StateChange.objects.all()[0], shown),
        (ServerToken.objects.all()[0], shown),
        (ScheduledGroup.objects.get(name="nightly"), kept),
        (world.servers["srv-1"], kept),
        (world.settings[KEY], kept),
        (Destination.objects.create(name="nobody.listens"), (*every, "add")),
        (PoolGrant.objects.create(pool=pool, group=group), (*every, "add")),
        (pool, (*every, "add")),
        (AlertRule.objects.create(kind="spool_filling", pool=pool, upper=50), (*every, "add")),
        (NoticeTarget.objects.all()[0], (*every, "add")),
        (
            MaintenanceWindow.objects.create(pool=pool, crontab="0 2 * * 0", minutes=60, reason="updates"),
            every,
        ),
        (group, (*every, "add")),
        (world.people["viewer"], (*every, "add")),
    ]
    pages = {"password of a user": f"/auth/user/{world.people['viewer'].pk}/password/"}
    for row, parts in rows:
        label = f"{row._meta.app_label}_{row._meta.model_name}"
        pages[f"{label}, list"] = reverse(f"admin:{label}_changelist")
        for part in parts:
            named = [] if part == "add" else [row.pk]
            pages[f"{label}, {part}"] = reverse(f"admin:{label}_{part}", args=named)
    return pages | {f"index of {app}": f"/{app}/" for app in ("console", "agents", "alerts", "auth")}
