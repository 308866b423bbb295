"""The demo: a shop whose orders mostly go well, and fail in every way that the product is made for.

An order is JSON, published to the destination of the setting that runs `demo.orders`:

    {"order": "A-1001", "kind": "standard", "customer": "C-7", "currency": "EUR",
     "lines": [{"sku": "LAMP-2", "quantity": 2, "price": 19.90}], …}

| kind       | more fields | what happens
|
| ---------- | ----------- | --------------------------------------------------------------------------------
|
| `standard` |             | handled
|
| `gift`     | `wrapping`  | `"velvet"` is missing in our price list: KeyError, always (a bug)
|
| `express`  | `postcode`  | the carrier is away one minute in three: ConnectionError, then it recovers
|
| `return`   | `document`  | not replicated yet: TemporaryUnavailable on the first two attempts, then handled
|
| `scan`     | `pages`     | the scanner library kills its process from 100 pages on (os._exit)
|

A body that is no JSON, or lacks `order`, `kind` or `lines`, is an InvalidMessage. With the parameter
`invoices` each handled order sends an invoice to that destination, for `demo.invoices`: {"order", "customer",
"total", "currency"}.
"""

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from kma.agent import Agent, Context, InvalidMessage, Message, TemporaryUnavailable, agent
from kma.samples import limits

Order = Mapping[str, Any]

_WRAPPING_PRICES = {"paper": 1.50, "box": 3.00, "ribbon": 0.80}
_SCANNER_CRASHES_FROM = 100
_AWAY_PERIOD_MINUTES, _AWAY_MINUTE = 3, 1


@agent("demo.orders", version="1.2")
class Orders(Agent):
    """Prices and books orders, and sends an invoice for each."""

    def run_agent(self, message: Message, context: Context) -> None:
        order = _checked(message.json())
        surcharge = _SURCHARGES[order["kind"]](order, message)
        total = round(sum(line["quantity"] * line["price"] for line in order["lines"]) + surcharge, 2)
        context.log.info("order booked", order=order["order"], kind=order["kind"], total=total)
        if invoices := context.parameters.get("invoices"):
            invoice = {"order": order["order"], "customer": order.get("customer", ""), "total": total}
            destination = limits.checked_destination(str(invoices))
            context.send_json(destination, {**invoice, "currency": order.get("currency", "EUR")})


@agent("demo.invoices", version="1")
class Invoices(Agent):
    """Files the invoices that demo.orders sends."""

    def run_agent(self, message: Message, context: Context) -> None:
        invoice = message.json()
        if not isinstance(invoice, dict) or "total" not in invoice:
            raise InvalidMessage("an invoice must be an object with a total")
        context.log.info("invoice filed", order=invoice.get("order"), total=invoice["total"])


@agent("demo.audit", version="1")
def audit(message: Message, context: Context) -> None:
    """Writes a line for every message, whatever it is."""
    context.log.info("seen", kind=message.kind, attempt=message.attempt, properties=len(message.properties))


def _checked(order: Any) -> Order:
    if not isinstance(order, dict):
        raise InvalidMessage("an order must be a JSON object")
    missing = [name for name in ("order", "kind", "lines") if not order.get(name)]
    if missing:
        raise InvalidMessage(f"the order lacks {', '.join(missing)}")
    if order["kind"] not in _SURCHARGES:
        raise InvalidMessage(f"unknown kind of order: {order['kind']!r}")
    return order


def _standard(order: Order, message: Message) -> float:
    return 0.0


def _gift(order: Order, message: Message) -> float:
    return wrapping_price(order.get("wrapping", "paper"))


def wrapping_price(wrapping: str) -> float:
    """The demo's bug: nobody added velvet to the list."""
    return _WRAPPING_PRICES[wrapping]


def _express(order: Order, message: Message) -> float:
    if carrier_is_away(time.time()):
        raise ConnectionError("carrier.example:443: connection refused")
    return 6.90


def carrier_is_away(now: float) -> bool:
    """One minute in three, by the wall clock: the same on every server."""
    return int(now // 60) % _AWAY_PERIOD_MINUTES == _AWAY_MINUTE


def _return(order: Order, message: Message) -> float:
    if message.attempt <= 2:
        raise TemporaryUnavailable(f"document {order.get('document', '?')} is not replicated yet")
    return -2.00


def _scan(order: Order, message: Message) -> float:
    if int(order.get("pages", _SCANNER_CRASHES_FROM)) >= _SCANNER_CRASHES_FROM:
        os._exit(3)
    return 0.0


_SURCHARGES: dict[str, Callable[[Order, Message], float]] = {
    "standard": _standard,
    "gift": _gift,
    "express": _express,
    "return": _return,
    "scan": _scan,
}
