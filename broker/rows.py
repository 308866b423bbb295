"""The broker's own lists of its queues and addresses."""

import json
from collections.abc import Iterator

from broker.port import Management

# Rows per answer. For each the broker sorts all its queues, so rather few than short ones; a row has about a
# kilobyte.
PAGE = 1000


def find(management: Management, operation: str, name: str) -> dict[str, str] | None:
    """The broker's row of the queue (`listQueues`) or address (`listAddresses`) of exactly that name; all are
    text."""
    options = json.dumps({"field": "name", "operation": "EQUALS", "value": name})
    rows = json.loads(management.call("broker", operation, options, 1, 10))["data"]
    return next((row for row in rows if row["name"] == name), None)


def every(management: Management, operation: str, size: int = PAGE) -> Iterator[dict[str, str]]:
    """All rows, in pages; what is made or deleted meanwhile may be missed or come twice."""
    for page in range(1, 10_000):
        rows = json.loads(management.call("broker", operation, "", page, size))["data"]
        yield from rows
        if len(rows) < size:
            return
