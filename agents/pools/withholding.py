"""Why a run that is wanted is left out of what its server is sent."""

from django.db.models import QuerySet

from agents.models import LaunchSetting, Run, Withheld
from agents.models.activation import OPEN_ACTIVATIONS
from agents.models.parameters import UnreadableJson
from contract.wire import DEEPEST, deeper_than


class NotSent(ValueError):
    """This run is not sent. Its row keeps the code, the page of the setting says it."""

    def __init__(self, because: Withheld) -> None:
        super().__init__(because.value)
        self.because = because


def why_not_sent(setting: LaunchSetting) -> Withheld | None:
    """What the setting and its pool say of it; None where nothing keeps its runs from being sent."""
    if not setting.pool.allows(setting.agent):
        return Withheld.AGENT_NOT_ALLOWED
    if isinstance(setting.parameters, UnreadableJson):
        return Withheld.PARAMETERS_UNREADABLE
    if deeper_than(setting.parameters, DEEPEST):
        return Withheld.PARAMETERS_TOO_DEEP
    return None


def withheld_runs() -> QuerySet[Run]:
    """Of every server, by setting. Only what is wanted now."""
    runs = Run.objects.filter(
        wanted=True, closed_at=None, activation__state__in=OPEN_ACTIVATIONS, activation__ending=""
    )
    return runs.filter(activation__setting__enabled=True).exclude(withheld_because="")


def settings_not_allowed() -> list[LaunchSetting]:
    """Enabled ones whose pool does not allow their agent, by key: whether or not a run of them is wanted
    now."""
    listed = LaunchSetting.objects.filter(enabled=True, pool__allowed_agents__isnull=False)
    return [one for one in listed.select_related("pool").order_by("key") if not one.pool.allows(one.agent)]
