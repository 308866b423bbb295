"""The broker's own lists of its queues and addresses."""

import json

from broker.port import Management


def find(management: Management, operation: str, name: str) -> dict[str, str] | None:
    """The broker's row of the queue (`listQueues`) or address (`listAddresses`) of exactly that name; all are text."""
    options = json.dumps({"field": "name", "operation": "EQUALS", "value": name})
    rows = json.loads(management.call("broker", operation, options, 1, 10))["data"]
    return next((row for row in rows if row["name"] == name), None)
