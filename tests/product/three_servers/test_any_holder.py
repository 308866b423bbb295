"""ANY: one holder is fed at a time, whatever happens to it. What happened is read from the agents' own
files."""

import time

from contract.names import dead_letter_queue
from tests.campaigns.campaign import LONG
from tests.product import scripted
from tests.product.three_servers import truth
from tests.product.three_servers.hall import LOST_AFTER, Hall, numbers
from tests.product.three_servers.truth import Event

# The broker drops a consumer that it has not heard for so many seconds (amqpIdleTimeout in its template).
BROKER_IDLE = 12
# Longer than both patiences, of the MA and of the broker. With an installation's own 15 s that would be 75.
FROZEN_SECONDS = 75 if LONG else LOST_AFTER + BROKER_IDLE + 5


def fed_one_at_a_time(begun: list[Event], holder: str, held: int) -> None:
    """After the successor began its first message the old holder begins none but those below `held`, which it
    had before: nothing new was fed to it."""
    successors = [event for event in begun if event.server != holder]
    assert successors, "nobody took over"
    late = [event.note for event in begun if event.server == holder and event.at > successors[0].at]
    assert all(note < held for note in late), f"fed beside its successor: {late}, held below {held}"


def test_a_killed_holder_is_followed_and_nothing_is_lost(hall: Hall) -> None:
    address = hall.launch("any-killed", spread="ANY")
    holder = hall.holder("any-killed")
    with hall.trickle(address) as published:
        hall.until("it is fed", lambda: len(hall.begun("any-killed")) >= 10)
        holder.kill()
        hall.until("another server goes on", lambda: holder.server not in hall.running("any-killed") != [])
        total = published()
        hall.until("it goes on", lambda: max(numbers(hall.begun("any-killed"))) > total)
        total = published()
    hall.empty("any-killed")
    begun = hall.begun("any-killed")
    assert set(range(total)) <= set(numbers(begun)), "every message was handled"
    assert hall.count(dead_letter_queue("any-killed")) == [0]
    lost, wanted = hall.runs("any-killed")[-2:]
    assert (lost["server"], lost["state"], lost["wanted"]) == (holder.server, "lost", False)
    assert wanted["epoch"] > lost["epoch"]
    holder.start()
    hall.all_alive()
    assert hall.running("any-killed") == [wanted["server"]], "it does not come back by itself"


def test_a_holder_stopped_by_a_signal_is_never_fed_beside_its_successor(hall: Hall) -> None:
    address = hall.launch("any-frozen", spread="ANY")
    holder = hall.holder("any-frozen")
    with hall.trickle(address) as published:
        hall.until("it is fed", lambda: len(hall.begun("any-frozen")) >= 10)
        holder.freeze()
        held = published() + 4  # some may be on their way
        frozen_at = time.monotonic()
        hall.until("another server is fed", lambda: bool(_others(hall, "any-frozen", holder.server)))
        time.sleep(max(0.0, FROZEN_SECONDS - (time.monotonic() - frozen_at)))
        holder.wake()
        total = published()
        hall.until("the successor goes on", lambda: max(numbers(hall.begun("any-frozen"))) > total)
        hall.until("the old one knows", lambda: not _is_open(hall, "any-frozen", holder.server))
        total = published()
        hall.until("and goes on", lambda: max(numbers(hall.begun("any-frozen"))) > total + 20)
        total = published()
    hall.empty("any-frozen")
    begun = hall.begun("any-frozen")
    fed_one_at_a_time(begun, holder.server, held)
    assert set(range(total)) <= set(numbers(begun)), "every message was handled"
    assert hall.consumers("any-frozen") == 1


def test_a_holder_without_the_ma_goes_on_and_its_successor_idles(hall: Hall) -> None:
    address = hall.launch("any-without-ma", spread="ANY")
    holder = hall.holder("any-without-ma")
    with hall.trickle(address) as published:
        holder.to_ma.cut()
        hall.until(
            "another is wanted too", lambda: hall.running("any-without-ma") not in ([], [holder.server])
        )
        total = published()
        hall.until("the messages go on", lambda: len(hall.begun("any-without-ma")) > total + 20)
        assert _others(hall, "any-without-ma", holder.server) == [], "the broker feeds the old one only"
        assert hall.consumers("any-without-ma") == 2
        holder.to_ma.mend()
        hall.until("the old one lets go", lambda: bool(_others(hall, "any-without-ma", holder.server)))
        held = published() + 4
        hall.until("the successor goes on", lambda: max(numbers(hall.begun("any-without-ma"))) > held + 20)
        total = published()
    hall.empty("any-without-ma")
    begun = hall.begun("any-without-ma")
    fed_one_at_a_time(begun, holder.server, held)
    assert numbers(begun).count(0) == 1
    assert sorted(numbers(begun)) == list(range(len(begun))), (
        "handed over in order: nothing twice, nothing lost"
    )


def test_a_holder_without_the_broker_stays_wanted_and_goes_on_when_it_is_back(hall: Hall) -> None:
    address = hall.launch("any-without-broker", spread="ANY")
    holder = hall.holder("any-without-broker")
    hall.publish(address, [scripted.ok(n) for n in range(5)])
    hall.until("it is fed", lambda: len(hall.begun("any-without-broker")) == 5)
    holder.to_broker.cut()
    hall.until("the broker drops it", lambda: hall.consumers("any-without-broker") == 0)
    hall.until("the MA is told", lambda: hall.running("any-without-broker") == [])
    hall.publish(address, [scripted.ok(n) for n in range(5, 10)])
    assert hall.count("any-without-broker") == [5], "they wait"
    assert [run["server"] for run in hall.runs("any-without-broker") if run["wanted"]] == [holder.server]
    assert holder.server in hall.alive()
    holder.to_broker.mend()
    hall.until("they are handled", lambda: hall.handled("any-without-broker") == set(range(10)))
    hall.empty("any-without-broker")
    assert {event.server for event in hall.begun("any-without-broker")} == {holder.server}
    assert len(hall.runs("any-without-broker")) == 1


def _others(hall: Hall, key: str, holder: str) -> list[Event]:
    return [event for event in truth.read(hall.truth_folder, key) if event.server != holder]


def _is_open(hall: Hall, key: str, server: str) -> bool:
    """Whether the server still has a consumer of its own at the broker."""
    return hall.consumers(key) > 1 or server in hall.running(key)
