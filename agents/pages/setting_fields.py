"""The fields of a setting in plain groups, each with what follows from it."""

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.destinations.redelivery import policy_facts
from agents.models import LaunchSetting, OfferedAgent, PoisonPolicy, Server, Spread, Timing
from agents.models.parameters import text_of
from agents.models.setting import AckMode
from agents.pages.states import when
from console.ui import amounts
from console.ui.labels import Fact, Group
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
        AckMode.TRANSACTED.value: _("The message and all that the agent sends commit or roll back together."),
        AckMode.AUTO.value: _(
            "Acknowledged when the agent returns; what it sent goes out then, after a failure nothing."
        ),
        AckMode.CLIENT.value: _(
            "Each message waits until the agent, or somebody later, commits it or rolls it back."
        ),
        AckMode.DUPS_OK.value: _("Acknowledged in batches; a crash of a server repeats about one batch."),
    }
    if setting.takes_messages:
        facts.append(Fact(_("Acknowledgement"), setting.get_mode_display(), modes.get(setting.mode, "")))
    if setting.isolate:
        facts.append(Fact(_("Isolation"), _("a new process after each failure"), _("Safer and slower.")))
    if setting.parameters:
        facts.append(Fact(_("Parameters"), text_of(setting.parameters), code=True))
    if setting.masked_properties:
        masked = ", ".join(setting.masked_properties)
        facts.append(
            Fact(
                _("Masked properties"), masked, _("Their values are never stored with a failure."), code=True
            )
        )
    return facts


def _kind(setting: LaunchSetting) -> str:
    if setting.takes_messages:
        return _("Called once for each message.")
    return _("Called once for each activation; it takes no messages.")


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
    names = ", ".join(server.name for server in servers) or _("no server")
    pool = Fact(_("Pool"), f"{setting.pool.name}: {names}")
    spread = Fact(_("Spread"), setting.get_spread_display(), _spread(setting))
    if not setting.takes_messages:
        return [pool, spread]
    handlers = setting.concurrency * (
        len(servers) if setting.spread == Spread.MANY and not setting.ordered else 1
    )
    at_once = ngettext("At most %(n)s message at a time.", "At most %(n)s messages at a time.", handlers)
    subscription = _(
        "Made on the broker when the setting was saved: it gathers messages from then on, also while it is "
        "off."
    )
    return [
        Fact(_("Destination"), setting.subscribed.name, code=True),
        Fact(_("Subscription"), setting.key, subscription, code=True),
        pool,
        spread,
        Fact(
            _("Handlers per server"),
            amounts.number(setting.concurrency),
            at_once % {"n": amounts.number(handlers)},
        ),
    ]


def _spread(setting: LaunchSetting) -> str:
    if setting.takes_messages:
        if setting.feeds_one:
            return _("The broker feeds one server at a time; another takes over when that one is lost.")
        return _("Every live server of the pool takes messages; each message goes to one of them.")
    if setting.spread == Spread.ANY:
        return _(
            "It runs on one server; another takes over when that one was not heard for so long that it has "
            "ended."
        )
    return _("It runs on every live server of the pool.")


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
    if setting.takes_messages and setting.mode == AckMode.TRANSACTED:
        facts.append(Fact(_("Transaction timeout"), _seconds(transaction)))
    if setting.takes_messages and setting.mode == AckMode.DUPS_OK:
        facts.append(Fact(_("Acknowledged together"), amounts.number(setting.dups_ok_messages)))
        facts.append(Fact(_("Acknowledged after at most"), _seconds(setting.dups_ok_seconds)))
    if setting.takes_messages and setting.mode == AckMode.CLIENT:
        facts.append(Fact(_("Acknowledgement timeout"), _seconds(setting.acknowledgement_timeout_seconds)))
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
            Fact(
                _("Memory of a process"),
                bound,
                _("A process that wants more is replaced: a failure like any other."),
            )
        )
    return facts


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
    note = _("What a server has handled well within %(time)s it accepts without the agent.")
    window = amounts.duration(setting.duplicate_window_seconds)
    return [Fact(_("Repeats are known by"), setting.duplicate_key, note % {"time": window})]


