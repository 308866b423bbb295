"""The fields of a setting in plain groups, each with what follows from it."""

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.destinations.redelivery import policy_facts
from agents.models import LaunchSetting, OfferedAgent, PoisonPolicy, Server, Spread, Timing
from agents.models.parameters import text_of
from agents.models.setting import AckMode
from agents.pages.states import when
from console.ui import amounts
from console.ui.page import Fact, Group
from contract.breaker import same_limit

FEW_FAILURES = 6


def groups(setting: LaunchSetting, servers: list[Server], offered: list[OfferedAgent]) -> list[Group]:
    """`servers` are the pool's, `offered` what these offer under the agent's name."""
    return [
        Group(_("What"), _what(setting, servers, offered)),
        Group(_("When"), when(setting)),
        Group(_("Where"), _where(setting, servers)),
        Group(_("Limits"), _limits(setting)),
        Group(_("After a failure"), after_failure(setting)),
    ]


def _what(setting: LaunchSetting, servers: list[Server], offered: list[OfferedAgent]) -> list[Fact]:
    facts = [Fact(_("Agent"), setting.agent, *_offers(servers, offered), code=True)]
    if setting.description:
        facts.append(Fact(_("Description"), setting.description))
    facts.append(Fact(_("Kind"), setting.get_kind_display(), _kind(setting)))
    modes = {
        AckMode.TRANSACTED.value: _(
            "Message processing and everything that the agent sends are committed or rolled back together."
        ),
        AckMode.AUTO.value: _(
            "A message is acknowledged when the agent finishes processing it. Messages that the "
            "agent sent are delivered at that moment. After a failure, they are not delivered."
        ),
        AckMode.CLIENT.value: _(
            "Each message waits until the agent, another process or an operator commits it or rolls it back."
        ),
        AckMode.DUPS_OK.value: _(
            "Messages are acknowledged in batches. If a server crashes, about one batch is redelivered."
        ),
    }
    if setting.takes_messages:
        facts.append(Fact(_("Acknowledgement"), setting.get_mode_display(), modes.get(setting.mode, "")))
    if setting.isolate:
        facts.append(Fact(_("Isolation"), _("a new process after each failure"), _("Safer but slower.")))
    if setting.parameters:
        facts.append(Fact(_("Parameters"), text_of(setting.parameters), code=True))
    if setting.masked_properties:
        masked = ", ".join(setting.masked_properties)
        facts.append(
            Fact(
                _("Masked properties"),
                masked,
                _("The values of these properties are never stored in failure protocols."),
                code=True,
            )
        )
    return facts


def _kind(setting: LaunchSetting) -> str:
    if setting.takes_messages:
        return _("The agent is called once per message.")
    return _("The agent is called once per activation and receives no messages.")


def _offers(servers: list[Server], offered: list[OfferedAgent]) -> tuple[str, bool]:
    having = {agent.server_id: agent for agent in offered}
    missing = [server.name for server in servers if server.pk not in having]
    if not servers:
        return _("The pool has no servers: nothing can run."), True
    if len(missing) == len(servers):
        return _("The setting cannot start: no server in the pool has the agent."), True
    versions = ", ".join(sorted({agent.version for agent in offered if agent.version}))
    told = _("Available on every server in the pool") if not missing else ""
    if missing:
        told = _("Not available on %(servers)s") % {"servers": ", ".join(missing)}
    versioned = f"{told} · " + _("version") + f" {versions}."
    return versioned if versions else f"{told}.", bool(missing)


def _where(setting: LaunchSetting, servers: list[Server]) -> list[Fact]:
    names = ", ".join(server.name for server in servers) or _("no servers")
    pool = Fact(_("Pool"), f"{setting.pool.name}: {names}")
    spread = Fact(_("Placement"), setting.get_spread_display(), _spread(setting))
    if not setting.takes_messages:
        return [pool, spread]
    handlers = setting.concurrency * (
        len(servers) if setting.spread == Spread.MANY and not setting.ordered else 1
    )
    at_once = ngettext("At most %(n)s message at a time.", "At most %(n)s messages at a time.", handlers)
    subscription = _(
        "The subscription was created on the broker when the setting was saved. It receives "
        "messages even while the setting is disabled."
    )
    return [
        Fact(_("Destination"), setting.subscribed.name, code=True),
        Fact(_("Subscription"), setting.key, subscription, code=True),
        pool,
        spread,
        Fact(
            _("Concurrent messages per server"),
            amounts.number(setting.concurrency),
            at_once % {"n": amounts.number(handlers)},
        ),
    ]


