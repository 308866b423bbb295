"""Orders of an invented shop, in the JSON that the agent `demo.orders` takes. Most go well."""

import json
import random
from collections.abc import Iterator
from typing import Any

from broker.port import Message, Outgoing
from contract.typed import Typed

ADDRESS = "demo.orders"
PRICES = {"LAMP-2": 19.90, "DESK-1": 249.00, "CHAIR-7": 89.50, "SHELF-3": 64.00, "RUG-5": 120.00}
CURRENCIES = ("EUR", "EUR", "EUR", "CHF", "GBP")
COUNTRIES = ("DE", "AT", "CH", "FR", "NL")

# One deck holds every kind; each is dealt once before a new deck is shuffled, so that all are seen within a
# minute.
DECK = (
    *["standard"] * 26,
    *["express"] * 5,
    *["return"] * 3,
    *["gift paper"] * 2,
    "gift velvet",
    "scan short",
    "scan long",
    "broken",
)


def orders(chance: random.Random, first: int) -> Iterator[Outgoing]:
    """Yields orders without end; numbered from `first`."""
    number = first
    while True:
        for kind in chance.sample(DECK, len(DECK)):
            yield order(chance, number, kind)
            number += 1


def order(chance: random.Random, number: int, kind: str) -> Outgoing:
    name = f"A-{number}"
    body = _broken(name) if kind == "broken" else json.dumps(_order(chance, name, kind), ensure_ascii=False)
    properties = {
        "order": name,
        "country": chance.choice(COUNTRIES),
        "traceparent": f"00-{chance.getrandbits(128):032x}-{chance.getrandbits(64):016x}-01",
    }
    message = Message(
        body=Typed("string", body),
        content_type="application/json",
        properties={key: Typed("string", value) for key, value in properties.items()},
    )
    return Outgoing(ADDRESS, message)


def _order(chance: random.Random, name: str, kind: str) -> dict[str, Any]:
    word, _, detail = kind.partition(" ")
    skus = chance.sample(sorted(PRICES), chance.randint(1, 3))
    details: dict[str, dict[str, Any]] = {
        "gift": {"wrapping": detail},
        "express": {"postcode": f"{chance.randint(10_000, 99_999)}"},
        "return": {"document": f"D-{chance.randint(1, 9999)}"},
        "scan": {"pages": 140 if detail == "long" else 4},
    }
    return {
        "order": name,
        "kind": word,
        "customer": f"C-{chance.randint(1, 500)}",
        "currency": chance.choice(CURRENCIES),
        "lines": [{"sku": sku, "quantity": chance.randint(1, 4), "price": PRICES[sku]} for sku in skus],
        **details.get(word, {}),
    }


def _broken(name: str) -> str:
    """Cut off in the middle, as by a gateway with a length limit."""
    return f'{{"order": "{name}", "kind": "standard", "lines": [{{"sku": "LAMP-2", "quant'
