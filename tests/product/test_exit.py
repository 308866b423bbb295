"""An agent that ends its own process is a failure like any other."""

from tests.product import scripted
from tests.product.house import House


def test_a_message_that_kills_its_process_reaches_the_dead_letter_queue(house: House) -> None:
    address = house.setting("exits", concurrency=1)
    house.enable("exits")
    house.publish(address, [scripted.exits(1, code=1), *[scripted.ok(n) for n in range(2, 12)]])
    house.until("one is dead, the others handled", lambda: house.count("exits", "DLQ.exits") == [0, 1])
    house.until("its protocols are here", lambda: len(house.protocols("exits")) >= 4)
    assert [row["exception_type"] for row in house.protocols("exits")] == ["exit:1"] * 4
    assert set(house.truth("exits")) == set(range(1, 12))


def test_a_message_that_is_killed_by_a_signal_names_it(house: House) -> None:
    address = house.setting("signals", concurrency=1)
    house.enable("signals")
    house.publish(address, [scripted.killed(1, "SIGSEGV")])
    house.until("it is dead", lambda: house.count("signals", "DLQ.signals") == [0, 1])
    house.until("its protocols are here", lambda: len(house.protocols("signals")) >= 4)
    assert {row["exception_type"] for row in house.protocols("signals")} == {"signal:SIGSEGV"}
