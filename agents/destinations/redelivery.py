"""The redelivery policy of a destination as it is told and drawn: before it is saved, and at its settings."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.models import Destination, LaunchSetting, PoisonPolicy
from console.ui import amounts
from console.ui.page import Fact
from contract.names import dead_letter_queue
from contract.redelivery import PlannedDelivery, first_too_late, schedule

SHOWN_ATTEMPTS = 20
# Of a policy with more attempts the time until the dead-letter queue is told as more than that of these.
RECKONED_ATTEMPTS = 10_000
WITHOUT_END = 10
SHOWN_SETTINGS = 20


@dataclass(frozen=True, slots=True)
class Attempt:
    """`when` since the first failure, `delay` since the attempt before (empty for the first), as people read
    them."""

    number: int
    when: str
    delay: str


@dataclass(frozen=True, slots=True)
class Preview:
    """The schedule as it is drawn; `left_out` attempts lie between the last two shown. `gone`: what it is
    after the last one where it is no dead letter."""

    attempts: list[Attempt]
    left_out: int
    total: str
    endless: bool
    warnings: Sequence[str] = ()
    gone: str = ""
    at_once: bool = False


def preview(destination: Destination) -> Preview:
    policy = destination.policy
    endless = policy.max_attempts < 0
    planned = schedule(policy, limit=WITHOUT_END if endless else RECKONED_ATTEMPTS)
    shown = [*planned[: SHOWN_ATTEMPTS - 1], planned[-1]] if len(planned) > SHOWN_ATTEMPTS else planned
    total = band(planned[-1].earliest, planned[-1].latest)
    if policy.max_attempts > RECKONED_ATTEMPTS:
        total = _("more than %(time)s") % {"time": total}
    return Preview(
        attempts=[_attempt(each) for each in shown],
        left_out=len(planned) - len(shown),
        total=total,
        at_once=planned[-1].latest == timedelta(),
        endless=endless,
        warnings=[*_endless(destination), *_too_late(destination, planned)],
    )


def preview_of(setting: LaunchSetting) -> Preview | None:
    """Returns what becomes of a message of this setting that keeps failing. An ordered subscription has an
    interval of its own; None: there a person decides when it is tried again."""
    destination = setting.subscribed
    if not setting.ordered:
        return replace(preview(destination), gone=_gone(setting))
    if setting.blocked_seconds < 0:
        return None
    stays = setting.after_last == PoisonPolicy.STAY
    interval = round(setting.blocked_seconds * 1000)
    every = Destination(
        max_attempts=-1 if stays else destination.max_attempts,
        delay_ms=interval,
        multiplier=1.0,
        max_delay_ms=interval,
        expiry_ms=destination.expiry_ms,
    )
    told = replace(preview(every), gone=_gone(setting))
    return replace(told, warnings=[*told.warnings, *losses(setting)])


def losses(setting: LaunchSetting) -> list[str]:
    """The broker knows of no *stay*: what it counts itself has an end."""
    most = setting.subscribed.max_attempts
    if most < 0 or not setting.ordered or setting.after_last != PoisonPolicy.STAY:
        return []
    text = ngettext(
        "A server or broker crash may count as an attempt: after %(n)s crash the message is "
        "dead-lettered. To avoid this, set the destination's maximum attempts to −1.",
        "A server or broker crash may count as an attempt: after %(n)s crashes the message is "
        "dead-lettered. To avoid this, set the destination's maximum attempts to −1.",
        most,
    )
    return [text % {"n": amounts.number(most)}]


def _gone(setting: LaunchSetting) -> str:
    if setting.after_last == PoisonPolicy.DISCARD:
        return _("discarded")
    if setting.after_last == PoisonPolicy.EXCEPTION:
        name = setting.exception_destination
        return _("sent to %(name)s") % {"name": name} if name else _("sent to the exception destination")
    return ""


def band(least: timedelta, most: timedelta) -> str:
    if most == timedelta():
        return _("immediately")
    if least == most:
        return amounts.duration(most)
    return f"{amounts.duration(least)} – {amounts.duration(most)}"


def _attempt(planned: PlannedDelivery) -> Attempt:
    delay = band(planned.shortest, planned.longest) if planned.number > 1 else ""
    return Attempt(planned.number, band(planned.earliest, planned.latest), delay)


def _endless(destination: Destination) -> list[str]:
    if destination.max_attempts >= 0:
        return []
    if destination.expiry_ms is None:
        return [
            _(
                "A message whose processing always fails is retried without limit and never reaches "
                "the dead-letter queue."
            )
        ]
    return [_("A message that always fails is retried until it expires. Only then is it dead-lettered.")]


def _too_late(destination: Destination, planned: list[PlannedDelivery]) -> list[str]:
    if destination.expiry_ms is None:
        return []
    expiry = timedelta(milliseconds=destination.expiry_ms)
    late = first_too_late(planned, expiry)
    if late is None:
        return []
    text = _(
        "The expiry (%(expiry)s) is shorter than the redelivery schedule: a failing message "
        "may expire before attempt %(n)s. It is then dead-lettered at the time of its next "
        "attempt, and the remaining attempts are skipped."
    )
    return [text % {"expiry": amounts.duration(expiry), "n": amounts.number(late.number)}]


def policy_facts(setting: LaunchSetting) -> list[Fact]:
    """Returns what the destination's policy means for a setting that takes messages."""
    destination = setting.subscribed
    stays = setting.ordered and setting.after_last == PoisonPolicy.STAY
    endless = destination.max_attempts < 0 or stays
    attempts = _("unlimited") if endless else amounts.number(destination.max_attempts)
    queue = dead_letter_queue(setting.key)
    dead = ""
    if setting.after_last == PoisonPolicy.DLQ:
        dead = _("After the last attempt, the message goes to %(queue)s.") % {"queue": queue}
    warned = " ".join([*_endless(destination), *losses(setting)])
    facts = [Fact(_("Maximum attempts"), attempts, warned or dead, warns=endless)]
    if not setting.ordered:
        told = _("The delay is set on the destination and applies to all its settings.")
        facts.append(Fact(_("Delay"), _delay(destination), told))
    if destination.expiry_ms is not None:
        told = _("A message that is not processed within this time after its arrival goes to %(queue)s.") % {
            "queue": queue
        }
        facts.append(Fact(_("Expiry"), amounts.duration(destination.expiry_ms / 1000), told))
    facts.append(Fact(_("Shared with"), *_shared(setting, destination)))
    return facts


