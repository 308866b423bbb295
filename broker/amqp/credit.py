"""Credit that the broker has spent on messages that it cannot deliver, and how it is given anew. Pure.

A message that the broker cannot turn into AMQP (docs/explanation/broker.md, "Messages that the broker cannot
deliver") takes a credit and never comes: nothing tells the receiver. With a window of n, n such messages
would end a subscription without a word. What is spent so stays spent for the life of the link: the broker
subtracts it from every later credit.

The only way to see it: ask the quiet link for more than the window, with a drain. Where the queue is empty,
the broker gives everything back and nothing has changed. Where something comes, what did not come of the
credit was spent before, or the message came into the queue at this very moment and was its last. So one probe
makes a suspicion, and only a second one that something comes of is believed. Each probe asks for one more
than the last, because it may itself meet such a message.

The answer to a drain takes back all credit, also that of a large message of which the broker has sent a part:
the rest waits for a credit. It is given at once. The broker spends it on that message, the receiver counts it
as unspent until the next drain is answered.
"""

from dataclasses import dataclass

# Seconds without a delivery after which a link that has credit is probed, and between two probes.
QUIET = 1.0
# As many credits above the window as a probe asks for at most; then it begins at one again.
MOST_EXTRA = 64
# Seconds within which the rest of a large message must begin to come; see `AmqpConsumer`.
PART_SECONDS = 60.0
# Seconds within which the broker must answer a drain, which takes it milliseconds.
DRAIN_SECONDS = 10.0


@dataclass(slots=True)
class Credit:
    """Of one link. `lost`: how many credits on the wire are believed to be spent; never more than those.
    `resumed`: how many more the broker has spent on going on with a message that a drain had cut off.
    `_suspected`: how many are lost at most, by the last probe that something came of; 0 where there is no
    suspicion."""

    lost: int = 0
    resumed: int = 0
    _suspected: int = 0
    _probed_at: float = 0.0
    _quiet_since: float = 0.0
    _extra: int = 0
    _asked: int = 0
    _came: int = 0

    @property
    def probing(self) -> bool:
        """The broker has not answered the drain yet: credit given now would end it."""
        return self._asked > 0

    @property
    def spent(self) -> int:
        """Credits on the wire that bring nothing."""
        return self.lost + self.resumed

    def missing(self, window: int, unsettled: int, on_wire: int) -> int:
        """As many credits are missing to keep the window open."""
        return window - unsettled - (on_wire - self.spent)

    def delivered(self, now: float, on_wire: int) -> None:
        """A delivery came, or a part of one; so many credits are left on the wire. More came than the window
        allows? Then they were not lost."""
        self._quiet_since = now
        self._came += 1
        self.resumed = min(self.resumed, on_wire)
        if (
            not self.probing
        ):  # else the answer to the drain may have been read already: nothing is left on the wire
            self.lost = min(self.lost, on_wire - self.resumed)
            self._suspected = min(self._suspected, on_wire - self.resumed)
            self._extra = 0

    def due(self, now: float) -> float:
        """Seconds until the next probe, or until the answer to this one is overdue."""
        if self.is_overdue(now):
            return DRAIN_SECONDS
        return max(
            0.0, (self._probed_at + DRAIN_SECONDS if self.probing else self._quiet_since + QUIET) - now
        )

    def probe(self, now: float, on_wire: int) -> int:
        """How many credits a probe adds to those on the wire. A suspicion is asked for as a whole, and one
        more."""
        self._quiet_since = self._probed_at = now
        usable = on_wire - self.resumed
        self._extra = max(self._extra % MOST_EXTRA + 1, self._suspected + 1 - usable)
        self._asked, self._came = usable + self._extra, 0
        return self._extra

    def answered(self, on_wire: int) -> bool:
        """Whether the broker has answered the drain, or has used all of the credit: then it answers
        nothing."""
        return self.probing and on_wire <= self.resumed

    def is_overdue(self, now: float) -> bool:
        """The broker does not answer the drain. No more credit is given; the owner ends the link as soon as
        nothing is in hand. What it said of the last deliveries goes out before; what comes at that moment is
        not handed over, so it is in the queue again. Killed before or after: as after every lost
        connection."""
        return self.probing and now >= self._probed_at + DRAIN_SECONDS

    def cut_off(self, now: float) -> bool:
        """The broker has answered the drain in the middle of a message, for which one credit is to be given:
        as `probed`."""
        self._came += 1
        more = self.probed(now, 0)
        self.resumed = 1
        return more

    def probed(self, now: float, on_wire: int) -> bool:
        """The broker has given back what it did not use; whether more is known to be lost than before."""
        asked, self._asked = self._asked, 0
        self._quiet_since = now
        self.resumed = min(self.resumed, on_wire)
        if self._came == 0:
            return False
        self._extra, before, unused = 0, self._suspected, asked - self._came
        self.lost = min(self.lost, unused)
        self._suspected = 0 if before or unused <= self.lost else unused
        if not before or min(before, unused) <= self.lost:
            return False
        # If the queue was at its end both times, this is too much: the next delivery beyond the window shows
        # it.
        self.lost = min(before, unused)
        return True
