"""When a setting runs, and when an activation of it ends."""

from django.utils.translation import gettext as _

from agents.models import LaunchSetting, Timing
from console.ui import amounts
from console.ui.labels import Fact


def when(setting: LaunchSetting) -> list[Fact]:
    facts = [Fact(_("Timing"), setting.get_timing_display(), _follows(setting))]
    if setting.timing == Timing.DELAYED and setting.takes_messages:
        facts += _drained(setting)
    return facts


def _follows(setting: LaunchSetting) -> str:
    if setting.timing == Timing.DELAYED:
        return _delayed(setting)
    if not setting.takes_messages:
        if setting.enabled:
            return _("Runs until it is switched off; when it returns by itself it waits for “run now”.")
        return _("It is off: nothing of it runs.")
    if setting.enabled:
        return _("Handles messages as they come, until it is switched off.")
    return _("It is off: its messages wait in its subscription, and a new activation goes on with them.")


def _delayed(setting: LaunchSetting) -> str:
    if not setting.enabled:
        return _("It is off: its schedule starts nothing.")
    if setting.takes_messages:
        return _("Each start handles what has gathered in its subscription, and ends.")
    return _("Each start runs the agent once, and ends when it returns or raises.")


def _drained(setting: LaunchSetting) -> list[Fact]:
    idle, wait = amounts.duration(setting.drain_idle_seconds), amounts.duration(setting.drain_wait_seconds)
    limited = setting.drain_limit_messages or setting.drain_limit_minutes
    when = (
        _("when its queue was empty for %(time)s")
        if limited
        else _("when what was there at its start is gone for %(time)s")
    )
    facts = [
        Fact(
            _("Ends"),
            when % {"time": idle},
            _("Messages that come later are taken too, up to the limit.")
            if limited
            else _("Messages that come later are not waited for: they are for the next start."),
        ),
        Fact(
            _("Delayed messages"),
            _("are waited for, at most %(time)s") % {"time": wait},
            _("When they have not come by then, it ends with an error."),
        ),
    ]
    if setting.drain_limit_messages:
        most = _("%(n)s messages per server") % {"n": amounts.number(setting.drain_limit_messages)}
        facts.append(Fact(_("At most"), most))
    if setting.drain_limit_minutes:
        facts.append(Fact(_("At most"), amounts.duration(60 * setting.drain_limit_minutes)))
    return facts