def _order(setting: LaunchSetting) -> list[Fact]:
    if not setting.ordered:
        return []
    wait = setting.blocked_seconds
    again = _("when a person asks") if wait < 0 else _("at once") if not wait else amounts.duration(wait)
    note = _(
        "One message at a time over all servers: the failed one stays first, whatever its destination's "
        "delays."
    )
    return [Fact(_("Ordered: tried again"), again, note)]


def _exhausted(setting: LaunchSetting) -> Fact:
    notes = {
        PoisonPolicy.EXCEPTION.value: _("A marked copy goes there; what it cannot take is a dead letter."),
        PoisonPolicy.STAY.value: _("It is tried again without end, and all others wait behind it."),
        PoisonPolicy.DISCARD.value: _("It is gone: its protocol and a line in the log remain."),
    }
    to = setting.exception_destination if setting.after_last == PoisonPolicy.EXCEPTION else ""
    text = f"{setting.get_after_last_display()} {to}".strip()
    return Fact(_("After the last attempt"), text, notes.get(setting.after_last, ""))


def _restart(setting: LaunchSetting) -> list[Fact]:
    if setting.timing == Timing.DELAYED:
        return []
    return [
        Fact(_("Started again"), _("after %(time)s") % {"time": amounts.duration(setting.restart_seconds)})
    ]


def _breaker(setting: LaunchSetting) -> list[Fact]:
    limit, m = same_limit(setting.breaker_m), setting.breaker_m
    value = _("%(same)s of one type, or %(any)s of any, in a row") % {
        "same": amounts.number(limit),
        "any": amounts.number(m),
    }
    facts = [Fact(_("Breaker"), value, _at_the_limit(setting))]
    if setting.count_once:
        facts.append(
            Fact(
                _("Counts"),
                _("each message once"),
                _("Repeated failures of one message are one for the breaker."),
            )
        )
    if setting.try_one_first:
        follows = _("It succeeds: full speed. It fails: off again, by the same trip.")
        facts.append(Fact(_("After switching on"), _("one message is tried first"), follows))
    return facts


def _at_the_limit(setting: LaunchSetting) -> str:
    if setting.spread == Spread.MANY:
        return _(
            "A server that reaches it gives the setting up; two different servers switch it off everywhere."
        )
    if not setting.takes_messages:
        return _("Then it is switched off, and stays off until a person switches it on.")
    return _("Then it is switched off, and stays off until a person switches it on. Its messages wait.")


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
            "One bad message alone on a quiet queue can make a server give this setting up with its %(n)s "
            "attempt, as "
            "it becomes dead.",
            "One bad message alone on a quiet queue can make a server give this setting up with its last "
            "attempt of "
            "%(n)s, as it becomes dead.",
            limit,
        )
    elif setting.spread == Spread.MANY:
        text = ngettext(
            "One bad message alone on a quiet queue can make a server give this setting up after %(n)s "
            "attempt, "
            "before it is dead.",
            "One bad message alone on a quiet queue can make a server give this setting up after %(n)s "
            "attempts, "
            "before it is dead.",
            limit,
        )
    elif attempts == limit:
        text = ngettext(
            "One bad message alone on a quiet queue switches this setting off with its %(n)s attempt, as it "
            "becomes "
            "dead.",
            "One bad message alone on a quiet queue switches this setting off with its last attempt of "
            "%(n)s, as it "
            "becomes dead.",
            limit,
        )
    else:
        text = ngettext(
            "One bad message alone on a quiet queue switches this setting off after %(n)s attempt, before it "
            "is dead.",
            "One bad message alone on a quiet queue switches this setting off after %(n)s attempts, before "
            "it is dead.",
            limit,
        )
    ways = _("Ways out: count each message once, a larger limit, or fewer attempts at the destination.")
    return f"{text % {'n': amounts.number(limit)}} {ways}"


def _few(setting: LaunchSetting) -> str:
    if setting.breaker_m >= FEW_FAILURES:
        return ""
    limit = same_limit(setting.breaker_m)
    text = ngettext(
        "With this limit already %(n)s failure of one type trips the breaker.",
        "With this limit already %(n)s failures of one type in a row trip the breaker.",
        limit,
    )
    return text % {"n": amounts.number(limit)}