def _spread(setting: LaunchSetting) -> str:
    if setting.takes_messages:
        if setting.feeds_one:
            return _(
                "The broker delivers messages to one server at a time. If that server goes offline, "
                "another server takes over."
            )
        return _("Every online server in the pool receives messages. Each message goes to only one server.")
    if setting.spread == Spread.ANY:
        return _(
            "The setting runs on one server. If that server goes offline, another server takes "
            "over once the old instance has ended."
        )
    return _("The setting runs on every online server in the pool.")


def _limits(setting: LaunchSetting) -> list[Fact]:
    handling, transaction = setting.handling_timeout_seconds, setting.transaction_timeout_seconds
    facts = [
        Fact(
            _("Processing timeout"),
            _seconds(handling),
            _("Processing that exceeds the timeout is terminated and counts as a failure.")
            if handling
            else _("Processing that hangs is never terminated."),
        )
    ]
    if setting.takes_messages and setting.mode == AckMode.TRANSACTED:
        facts.append(Fact(_("Transaction timeout"), _seconds(transaction)))
    if setting.takes_messages and setting.mode == AckMode.DUPS_OK:
        facts.append(Fact(_("Acknowledgement batch size"), amounts.number(setting.dups_ok_messages)))
        facts.append(Fact(_("Longest acknowledgement delay"), _seconds(setting.dups_ok_seconds)))
    if setting.takes_messages and setting.mode == AckMode.CLIENT:
        facts.append(Fact(_("Acknowledgement timeout"), _seconds(setting.acknowledgement_timeout_seconds)))
    facts.append(
        Fact(
            _("Grace period"),
            _seconds(setting.grace_seconds),
            _("Time allowed for messages in progress to finish after a stop."),
        )
    )
    if setting.child_memory_mb:
        bound = _("%(n)s MB") % {"n": amounts.number(setting.child_memory_mb)}
        facts.append(
            Fact(
                _("Memory per process"),
                bound,
                _("A process that exceeds the memory limit is replaced. This counts as a failure."),
            )
        )
    return [*facts, *_goal(setting)]


def _goal(setting: LaunchSetting) -> list[Fact]:
    if not setting.takes_messages or not setting.goal_seconds:
        return []
    share = f"{setting.goal_percent:g}"
    text = _("%(share)s %% of messages processed within %(time)s")
    told = text % {"share": share, "time": amounts.duration(setting.goal_seconds)}
    return [Fact(_("Goal"), told, _("Time from sending to the end of processing, measured over 30 days."))]


def _seconds(value: float) -> str:
    return amounts.duration(value) if value else _("none")


def after_failure(setting: LaunchSetting) -> list[Fact]:
    if not setting.takes_messages:
        return [*_restart(setting), *_breaker(setting)]
    return [
        *policy_facts(setting),
        *_order(setting),
        _exhausted(setting),
        *_repeats(setting),
        *_breaker(setting),
    ]


def _repeats(setting: LaunchSetting) -> list[Fact]:
    if not setting.duplicate_key:
        return []
    note = _(
        "If a server has processed a message successfully within the last %(time)s, it "
        "acknowledges a repeat of that message without calling the agent."
    )
    window = amounts.duration(setting.duplicate_window_seconds)
    return [Fact(_("Identify repeats by"), setting.duplicate_key, note % {"time": window})]


def _order(setting: LaunchSetting) -> list[Fact]:
    if not setting.ordered:
        return []
    wait = setting.blocked_seconds
    again = _("on request") if wait < 0 else _("immediately") if not wait else amounts.duration(wait)
    note = _(
        "One message at a time across all servers. A failed message stays first, regardless "
        "of the destination's redelivery delays."
    )
    return [Fact(_("Ordered: retry"), again, note)]


