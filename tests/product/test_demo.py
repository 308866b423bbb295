"""What a newcomer sees in the first minutes."""

from collections.abc import Callable
from typing import Any

from tests.product.house import House

KINDS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "a bug for one kind of order": lambda row: str(row["exception_type"]) == "KeyError",
    "a dependency that is away": lambda row: str(row["exception_type"]) == "ConnectionError",
    "a document that is not replicated yet": lambda row: bool(row["temporary"]),
    "a malformed body": lambda row: str(row["outcome"]) == "invalid",
    "an order that kills its process": lambda row: str(row["exception_type"]).startswith(
        ("exit:", "signal:")
    ),
}


def test_every_demo_failure_kind_is_visible_within_three_minutes(house: House) -> None:
    def missing() -> list[str]:
        rows = list(house.pages("protocols/"))
        return [kind for kind, seen in KINDS.items() if not any(seen(row) for row in rows)]

    house.until("every kind of demo failure is in the API", lambda: not missing(), seconds=180)
    house.until(
        "a dead letter of the demo is in the index", lambda: bool(house.dead_letters("orders")), seconds=180
    )


def test_a_second_start_finds_everything_running(house: House) -> None:
    before = {name: house.pid(name) for name in ("web", "worker", "feed", "artemis")}
    printed = house.run("up", "--detach")
    assert house.facts["url"].rstrip("/") in printed
    assert {name: house.pid(name) for name in before} == before


def test_the_doctor_finds_nothing_wrong(house: House) -> None:
    assert house.run("doctor")
