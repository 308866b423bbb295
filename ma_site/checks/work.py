"""Beat, worker and feed give signs of life."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from agents.models import LaunchSetting, ProvisionState
from agents.provisioning.provision import topology_differences
from agents.site.backups import last_backup
from broker.management.desired_topology import UNREADABLE
from broker.port import BrokerError
from console.broker import management
from console.leases.queries import place_of
from console.processes import seconds_since
from dlq.index.undelivered import by_queue
from insights.archive.readiness import is_default
from insights.runs.queries import OLD, standing
from ma_site.checks.finding import Finding, bad, good, register_check
from ma_site.health import LATE_SECONDS

PROCESSES = {"beat": "beat and worker", "feed": "feed"}


@register_check("processes", 70)
def check_processes(now: datetime) -> Iterator[Finding]:
    for name, shown in PROCESSES.items():
        seconds = seconds_since(name, now)
        if seconds is None:
            yield bad(f"{shown}: no heartbeat yet", f"./ma status; ./ma logs {name}")
        elif seconds > LATE_SECONDS[name]:
            yield bad(f"{shown}: no heartbeat for {seconds:.0f} s", f"./ma status; ./ma logs {name}")
        else:
            yield good(f"{shown}: last heartbeat {seconds:.0f} s ago{_where(name, now)}")


def _where(name: str, now: datetime) -> str:
    place = place_of(name, now)
    if place is None:
        return ""
    return f", on {place.host}" + (f"; standby {place.standby}" if place.standby else "")


# -- the last good backup ------------------------------------------------------------------------------------


@register_check("backup", 97)
def check_backup(now: datetime) -> Iterator[Finding]:
    last = last_backup()
    if last.made_at is None:
        if last.allowed is not None:
            yield bad("none has been made yet", "./ma backup FOLDER: docs/how-to/backup.md")
        return
    hours = (now - last.made_at) / HOUR
    says = f"the last one was made {hours:.0f} h ago: {last.place}"
    if last.is_old(now):
        yield bad(says, "./ma backup FOLDER: docs/how-to/backup.md")
    else:
        yield good(says)


# -- the data pipeline: off by choice, ready, or not; and how its last run went ------------------------------


HOUR = timedelta(hours=1)


@register_check("pipeline", 95)
def check_pipeline(now: datetime) -> Iterator[Finding]:
    found = standing(now)
    if found.off:
        yield good(found.says)
        return
    if found.says and is_default() and found.loaded is None:
        yield good(
            f"{found.says} It is installed after the first start (./ma logs pyspark); nothing depends on it."
        )
        return
    if found.says:
        yield bad(found.says, "Install it (./ma up does), or leave MA_ARCHIVE_URL empty.")
    if found.damage:
        yield bad(
            f"{found.damage.says}; {found.damage.problem[:200]}",
            "./ma manage archive status; docs/explanation/archive.md",
        )
    if found.failed and found.last is not None:
        says = f"the last run is {found.last.state}: {str(found.last.problem)[:200]}"
        yield bad(says, "./ma manage pipeline status --log")
    elif found.old:
        yield bad(
            f"no successful run for more than {OLD // HOUR} h",
            "./ma status; ./ma logs worker; ./ma manage pipeline run",
        )
    elif found.loaded is not None:
        yield good(f"last run ended {found.loaded.ended_at:%Y-%m-%d %H:%M}")
    elif not found.says:
        yield good("has not run yet")


# -- what is on the broker is what the settings want ---------------------------------------------------------


@register_check("topology", 60)
def check_topology(now: datetime) -> Iterator[Finding]:
    wanting = 0
    try:
        for setting in [None, *LaunchSetting.objects.select_related("destination")]:
            for difference in topology_differences(setting):
                wanting += 1
                yield bad(str(difference), "./ma manage provision")
    except BrokerError as error:
        yield bad(f"the broker did not answer: {error}", "./ma logs artemis")
        return
    for setting in LaunchSetting.objects.exclude(provision_state=ProvisionState.READY):
        wanting += 1
        yield bad(
            f"{setting.key} is {setting.provision_state}: {setting.provision_problem}",
            "./ma manage provision",
        )
    if not wanting:
        yield good("in sync with the settings")


# -- no message is known that the broker could not deliver since it started ----------------------------------


@register_check("undelivered", 66)
def check_undelivered(now: datetime) -> Iterator[Finding]:
    found = by_queue()
    if not found:
        yield good("no undeliverable messages")
    for queue, messages, too_low in found:
        wrong = f"; its message count there is {too_low} too low" if too_low else ""
        yield bad(
            f"the broker could not deliver {messages} messages of {queue}{wrong}",
            "Each one is a dead letter: edit and replay it, or consume it with a JMS (Core) client. A "
            "restart of the broker corrects its counts. Details: docs/explanation/broker.md.",
        )


# -- nothing lies where the broker puts what it could not turn into AMQP -------------------------------------


@register_check("unreadable", 65)
def check_unreadable(now: datetime) -> Iterator[Finding]:
    try:
        count = int(management().attribute(f"queue.{UNREADABLE}", "MessageCount"))
    except BrokerError as error:
        yield bad(
            f"the message count of {UNREADABLE} is unavailable: {error}",
            "./ma logs artemis; ./ma manage provision",
        )
        return
    if count:
        yield bad(
            f"{UNREADABLE} holds {count} messages that the broker could not convert to AMQP: no agent "
            "received them",
            "Read them with a JMS (Core) client, then inform their producer. Details: "
            "docs/explanation/broker.md.",
        )
    else:
        yield good(f"{UNREADABLE} is empty")