def _exhausted(setting: LaunchSetting) -> Fact:
    notes = {
        PoisonPolicy.EXCEPTION.value: _(
            "A marked copy is sent to the exception destination. If the destination cannot accept "
            "it, the message is dead-lettered."
        ),
        PoisonPolicy.STAY.value: _("The message is retried without limit, and all other messages wait."),
        PoisonPolicy.DISCARD.value: _("The message is deleted; its failure protocol and a log entry remain."),
    }
    to = setting.exception_destination if setting.after_last == PoisonPolicy.EXCEPTION else ""
    text = f"{setting.get_after_last_display()} {to}".strip()
    return Fact(_("After the last attempt"), text, notes.get(setting.after_last, ""))


def _restart(setting: LaunchSetting) -> list[Fact]:
    if setting.timing == Timing.DELAYED:
        return []
    return [Fact(_("Restart"), _("after %(time)s") % {"time": amounts.duration(setting.restart_seconds)})]


def _breaker(setting: LaunchSetting) -> list[Fact]:
    limit, m = same_limit(setting.breaker_m), setting.breaker_m
    value = _("consecutive failures: %(same)s of one type, or %(any)s of any type") % {
        "same": amounts.number(limit),
        "any": amounts.number(m),
    }
    facts = [Fact(_("Breaker"), value, _at_the_limit(setting))]
    if setting.count_once:
        facts.append(
            Fact(
                _("Counting"),
                _("each message once"),
                _("Repeated failures of one message count as one."),
            )
        )
    if setting.try_one_first:
        follows = _(
            "If it succeeds, processing continues at full speed. If it fails, the setting is "
            "disabled again and the trip is reopened."
        )
        facts.append(Fact(_("After enabling"), _("one message is tried first"), follows))
    return facts


def _at_the_limit(setting: LaunchSetting) -> str:
    if setting.spread == Spread.MANY:
        return _(
            "When a server reaches the threshold, the setting is interrupted on that server. "
            "After interruptions on two servers, it is disabled everywhere."
        )
    if not setting.takes_messages:
        return _("When the threshold is reached, the setting is disabled until someone re-enables it.")
    return _(
        "When the threshold is reached, the setting is disabled until someone re-enables it. "
        "Its messages wait in the subscription."
    )


def breaker_warnings(setting: LaunchSetting) -> list[str]:
    """Returns what the breaker of this setting does to a quiet queue, and how little trips it."""
    return [warning for warning in (_alone(setting), _few(setting)) if warning]


def _alone(setting: LaunchSetting) -> str:
    """One message that always fails, on a queue without others, counts as often as it is tried."""
    if not setting.takes_messages or setting.count_once:
        return ""
    limit, attempts = same_limit(setting.breaker_m), setting.subscribed.max_attempts
    if 0 <= attempts < limit:
        return ""
    if setting.spread == Spread.MANY and attempts == limit:
        text = ngettext(
            "On a quiet queue, one bad message can interrupt this setting on a server when the "
            "last attempt (no. %(n)s) fails.",
            "On a quiet queue, one bad message can interrupt this setting on a server when the "
            "last attempt (no. %(n)s) fails.",
            limit,
        )
    elif setting.spread == Spread.MANY:
        text = ngettext(
            "On a quiet queue, one bad message can interrupt this setting on a server after %(n)s "
            "attempt, before the message is dead-lettered.",
            "On a quiet queue, one bad message can interrupt this setting on a server after %(n)s "
            "attempts, before the message is dead-lettered.",
            limit,
        )
    elif attempts == limit:
        text = ngettext(
            "On a quiet queue, one bad message disables this setting when the last attempt (%(n)s) fails.",
            "On a quiet queue, one bad message disables this setting when the last attempt (%(n)s) fails.",
            limit,
        )
    else:
        text = ngettext(
            "On a quiet queue, one bad message disables this setting after %(n)s attempt, before "
            "the message is dead-lettered.",
            "On a quiet queue, one bad message disables this setting after %(n)s attempts, before "
            "the message is dead-lettered.",
            limit,
        )
    ways = _(
        "To avoid this, count each message once, raise the threshold, or reduce the "
        "destination's maximum attempts."
    )
    return f"{text % {'n': amounts.number(limit)}} {ways}"


def _few(setting: LaunchSetting) -> str:
    if setting.breaker_m >= FEW_FAILURES:
        return ""
    limit = same_limit(setting.breaker_m)
    text = ngettext(
        "At this threshold, %(n)s failure is enough to trip the breaker.",
        "At this threshold, %(n)s consecutive failures of one type are enough to trip the breaker.",
        limit,
    )
    return text % {"n": amounts.number(limit)}
