"""A large house: hundreds of settings in every state, thousands of dead letters. For lists at size and for
looking at them."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from agents.models import (
    Activation,
    ActivationState,
    BreakerTrip,
    Destination,
    LaunchSetting,
    Pool,
    ProvisionState,
    Run,
    RunPhase,
)
from agents.reasons import SAME_TYPE_IN_A_ROW
from console.reasons import said
from dlq.index.store import insert
from dlq.models import DeadLetter

if TYPE_CHECKING:
    from tests.web.factories import World

DUTIES = ("export", "import", "sync", "report", "notify")
# Of ten settings in a row: what becomes of each.
FATES = ("runs", "runs", "never", "dead", "off", "runs", "never", "dead", "tripped", "never")


def make_crowd(world: "World", settings: int, letters: int, prefix: str = "crowd") -> None:
    """Adds so many settings, and so many dead letters to those with some."""
    pool = Pool.objects.get(name="main")
    made = [_setting(world, pool, prefix, number) for number in range(settings)]
    world.settings |= {each.key: each for each in made}
    for number, setting in enumerate(made):
        _live(world, setting, FATES[number % len(FATES)])
    _letters(world, [each for number, each in enumerate(made) if FATES[number % 10] == "dead"], letters)


def _setting(world: "World", pool: Pool, prefix: str, number: int) -> LaunchSetting:
    fate, duty = FATES[number % len(FATES)], DUTIES[number % len(DUTIES)]
    destination, _made = Destination.objects.get_or_create(name=f"area-{number // 20}.{duty}")
    reasons: dict[str, dict[str, Any]] = {
        "off": {"disabled_reason": said("the partner is closed"), "disabled_by": world.people["operator"]},
        "tripped": {"disabled_reason": SAME_TYPE_IN_A_ROW(type="KeyError", servers=["srv-1", "srv-2"])},
    }
    return LaunchSetting.objects.create(
        key=f"{prefix}-{number:03}-{duty}", agent=f"crowd.{duty}", pool=pool, destination=destination,
        provision_state=ProvisionState.READY, provisioned_hash="h", wanted_hash="h",
        enabled=fate in ("runs", "dead"), enablings=fate != "never",
        state_since=world.now - timedelta(minutes=7 * number + 1), **reasons.get(fate, {}),
    )  # fmt: skip


def _live(world: "World", setting: LaunchSetting, fate: str) -> None:
    if fate in ("never", "off"):
        return
    tripped = fate == "tripped"
    activation = Activation.objects.create(
        setting=setting, state=ActivationState.INTERRUPTED if tripped else ActivationState.RUNNING,
        started_at=setting.state_since, ended_at=world.now if tripped else None, last_epoch=1,
    )  # fmt: skip
    world.activations[setting.key] = activation
    if tripped:
        BreakerTrip.objects.create(
            setting=setting, activation=activation, reason="same_type", exception_type="KeyError",
            quorum={"needed": 2, "interrupted": ["srv-1", "srv-2"], "live": [], "rule": "majority"},
            at=setting.state_since,
        )  # fmt: skip
        return
    world.runs[setting.key, "srv-1"] = Run.objects.create(
        activation=activation, server=world.servers["srv-1"], epoch=1, state=RunPhase.RUNNING,
        connected=True, handled=world.dice.randrange(9_000), reported_at=world.now,
        created_at=activation.started_at,
    )  # fmt: skip


def _letters(world: "World", settings: list[LaunchSetting], count: int) -> None:
    """The first setting has the most of them."""
    if not settings:
        return
    first = DeadLetter.objects.order_by("-orig_message_id").values_list("orig_message_id", flat=True).first()
    weights = [1 / (place + 1) for place in range(len(settings))]
    rows = []
    for number, setting in enumerate(world.dice.choices(settings, weights, k=count), start=(first or 0) + 1):
        at = world.now - timedelta(seconds=world.dice.randrange(400_000))
        row = DeadLetter(
            node_id="9f1c2c5a-5b8e-11f0-9d5a-0242ac120002", queue=f"DLQ.{setting.key}",
            orig_message_id=number, setting=setting, setting_key=setting.key,
            address=setting.subscribed.name, orig_queue=setting.key, message_key=f"ID:{number}",
            message_id=f"ID:{number}", body_kind="value", jms_kind=5, size=9, delivery_count=4,
            exception_type="KeyError", fingerprint="v1:0123456789abcdef", seen_at=at, state_at=at,
            words_without="none",
        )  # fmt: skip
        row.encoded, row.body_text = b"", f"order {number}"
        rows.append(row)
    rows.sort(key=lambda row: row.seen_at)
    insert(rows)
