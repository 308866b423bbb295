"""The fields of a setting in plain groups, each with what follows from it."""

import json
from dataclasses import dataclass
from datetime import timedelta

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.models import Destination, LaunchSetting, OfferedAgent, Server, Spread
from agents.models.setting import AckMode
from agents.pages import amounts
from agents.pages.consoles import Text
from contract.breaker import same_limit
from contract.properties import dead_letter_queue
from contract.redelivery import PlannedDelivery, schedule

FEW_FAILURES = 6
SHOWN_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class Fact:
    """`follows` is the consequence of the value; `warns` when somebody should think about it."""

    name: Text
    value: Text
    follows: Text = ""
    warns: bool = False
    code: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    title: Text
    facts: list[Fact]


def groups(setting: LaunchSetting, servers: list[Server], offered: list[OfferedAgent]) -> list[Group]:
    """`servers` are the pool's, `offered` what these offer under the agent's name."""
    return [
        Group(_("What"), _what(setting, servers, offered)),
        Group(_("When"), [Fact(_("Timing"), setting.get_timing_display(), _timing(setting))]),
        Group(_("Where"), _where(setting, servers)),
        Group(_("Limits"), _limits(setting)),
        Group(_("After a failure"), after_failure(setting)),
    ]


def _timing(setting: LaunchSetting) -> str:
    if setting.enabled:
        return _("Handles messages as they come, until it is switched off.")
    return _("It is off: its messages wait in its subscription, and a new activation goes on with them.")


def _what(setting: LaunchSetting, servers: list[Server], offered: list[OfferedAgent]) -> list[Fact]:
    facts = [Fact(_("Agent"), setting.agent, *_offers(servers, offered), code=True)]
    if setting.description:
        facts.append(Fact(_("Description"), setting.description))
    modes = {
        AckMode.TRANSACTED.value: _("The message and all that the agent sends commit or roll back together."),
        AckMode.AUTO.value: _("Acknowledged when the agent returns; what it sent before a failure stays sent."),
    }
    facts.append(Fact(_("Acknowledgement"), setting.get_mode_display(), modes.get(setting.mode, "")))
    if setting.isolate:
        facts.append(Fact(_("Isolation"), _("a new process after each failure"), _("Safer and slower.")))
    if setting.parameters:
        facts.append(Fact(_("Parameters"), json.dumps(setting.parameters, ensure_ascii=False), code=True))
    if setting.masked_properties:
        masked = ", ".join(setting.masked_properties)
        facts.append(
            Fact(_("Masked properties"), masked, _("Their values are never stored with a failure."), code=True)
        )
    return facts


def _offers(servers: list[Server], offered: list[OfferedAgent]) -> tuple[str, bool]:
    having = {agent.server_id: agent for agent in offered}
    missing = [server.name for server in servers if server.pk not in having]
    if not servers:
        return _("The pool has no server: nothing can run."), True
    if len(missing) == len(servers):
        return _("No server of the pool offers it: it cannot start."), True
    versions = ", ".join(sorted({agent.version for agent in offered if agent.version}))
    told = _("Offered by every server of the pool") if not missing else ""
    if missing:
        told = _("Not offered by %(servers)s") % {"servers": ", ".join(missing)}
    return (f"{told} · {_('version')} {versions}." if versions else f"{told}."), bool(missing)


def _where(setting: LaunchSetting, servers: list[Server]) -> list[Fact]:
    fenced = _("The broker feeds one server at a time; another takes over when that one is lost.")
    every = _("Every live server of the pool takes messages; each message goes to one of them.")
    handlers = setting.concurrency * (len(servers) if setting.spread == Spread.MANY else 1)
    at_once = ngettext("At most %(n)s message at a time.", "At most %(n)s messages at a time.", handlers)
    names = ", ".join(server.name for server in servers) or _("no server")
    subscription = _(
        "Made on the broker when the setting was saved: it gathers messages from then on, also while it is off."
    )
    broker = [
        Fact(_("Destination"), setting.subscribed.name, code=True),
        Fact(_("Subscription"), setting.key, subscription, code=True),
    ]
    return [
        *(broker if setting.takes_messages else []),
        Fact(_("Pool"), f"{setting.pool.name}: {names}"),
        Fact(_("Spread"), setting.get_spread_display(), fenced if setting.spread == Spread.ANY else every),
        Fact(_("Handlers per server"), amounts.number(setting.concurrency), at_once % {"n": amounts.number(handlers)}),
    ]


