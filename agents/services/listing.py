"""Activations as lists show them: narrowed by what has an index, newest first, to be read page by page by
key."""

from dataclasses import dataclass

from django.db.models import Exists, F, OuterRef, QuerySet

from agents.models import Activation, LaunchSetting, Run, Server


@dataclass(frozen=True, slots=True)
class Listed:
    """`by` names the instant that orders the rows, newest first; `id` decides between equal ones."""

    rows: QuerySet[Activation]
    by: str


def activations(*, setting: str = "", state: str = "", server: str = "") -> Listed:
    """Keys and names that do not exist narrow it to nothing. Without `server` each row costs one step in an
    index.

    With it the rows are read by the server's own runs, each activation once, at its first run there: to look
    from each activation for a run would read a million of them to find that a new server has none."""
    rows = Activation.objects.select_related("setting", "started_by")
    if setting:
        # The id first: joined by key, PostgreSQL would not read the index in its order.
        rows = rows.filter(
            setting=LaunchSetting.objects.filter(key=setting).values_list("pk", flat=True).first() or 0
        )
    if state:
        rows = rows.filter(state=state)
    if not server:
        return Listed(rows.order_by("-started_at", "-id"), "started_at")
    place = Server.objects.filter(name=server).values_list("pk", flat=True).first() or 0
    rows = rows.filter(runs__server=place).annotate(
        began_there=F("runs__created_at"), epoch_there=F("runs__epoch")
    )
    before = Run.objects.filter(activation=OuterRef("pk"), server=place, epoch__lt=OuterRef("epoch_there"))
    return Listed(rows.filter(~Exists(before)).order_by("-began_there", "-id"), "began_there")
