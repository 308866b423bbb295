"""Every reason that rows of this app keep. `grep` for a code finds where it is given."""

from django.utils.translation import gettext_lazy as _

from console.reasons import ReasonKind

# -- why a replay stopped, or did not do all --
TRIPPED = ReasonKind(
    "replay.tripped", _("It stopped by itself because the breaker switched the setting off.")
)
DISABLED = ReasonKind("replay.disabled", _("It stopped by itself because the setting was switched off."))
FAILING = ReasonKind(
    "replay.failing", _("It stopped by itself because too many letters of a step failed again.")
)
BREAKER_COUNTS = ReasonKind(
    "replay.breaker_counts",
    _("It stopped by itself because the breaker of the setting began to count failures."),
)
UNKNOWN = ReasonKind(
    "replay.unknown",
    _("Stopped automatically: nothing was heard of too many messages of a step for an hour."),
)
STAYED = ReasonKind("replay.stayed", _("Messages that stayed where they were: %(n)s."))
HELD = ReasonKind(
    "replay.held",
    _(
        "Messages in delivery to another consumer of %(queue)s: %(n)s. Close that consumer, then replay them "
        "again."
    ),
)
HOLD_STOPPED = ReasonKind(
    "replay.hold_stopped", _("It stopped by itself because the time of holding the subscription was over.")
)
HOLD_OVER = ReasonKind(
    "replay.hold_over",
    _("The hold ended before all were handled: messages that followed behind what waits: %(n)s."),
)
REFUSED_BY = ReasonKind("replay.refused_by", _("refused by %(person)s"))
WHY_STOPPED = {
    "tripped": TRIPPED,
    "disabled": DISABLED,
    "failing": FAILING,
    "breaker": BREAKER_COUNTS,
    "unknown": UNKNOWN,
    "hold_over": HOLD_STOPPED,
}

# -- why a message was not read whole --
NOT_THERE = ReasonKind("full_body.not_there", _("It is not in the queue any more."))
TOO_DEEP = ReasonKind(
    "full_body.too_deep", _("It was not found within four minutes: it lies too deep in its queue.")
)
TOO_LARGE = ReasonKind("full_body.too_large", _("It is larger than 100 MB: only the broker keeps that."))
OTHER_BROKER = ReasonKind("full_body.other_broker", _("Another broker has it, which is not reached now."))
TRIED = ReasonKind("full_body.tried", _("Three tries were broken off."))

# -- what is wrong with the index of a queue --
STILL_DIFFERS = ReasonKind("queue.still_differs", _("the counts differ though the queue was walked whole"))
NO_QUEUE = ReasonKind("queue.missing", _("the broker has no such queue"))
