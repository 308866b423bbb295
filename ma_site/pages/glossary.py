"""The words of the product, one sentence each. The help of every page shows them as its second tab."""

from django.http import HttpRequest, HttpResponseBase
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from console.ui.page import page

TERMS = (
    (
        _("Launch setting"),
        _("Defines which agent processes the messages of a destination, on which servers, and when."),
    ),
    (
        _("Destination"),
        _("An address on the broker. Every setting subscribed to it gets a copy of each message."),
    ),
    (
        _("Subscription"),
        _("The queue of one setting on the broker. Messages wait there until an agent processes them."),
    ),
    (_("Server, KMA"), _("A host with a KMA: the agent container that takes messages and runs agents.")),
    (_("Activation"), _("The period from the start of a setting until it has stopped on all its servers.")),
    (_("Instance"), _("A launch setting running on one server, with its own counters.")),
    (_("Group run"), _("One execution of a scheduled group: its members run one after another.")),
    (
        _("Heartbeat"),
        _("A report that a KMA sends every few seconds. If heartbeats stop, the server is offline."),
    ),
    (
        _("Cordon, drain"),
        _(
            "A cordoned server gets no new instances. A drained server also finishes or hands "
            "over its running instances."
        ),
    ),
    (_("Failure protocol"), _("The record of one failed attempt: error, code location, message, server.")),
    (
        _("Error group, fingerprint"),
        _("Failures with the same error at the same location. The fingerprint is the id of the group."),
    ),
    (
        _("Known error"),
        _("An error group that someone has marked as known. It raises no alerts for a set time."),
    ),
    (
        _("Breaker, trip"),
        _(
            "The breaker counts consecutive failures. When it trips, the setting is disabled "
            "and its messages wait."
        ),
    ),
    (
        _("Interruption, quorum"),
        _(
            "An interruption stops a setting on one server. The breaker trips when the number of "
            "such servers reaches the quorum."
        ),
    ),
    (
        _("Dead letters"),
        _(
            "Messages that have no attempts left. The broker keeps them in the dead-letter queue "
            "of their setting."
        ),
    ),
    (_("Case file"), _("Everything known about one message: attempts, failures, replays, edits.")),
    (
        _("Message replay"),
        _("Moves dead letters back to the subscription of the setting where they failed."),
    ),
    (
        _("Pre-flight"),
        _("Before a replay starts, shows what it will do: target, selection, skipped messages, warnings."),
    ),
    (
        _("Ladder"),
        _(
            "Replays one message first, then larger and larger batches. Stops when too many "
            "messages fail again."
        ),
    ),
    (_("Second person"), _("Someone who approves a large replay that another user requested.")),
    (
        _("Redirect, discard, trash"),
        _(
            "Redirect moves a message to another setting or destination. Discard moves a message "
            "to the trash. It can be restored from there for a limited time."
        ),
    ),
    (_("Spool"), _("The disk buffer of a KMA. Reports stay there until the MA has stored them.")),
    (
        _("Epoch, lease"),
        _(
            "The epoch is the sequence number of a start. The lease is how long a server can work "
            "without the MA."
        ),
    ),
    (
        _("Archive, pipeline, insights"),
        _("The pipeline moves history into the archive and computes the trends that Insights shows."),
    ),
)


@require_safe
def glossary(request: HttpRequest) -> HttpResponseBase:
    return page(request, "ma_site/glossary.html", title=_("Glossary"), section="glossary", terms=TERMS)