def facts_of_policy(destination: Destination) -> list[Fact]:
    """The policy by itself, whoever shares it."""
    endless = destination.max_attempts < 0
    attempts = _("unlimited") if endless else amounts.number(destination.max_attempts)
    expiry = destination.expiry_ms
    return [
        Fact(_("Maximum attempts"), attempts, warns=endless),
        Fact(_("Delay"), _delay(destination)),
        Fact(_("Expiry"), _("never") if expiry is None else amounts.duration(expiry / 1000)),
    ]


def _delay(destination: Destination) -> str:
    policy = destination.policy
    text = _("%(first)s, then × %(multiplier)s, at most %(longest)s") % {
        "first": amounts.duration(policy.delay / 1000),
        "multiplier": f"{policy.multiplier:g}",
        "longest": amounts.duration(policy.longest / 1000),
    }
    if policy.collision_avoidance:
        text += _(", ± %(percent)s%%") % {"percent": f"{policy.collision_avoidance * 100:g}"}
    return text


def _shared(setting: LaunchSetting, destination: Destination) -> tuple[str, str]:
    keys = LaunchSetting.objects.filter(destination=destination.pk).exclude(key=setting.key).order_by("key")
    others = list(keys.values_list("key", flat=True)[: SHOWN_SETTINGS + 1])
    if not others:
        return _("no other setting"), _("To change the policy, edit the destination.")
    names = ", ".join(others[:SHOWN_SETTINGS])
    told = _("A change to the destination applies to all these settings.")
    return (_("%(names)s and others") % {"names": names} if len(others) > SHOWN_SETTINGS else names), told
