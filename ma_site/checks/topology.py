"""What is on the broker is what the settings want."""

from collections.abc import Iterator
from datetime import datetime

from agents.models import LaunchSetting, ProvisionState
from agents.services.provisioning import topology_differences
from broker.errors import BrokerError
from ma_site.checks.finding import Finding, bad, good, register


@register("topology", 60)
def check(now: datetime) -> Iterator[Finding]:
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
        yield good("found is as wanted")
