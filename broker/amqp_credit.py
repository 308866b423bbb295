"""Credit that the broker has spent on messages that it cannot deliver, and how it is given anew. Pure.

A message that the broker cannot turn into AMQP (docs/broker.md, "Letters that go astray") takes a credit and never
comes: nothing tells the receiver. With a window of n, n such messages would end a subscription without a word. What is
spent so stays spent for the life of the link: the broker subtracts it from every later credit.

The only way to see it: ask the quiet link for more than the window, with a drain. Where the queue is empty, the broker
gives everything back and nothing has changed. Where something comes, what did not come of the credit was spent before.
Each probe asks for one more than the last, because it may itself meet such a message.

The answer to a drain takes back all credit, also that of a large message of which the broker has sent a part: the rest
waits for a credit. It is given at once. The broker spends it on that message, the receiver counts it as unspent until
the next drain is answered.
"""

from dataclasses import dataclass

# Seconds without a delivery after which a link that has credit is probed, and between two probes.
QUIET = 1.0
# As many credits above the window as a probe asks for at most; then it begins at one again.
MOST_EXTRA = 64
# Seconds within which the rest of a large message must begin to come; see `AmqpConsumer`.
PART_SECONDS = 60.0


@dataclass(slots=True)
class Credit:
    """Of one link. `lost`: how many credits on the wire are believed to be spent; never more than those. `resumed`: how
    many more the broker has spent on going on with a message that a drain had cut off."""

    lost: int = 0
    resumed: int = 0
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
        """A delivery came, or a part of one; so many credits are left on the wire. More came than the window allows?
        Then they were not lost."""
        self._quiet_since = now
        self._came += 1
        self.resumed = min(self.resumed, on_wire)
        self.lost = min(self.lost, on_wire - self.resumed)
        if not self.probing:
            self._extra = 0

    def due(self, now: float) -> float:
        """Seconds until the next probe."""
        return max(0.0, self._quiet_since + QUIET - now)

    def probe(self, now: float, on_wire: int) -> int:
        """How many credits a probe adds to those on the wire."""
        self._quiet_since = now
        self._extra = self._extra % MOST_EXTRA + 1
        self._asked, self._came = on_wire - self.resumed + self._extra, 0
        return self._extra

    def answered(self, on_wire: int) -> bool:
        """Whether the broker has answered the drain, or has used all of the credit: then it answers nothing."""
        return self.probing and on_wire <= self.resumed

    def cut_off(self, now: float) -> bool:
        """The broker has answered the drain in the middle of a message, for which one credit is to be given: as
        `probed`."""
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
        before, self._extra = self.lost, 0
        # Else the queue was at its end within: then this is too much, which the next delivery beyond the window shows.
        self.lost = asked - self._came
        return self.lost > before
