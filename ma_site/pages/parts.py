"""The parts of the house on the health page: the broker and what it holds, the pipeline and the archive."""

from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agents.destinations.policies import drifting
from agents.models import LaunchSetting, ProvisionState
from agents.provisioning.queue_counts import broker_away_since, message_count, note_away
from agents.site.backups import last_backup
from broker.management.desired_topology import UNREADABLE
from broker.management.queues import heaviest_queue
from broker.port import BrokerError, BrokerUnavailable
from console.broker import management, with_timeout
from console.ui.amounts import coarse, number, size
from console.ui.page import StateLabel, Text, link
from contract.names import DEAD_LETTER_PREFIX, FEED, UNKNOWN, dead_letter_queue
from dlq.index.undelivered import by_queue
from dlq.queues.queries import facts_of_queues
from insights.archive.report import damage
from insights.runs.queries import standing

OK, DEGRADED, DOWN, UNUSED = STATES = "ok", "degraded", "down", "unused"


@dataclass(frozen=True, slots=True)
class Part:
    """`since` is when it was last known to be well, or since when it is not; `todo` what a person does about
    it."""

    name: Text
    state: str
    says: Text
    todo: Text = ""
    since: datetime | None = None
    url: str = ""

    @property
    def state_label(self) -> StateLabel:
        return SHOWN[self.state]


SHOWN = {
    OK: StateLabel(gettext_lazy("ok"), "ok", "ok"),
    DEGRADED: StateLabel(gettext_lazy("degraded"), "warn", "warn"),
    DOWN: StateLabel(gettext_lazy("down"), "bad", "bad"),
    UNUSED: StateLabel(gettext_lazy("not in use"), "off", "off"),
}


# -- the data pipeline on the health page: it degrades nothing where it is switched off ----------------------


def archive_parts() -> list[Part]:
    """Nothing while all of it can be read: an operator need not know of it."""
    found = damage()
    return (
        [] if found is None else [Part(_("Archive"), DEGRADED, found.says, found.todo, url=link("insights"))]
    )


def pipeline_part(now: datetime) -> Part:
    name, url, found = _("Data pipeline"), link("insights"), standing(now)
    if found.off:
        return Part(name, UNUSED, _("disabled"), url=url)
    todo = _(
        "The pipeline page shows the reason. No data is lost: the next run processes "
        "everything that is not archived yet."
    )
    since = found.loaded.ended_at if found.loaded else None
    if found.says:
        return Part(name, DEGRADED, found.says, todo, since, url)
    if found.failed:
        return Part(name, DEGRADED, _("the last run failed in whole or in part"), todo, since, url)
    if found.old:
        return Part(name, DEGRADED, _("results are out of date"), todo, since, url)
    if found.open:
        return Part(name, OK, _("running"), since=since, url=url)
    return Part(
        name, OK, _("last run succeeded") if found.loaded else _("has not run yet"), since=since, url=url
    )


# -- the last backup, where somebody makes one or wants to know ----------------------------------------------


def backup_parts(now: datetime) -> list[Part]:
    last = last_backup()
    if last.made_at is None and last.allowed is None:
        return []
    name = _("Backup")
    todo = _("Make a backup: ./ma backup FOLDER. If one is made every night, see why the last ones failed.")
    if last.made_at is None:
        return [Part(name, DEGRADED, _("no backup has been made yet"), todo)]
    says = _("messages included") if last.messages else _("messages not included")
    says = _("last backup %(time)s ago · %(content)s") % {
        "time": coarse(now - last.made_at),
        "content": says,
    }
    if last.is_old(now):
        return [Part(name, DEGRADED, says, todo, last.made_at)]
    return [Part(name, OK, says, since=last.made_at)]


# -- what the broker holds, on the health page ---------------------------------------------------------------
# How full it is, what the index does not know yet, messages of nobody, and what the MA made there.


FEED_BEHIND = 1000
FULL_PERCENT = 80


def _broker_says() -> tuple[str, int, int]:
    """Version, and how full the memory for messages and the disk are, in percent."""
    names = ("Version", "AddressMemoryUsagePercentage", "DiskStoreUsage")
    version, memory, disk = management().attributes("broker", *names)
    return str(version), int(memory), round(100 * float(disk))


def _heaviest() -> str:
    """Names what fills the disk most; empty where nothing lies at the broker, or it does not tell."""
    try:
        found = with_timeout(lambda: heaviest_queue(management()))
    except BrokerError:
        return ""
    if found is None:
        return ""
    text = ngettext(
        "largest queue: %(queue)s, %(n)s message, %(size)s",
        "largest queue: %(queue)s, %(n)s messages, %(size)s",
        found.messages,
    )
    says = text % {"queue": found.queue, "n": number(found.messages), "size": size(found.size)}
    since = (
        facts_of_queues([found.queue])[found.queue].since
        if found.queue.startswith(DEAD_LETTER_PREFIX)
        else None
    )
    if since is not None:
        says = _("%(says)s; the oldest message has been in the DLQ for %(time)s") % {
            "says": says,
            "time": coarse(timezone.now() - since),
        }
    return says


