"""A month that never was, so that *Insights* has something to show on the first day.

All of it belongs to one launch setting, which is disabled and takes no messages. Its protocols are written
past the intake: no tally, no breaker, no alert and no total ever counts them. It is made, and removed, in one
transaction: a process that dies in it has done nothing.
"""

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from uuid import NAMESPACE_URL, uuid5

from django.db import transaction

from agents.models import Activation, ActivationState, LaunchSetting, Pool, SettingKind
from agents.provisioning.topology import save_setting
from console.audit.saves import record_deletion, saving
from console.reasons import said
from contract.fingerprint import fingerprint
from contract.names import HISTORY_KEY
from contract.outcomes import Outcome
from failures.models import FailureProtocol, RecoveredMessage
from insights.archive import planning
from insights.models import ArchiveBlock
from insights.runs.folder import TABLES

DESCRIPTION = (
    "Made up: a month of failures that never happened, for Insights. Remove: ./ma "
    "manage demo_history --remove"
)
DAYS = 30
SERVERS = ("old-1", "old-2", "old-3")
NAMESPACE = uuid5(NAMESPACE_URL, "ma:demo-history")
CHUNK = 500
# Type, text, place, temporary, failures a day in the first and in the last week, first and last day that it
# was seen.
FAULTS = (
    ("KeyError", "'wrapping'", "orders.py:41 in wrap", False, 4, 16, 0, DAYS),
    ("ConnectionError", "carrier does not answer", "carrier.py:17 in book", True, 14, 10, 0, DAYS),
    ("ValueError", "negative quantity", "orders.py:63 in check", False, 9, 1, 0, 24),
    ("TimeoutError", "stock took longer than 5 s", "stock.py:88 in reserve", False, 3, 7, 21, DAYS),
)


def make_history(pool: Pool, now: datetime) -> bool:
    """Returns whether it was made now. It ends yesterday, so that no day of it is still going on."""
    if LaunchSetting.objects.filter(key=HISTORY_KEY).exists():
        return False
    setting = LaunchSetting(
        key=HISTORY_KEY, kind=SettingKind.STANDALONE, agent="demo.history", pool=pool, description=DESCRIPTION
    )
    with saving(setting, None):
        save_setting(setting)
        begin = now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=DAYS)
        activation = Activation.objects.create(
            id=uuid5(NAMESPACE, "activation"), setting=setting, state=ActivationState.STOPPED,
            started_at=begin,
            ended_at=begin + timedelta(days=DAYS) - timedelta(minutes=1), well=False,
            reason=said(DESCRIPTION),
        )  # fmt: skip
        rows = list(_protocols(setting, activation, begin))
        FailureProtocol.objects.bulk_create(rows, batch_size=CHUNK)
        RecoveredMessage.objects.bulk_create(list(_recovered(rows)), batch_size=CHUNK)
    return True


def remove_history() -> bool:
    """Returns whether there was any. What the archive has of it stays there and is never computed again."""
    with transaction.atomic():
        setting = LaunchSetting.objects.filter(key=HISTORY_KEY).first()
        protocols = FailureProtocol.objects.filter(setting_key=HISTORY_KEY)
        if setting is None and not protocols.exists():
            return False
        protocols.delete()
        RecoveredMessage.objects.filter(setting_key=HISTORY_KEY).delete()
        if setting is not None:
            Activation.objects.filter(setting=setting).delete()
            record_deletion(setting, None)
            setting.delete()
        # Sums over all settings hold it until the next run.
        for table in TABLES.values():
            table._default_manager.filter(setting_key=HISTORY_KEY).delete()
        if ArchiveBlock.objects.exists():
            planning.request_recomputation("the made-up history was removed")
    return True


def _protocols(setting: LaunchSetting, activation: Activation, begin: datetime) -> Iterator[FailureProtocol]:
    chance = random.Random(20)
    number = 0
    for day in range(DAYS):
        for kind, text, place, temporary, early, late, first, last in FAULTS:
            if not first <= day < last:
                continue
            usual = early + (late - early) * (day - first) / max(1, last - first - 1)
            for _ in range(max(0, round(usual * chance.uniform(0.7, 1.3)))):
                number += 1
                at = begin + timedelta(days=day, seconds=chance.uniform(6 * 3600, 22 * 3600))
                # The third server fails twice as often as the others.
                server = chance.choices(SERVERS, (1, 1, 2))[0]
                yield _protocol(setting, activation, number, at, server, (kind, text, place, temporary))


def _protocol(
    setting: LaunchSetting, activation: Activation, number: int, at: datetime, server: str,
    fault: tuple[str, str, str, bool],
) -> FailureProtocol:  # fmt: skip
    kind, text, place, temporary = fault
    outcome = Outcome.TEMPORARY if temporary else Outcome.RAISED
    return FailureProtocol(
        id=uuid5(NAMESPACE, f"protocol {number}"), spool=NAMESPACE, number=number, setting=setting,
        setting_key=setting.key, activation=activation, activation_uuid=activation.pk, epoch=1,
        server_name=server,
        agent=setting.agent, agent_version="0", outcome=outcome.value, exception_type=kind,
        exception_text=f"{text} (made up)", fingerprint=fingerprint(kind, text, ""), place=place,
        temporary=temporary,
        counted=not temporary, message_key=f"made-up-{number}", queue=setting.key, destination="demo.history",
        attempt=1, delivery_count=1, duration_seconds=0.2, occurred_at=at, received_at=at,
    )  # fmt: skip


def _recovered(rows: list[FailureProtocol]) -> Iterator[RecoveredMessage]:
    """What failed for a while only was handled a minute later."""
    for row in rows:
        if row.temporary:
            at = row.occurred_at + timedelta(minutes=1)
            yield RecoveredMessage(
                id=uuid5(NAMESPACE, f"recovered {row.number}"), setting_key=row.setting_key,
                activation_uuid=row.activation_uuid, server_name=row.server_name, message_key=row.message_key,
                attempt=2, occurred_at=at, received_at=at,
            )  # fmt: skip