def _limits(setting: LaunchSetting) -> list[Fact]:
    handling, transaction = setting.handling_timeout_seconds, setting.transaction_timeout_seconds
    facts = [
        Fact(
            _("Handling timeout"),
            _seconds(handling),
            _("Longer handling is ended and counts as a failure.")
            if handling
            else _("A handler that hangs is never ended."),
        )
    ]
    if setting.mode == AckMode.TRANSACTED:
        facts.append(Fact(_("Transaction timeout"), _seconds(transaction)))
    facts.append(
        Fact(
            _("Grace period"),
            _seconds(setting.grace_seconds),
            _("How long messages at hand may finish when it is stopped."),
        )
    )
    if setting.child_memory_mb:
        bound = _("%(n)s MB") % {"n": amounts.number(setting.child_memory_mb)}
        facts.append(
            Fact(_("Memory of a process"), bound, _("A process that wants more is replaced: a failure like any other."))
        )
    return facts


def _seconds(value: float) -> str:
    return amounts.duration(value) if value else _("none")


def after_failure(setting: LaunchSetting) -> list[Fact]:
    if not setting.takes_messages:
        return [_breaker(setting)]
    policy = setting.subscribed.policy
    attempts = _("without end") if policy.max_attempts < 0 else amounts.number(policy.max_attempts)
    queue = dead_letter_queue(setting.key)
    dead = _("After the last attempt the message is kept in %(queue)s.") % {"queue": queue}
    if policy.max_attempts < 0:
        dead = _("A message that always fails is tried for ever and never becomes a dead letter.")
    return [
        Fact(_("Maximum attempts"), attempts, dead, warns=policy.max_attempts < 0),
        Fact(
            _("Delay"),
            _delay(setting.subscribed),
            _("Belongs to the destination: settings that share it share the delays."),
        ),
        _breaker(setting),
    ]


def _delay(destination: Destination) -> str:
    policy = destination.policy
    text = _("%(first)s, then × %(multiplier)s, at most %(longest)s") % {
        "first": amounts.duration(policy.delay / 1000),
        "multiplier": f"{policy.multiplier:g}",
        "longest": amounts.duration(policy.longest / 1000),
    }
    if policy.collision_avoidance:
        text += _(", ± %(percent)s %%") % {"percent": f"{policy.collision_avoidance * 100:g}"}
    return text


def _breaker(setting: LaunchSetting) -> Fact:
    limit, m = same_limit(setting.breaker_m), setting.breaker_m
    value = _("%(same)s of one type, or %(any)s of any, in a row") % {
        "same": amounts.number(limit),
        "any": amounts.number(m),
    }
    follows = _("Counts are kept and shown on this page; nothing is switched off by them yet.")
    return Fact(_("Breaker"), value, follows)


def breaker_warnings(setting: LaunchSetting) -> list[str]:
    """What the breaker of this setting would do to a quiet queue, and how little trips it."""
    limit = same_limit(setting.breaker_m)
    attempts = setting.subscribed.max_attempts if setting.takes_messages else 0
    warnings = []
    if attempts < 0 or limit <= attempts:
        text = ngettext(
            "One bad message alone on a quiet queue reaches the breaker's limit after %(n)s attempt, "
            "before it is dead.",
            "One bad message alone on a quiet queue reaches the breaker's limit after %(n)s attempts, "
            "before it is dead.",
            limit,
        )
        ways = _("Ways out: a larger limit, or fewer attempts at the destination.")
        warnings.append(f"{text % {'n': amounts.number(limit)}} {ways}")
    if setting.breaker_m < FEW_FAILURES:
        text = ngettext(
            "With this limit already %(n)s failure of one type in a row counts as a trip.",
            "With this limit already %(n)s failures of one type in a row count as a trip.",
            limit,
        )
        warnings.append(text % {"n": amounts.number(limit)})
    return warnings


@dataclass(frozen=True, slots=True)
class Preview:
    """The redelivery schedule as it is drawn; `left_out` attempts lie between the last two shown."""

    attempts: list[tuple[PlannedDelivery, str]]
    left_out: int
    total: str
    endless: bool


def preview(destination: Destination) -> Preview:
    policy = destination.policy
    planned = schedule(policy, limit=max(1, min(policy.max_attempts, 10_000)) if policy.max_attempts >= 0 else 10)
    shown = [*planned[: SHOWN_ATTEMPTS - 1], planned[-1]] if len(planned) > SHOWN_ATTEMPTS else planned
    return Preview(
        attempts=[(each, _band(each)) for each in shown],
        left_out=len(planned) - len(shown),
        total=_band(planned[-1]),
        endless=policy.max_attempts < 0,
    )


def _band(planned: PlannedDelivery) -> str:
    if planned.latest == timedelta():
        return _("at once")
    if planned.earliest == planned.latest:
        return amounts.duration(planned.latest)
    return f"{amounts.duration(planned.earliest)} – {amounts.duration(planned.latest)}"