def broker_part() -> Part:
    name = _("Broker")
    try:
        version, memory, disk = with_timeout(_broker_says)
    except BrokerError as error:
        if isinstance(error, BrokerUnavailable):
            note_away(timezone.now())
        says = _("no response: %(problem)s") % {"problem": error}
        todo = _(
            "No messages are lost: they are on the broker's disk. Start the broker. To find the "
            "cause, run ./ma status and ./ma logs artemis. Pages show the last known figures in "
            "grey."
        )
        return Part(name, DOWN, says, todo, broker_away_since())
    says = _("Artemis %(version)s · message memory %(memory)s%% used · disk %(disk)s%% used") % {
        "version": version,
        "memory": memory,
        "disk": disk,
    }
    if heaviest := _heaviest():
        says = f"{says} · {heaviest}"
    if max(memory, disk) >= FULL_PERCENT:
        return Part(
            name,
            DEGRADED,
            says,
            _(
                "Free up space: replay or discard old dead letters, or enlarge the disk. The broker "
                "blocks producers when the disk is full."
            ),
        )
    return Part(name, OK, says)


def index_part() -> Part:
    waiting = message_count(dead_letter_queue(FEED))
    name = _("Dead-letter index")
    if waiting is None:
        return Part(name, DEGRADED, _("indexing lag unknown: broker count unavailable"))
    says = ngettext("%(n)s message not indexed yet", "%(n)s messages not indexed yet", waiting) % {
        "n": number(waiting)
    }
    if waiting > FEED_BEHIND:
        return Part(
            name,
            DEGRADED,
            says,
            _("The index catches up automatically while the indexer runs. Broker counts stay exact."),
        )
    return Part(name, OK, says)


def unassigned_part() -> Part:
    waiting = message_count(dead_letter_queue(UNKNOWN))
    url = link("dead_letters_of", UNKNOWN)
    name = _("Unassigned dead letters")
    if waiting is None:
        return Part(name, DEGRADED, _("broker count unavailable"), url=url)
    says = ngettext("%(n)s message in %(queue)s", "%(n)s messages in %(queue)s", waiting)
    says = says % {"n": number(waiting), "queue": dead_letter_queue(UNKNOWN)}
    if waiting:
        return Part(
            name,
            DEGRADED,
            says,
            _("Find out which setting the messages belong to. Their queue is not assigned to any setting."),
            url=url,
        )
    return Part(name, OK, says, url=url)


def unreadable_parts() -> list[Part]:
    """Nothing while it is empty: an operator need not know of it."""
    waiting = message_count(UNREADABLE)
    if not waiting:
        return []
    says = ngettext(
        "%(queue)s: %(n)s message that the broker could not convert to AMQP",
        "%(queue)s: %(n)s messages that the broker could not convert to AMQP",
        waiting,
    )
    todo = _(
        "No agent receives these messages, and the console does not show them. Read them with "
        "a JMS (Core) client, then notify their producer."
    )
    return [
        Part(_("Unreadable messages"), DEGRADED, says % {"n": number(waiting), "queue": UNREADABLE}, todo)
    ]


def undelivered_parts() -> list[Part]:
    """Nothing while there is none. The dead letters say which they are; this says which figures are wrong."""
    found = by_queue()
    if not found:
        return []
    number_of = sum(messages for _queue, messages, _too_low in found)
    says = ngettext(
        "%(n)s message that the broker cannot deliver to agents",
        "%(n)s messages that the broker cannot deliver to agents",
        number_of,
    ) % {"n": number(number_of)}
    wrong = [f"{queue} −{number(too_low)}" for queue, _messages, too_low in found if too_low]
    if wrong:
        told = _("broker counts are too low: %(queues)s") % {"queues": ", ".join(wrong[:10])}
        says = f"{says}; {told}"
    todo = _("All these messages are in the DLQ: edit and replay them. A broker restart corrects the counts.")
    return [Part(_("Undeliverable messages"), DEGRADED, says, todo, url=link("dead_letters"))]


def provisioning_part() -> Part:
    failed = list(
        LaunchSetting.objects.filter(provision_state=ProvisionState.FAILED).values_list("key", flat=True)
    )
    name, away = _("Settings on the broker"), broker_away_since()
    known = [_("unknown: the broker is not responding")] if away else []
    if failed:
        known.append(_("not created: %(keys)s") % {"keys": ", ".join(failed[:10])})
        todo = _("Each setting's page shows the reason.")
        return Part(name, DEGRADED, "; ".join(known), todo, away, link("settings") + "?state=problem")
    if away:
        return Part(name, DEGRADED, known[0], since=away, url=link("settings"))
    return Part(name, OK, _("in sync"), url=link("settings"))


def address_parts(now: datetime) -> list[Part]:
    """Nothing while there is none. Beside settings that could not be made: one does not hide the other."""
    rows = drifting(now)
    if not rows:
        return []
    says = _("not in sync: %(addresses)s") % {"addresses": ", ".join(row.address for row in rows[:10])}
    todo = _(
        "Someone changed address settings on the broker. Open the destination: restore the "
        "desired values or adopt the current ones. For an MA address, run ./ma manage "
        "provision."
    )
    url = link("destinations")
    return [Part(_("Address settings on the broker"), DEGRADED, says, todo, rows[0].differs_since, url)]
