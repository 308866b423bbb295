"""Every reason that rows of this app keep. `grep` for a code finds where it is given."""

from django.utils.translation import gettext_lazy as _

from console.reasons import ReasonKind

# -- why a replay stopped, or did not do all --
TRIPPED = ReasonKind("replay.tripped", _("Stopped automatically: the breaker disabled the setting."))
DISABLED = ReasonKind("replay.disabled", _("Stopped automatically: the setting was disabled."))
FAILING = ReasonKind("replay.failing", _("Stopped automatically: too many messages in a step failed again."))
BREAKER_COUNTS = ReasonKind(
    "replay.breaker_counts",
    _("Stopped automatically: the setting's breaker started counting failures."),
)
UNKNOWN = ReasonKind(
    "replay.unknown",
    _("Stopped automatically: too many messages in a step have had no outcome for an hour."),
)
STAYED = ReasonKind("replay.stayed", _("Messages not moved: %(n)s."))
HELD = ReasonKind(
    "replay.held",
    _(
        "Some messages (%(n)s) are being delivered to another consumer of %(queue)s. Close "
        "that consumer, then replay the messages again."
    ),
)
HOLD_STOPPED = ReasonKind("replay.hold_stopped", _("Stopped automatically: the subscription hold timed out."))
HOLD_OVER = ReasonKind(
    "replay.hold_over",
    _("The hold ended before all messages were processed. Messages placed after the waiting ones: %(n)s."),
)
REFUSED_BY = ReasonKind("replay.refused_by", _("rejected by %(person)s"))
WHY_STOPPED = {
    "tripped": TRIPPED,
    "disabled": DISABLED,
    "failing": FAILING,
    "breaker": BREAKER_COUNTS,
    "unknown": UNKNOWN,
    "hold_over": HOLD_STOPPED,
}

# -- why a message was not read whole --
NOT_THERE = ReasonKind("full_body.not_there", _("The message is no longer in the queue."))
TOO_DEEP = ReasonKind(
    "full_body.too_deep",
    _("Not found within four minutes: the message is too far from the head of its queue."),
)
TOO_LARGE = ReasonKind(
    "full_body.too_large", _("Larger than 100 MB: only the broker stores the whole message.")
)
OTHER_BROKER = ReasonKind(
    "full_body.other_broker", _("The message is on another broker, which is unreachable now.")
)
TRIED = ReasonKind("full_body.tried", _("Three attempts were interrupted."))

# -- what is wrong with the index of a queue --
STILL_DIFFERS = ReasonKind("queue.still_differs", _("counts differ after a full scan of the queue"))
NO_QUEUE = ReasonKind("queue.missing", _("the broker has no such queue"))
