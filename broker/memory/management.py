"""The management operations and attributes of the memory broker: those that this product uses, with their
answers."""

import json
import time
from collections.abc import Callable
from typing import Any

from broker.amqp.codec import encode
from broker.memory.filters import Predicate, predicate
from broker.memory.store import Store, StoredQueue
from broker.memory.waiting_messages import consumers, operations, take_out
from broker.port import BrokerUnavailable, ManagementFailed

VERSION = "2.56.0"


class MemoryManagement:
    """A `Management`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._broker: dict[str, Callable[..., Any]] = {
            "createAddress": self._create_address,
            "createQueue": self._create_queue,
            "updateQueue": self._update_queue,
            "destroyQueue": self._destroy_queue,
            "addAddressSettings": self._add_settings,
            "getAddressSettingsAsJSON": lambda address: json.dumps(self._store.settings(address)),
            "listQueues": self._list_queues,
            "listAddresses": self._list_addresses,
            "listConsumers": lambda options, page, size: _listed(consumers(self._store), options, page, size),
        }
        self._queue: dict[str, Callable[..., Any]] = {
            "moveMessages": self._move_messages,
            "moveMessage": self._move_message,
            "removeAllMessages": self._remove_all,
            "removeMessages": self._remove_messages,
            "countMessages": self._count_messages,
            "pause": lambda queue, kept=False: self._pause(queue, True, kept),
            "resume": lambda queue: self._pause(queue, False, False),
            **operations(store),
        }

    def call(self, resource: str, operation: str, *arguments: Any) -> Any:
        with self._store.changed:
            self._check()
            # The broker reads the arguments from JSON; so do we, lest something passes here that fails there.
            arguments = tuple(json.loads(json.dumps(arguments)))
            if resource == "broker" and operation in self._broker:
                return self._broker[operation](*arguments)
            if resource.startswith("queue.") and operation in self._queue:
                return self._queue[operation](self._found(resource), *arguments)
        raise ManagementFailed(f"no operation {operation} of {resource}")

    def attribute(self, resource: str, name: str) -> Any:
        with self._store.changed:
            self._check()
            if name == "PersistentSize":
                return _size(self._found(resource))
            values = self._attributes(resource)
            if name not in values:
                raise ManagementFailed(f"Problem while retrieving attribute {name}")
            return values[name]

    def attributes(self, resource: str, *names: str) -> list[Any]:
        return [self.attribute(resource, name) for name in names]

    def close(self) -> None:
        """Nothing is open."""

    def _check(self) -> None:
        if not self._store.running:
            raise BrokerUnavailable("the memory broker is down")

    def _found(self, resource: str) -> StoredQueue:
        queue = self._store.queues.get(resource.partition(".")[2])
        if queue is None:
            raise ManagementFailed(f"Cannot find resource with name {resource}")
        return queue

    def _attributes(self, resource: str) -> dict[str, Any]:
        store = self._store
        if resource == "broker":
            return {
                "Version": VERSION,
                "NodeID": store.node_id,
                "Started": True,
                "QueueNames": list(store.queues),
                "AddressNames": list(store.addresses),
            }
        if resource.startswith("address."):
            name = resource.partition(".")[2]
            if name not in store.addresses:
                return {}
            queues = [queue.name for queue in store.queues.values() if queue.address == name]
            return {"RoutingTypes": ["MULTICAST"], "QueueNames": queues, "Paging": False, "NumberOfPages": 0}
        queue = store.queues.get(resource.partition(".")[2])
        return {} if queue is None else _queue_attributes(queue)

    # -- broker ----------------------------------------------------------------------------------------------

    def _create_address(self, name: str, routing: str) -> str:
        if name in self._store.addresses:
            raise ManagementFailed(f"AMQ229204: Address already exists: {name}")
        self._store.addresses[name] = self._store.next_id()
        return f"Address [name={name}, routingTypes={{{routing}}}, autoCreated=false]"

    def _create_queue(self, text: str, ignore_if_exists: bool = False) -> str:
        wanted = json.loads(text)
        name, address = wanted["name"], wanted["address"]
        if name in self._store.queues:
            if not ignore_if_exists:
                raise ManagementFailed(f"AMQ229019: Queue {name} already exists on address {address}")
            return text  # echoes what it was asked for and changes nothing
        if address not in self._store.addresses:
            raise ManagementFailed(f"AMQ229203: Address Does Not Exist: {address}")
        queue = StoredQueue(name, address, self._store.next_id(), exclusive=wanted.get("exclusive", False))
        self._filter(queue, wanted.get("filter-string", ""))
        self._store.queues[name] = queue
        return text

    def _update_queue(self, text: str) -> str:
        wanted = json.loads(text)
        queue = self._store.queues.get(wanted["name"])
        if queue is None:
            raise ManagementFailed(f"AMQ229017: Queue {wanted['name']} does not exist")
        self._filter(queue, wanted.get("filter-string", ""))  # not named = cleared, as on the real one
        queue.exclusive = wanted.get("exclusive", queue.exclusive)
        self._store.feed(queue)
        return text

    def _filter(self, queue: StoredQueue, selector: str) -> None:
        try:
            self._store.set_filter(queue, selector)
        except ValueError as error:
            raise ManagementFailed(f"AMQ229020: {error}") from error

    def _destroy_queue(self, name: str, *_: Any) -> None:
        queue = self._store.queues.pop(name, None)
        if queue is None:
            raise ManagementFailed(f"AMQ229017: Queue {name} does not exist")
        for taker in list(queue.takers):
            taker.dropped("the queue was destroyed")

    def _add_settings(self, address: str, text: str) -> str:
        self._store.policies[address] = json.loads(text)
        return text

    def _list_queues(self, options: str, page: int, size: int) -> str:
        return _listed([_queue_row(queue) for queue in self._store.queues.values()], options, page, size)

    def _list_addresses(self, options: str, page: int, size: int) -> str:
        rows = [
            {"id": str(number), "name": name, "routingTypes": '["MULTICAST"]', "paging": "false"}
            for name, number in self._store.addresses.items()
        ]
        return _listed(rows, options, page, size)

    # -- queue -----------------------------------------------------------------------------------------------

    def _move_messages(
        self, queue: StoredQueue, flush: int, selector: str, target: str, reject_duplicates: bool, count: int
    ) -> int:
        return self._store.move(queue, _predicate(selector), self._target(target), count)

    def _move_message(self, queue: StoredQueue, number: int, target: str) -> bool:
        destination = self._target(target)
        reference = take_out(queue, number)
        if reference is None:
            return False
        self._store.route(destination.address, self._store.moved(reference), [destination])
        return True

    def _target(self, name: str) -> StoredQueue:
        target = self._store.queues.get(name)
        if target is None:
            raise ManagementFailed(f"AMQ229049: No queue found for {name}")
        return target

    def _remove_all(self, queue: StoredQueue) -> int:
        removed = len(queue.ready) + len(queue.scheduled)
        queue.ready.clear()
        queue.scheduled.clear()
        return removed

    def _remove_messages(self, queue: StoredQueue, flush: int, selector: str) -> int:
        matches = _predicate(selector)
        chosen = [reference for reference in queue.ready if matches(reference.message)]
        for reference in chosen:
            queue.ready.remove(reference)
        return len(chosen)

    def _count_messages(self, queue: StoredQueue, selector: str) -> int:
        matches, held = _predicate(selector), (queue.ready, queue.scheduled, queue.delivering)
        return sum(matches(reference.message) for references in held for reference in references)

    def _pause(self, queue: StoredQueue, paused: bool, kept: bool) -> None:
        queue.paused, queue.pause_kept = paused, kept
        self._store.feed(queue)


def _predicate(selector: str) -> Predicate:
    try:
        return predicate(selector)
    except ValueError as error:
        raise ManagementFailed(f"AMQ229020: {error}") from error


def _size(queue: StoredQueue) -> int:
    """In bytes, as AMQP; the real one counts a little more."""
    held = (queue.ready, queue.scheduled, queue.delivering)
    return sum(len(encode(reference.message)) for references in held for reference in references)


def _queue_attributes(queue: StoredQueue) -> dict[str, Any]:
    return {
        "Name": queue.name,
        "Address": queue.address,
        "Filter": queue.filter or None,
        "Exclusive": queue.exclusive,
        "Durable": True,
        "RoutingType": "MULTICAST",
        "Paused": queue.paused,
        "MessageCount": queue.count,
        "ScheduledCount": len(queue.scheduled),
        "DeliveringCount": len(queue.delivering),
        "ConsumerCount": len(queue.takers),
        "MessagesAdded": queue.added,
        "MessagesAcknowledged": queue.acknowledged,
        "FirstMessageAge": _first_age(queue),
    }


def _first_age(queue: StoredQueue) -> int | None:
    """Milliseconds since it was made: since 1970 where it does not say."""
    if not queue.ready:
        return None
    made = queue.ready[0].message.created_at
    return int((time.time() - (made.timestamp() if made else 0.0)) * 1000)


def _queue_row(queue: StoredQueue) -> dict[str, str]:
    return {
        "id": str(queue.id),
        "name": queue.name,
        "address": queue.address,
        "filter": queue.filter,
        "exclusive": str(queue.exclusive).lower(),
        "durable": "true",
        "paused": str(queue.paused).lower(),
        "routingType": "MULTICAST",
        "messageCount": str(queue.count),
        "scheduledCount": str(len(queue.scheduled)),
        "deliveringCount": str(len(queue.delivering)),
        "consumerCount": str(len(queue.takers)),
        "messagesAdded": str(queue.added),
        "messagesAcked": str(queue.acknowledged),
    }


def _listed(rows: list[dict[str, Any]], options: str, page: int, size: int) -> str:
    wanted = json.loads(options) if options else {}
    field, value = wanted.get("field", ""), wanted.get("value", "")
    if field and wanted.get("operation") == "EQUALS":
        rows = [row for row in rows if row.get(field) == value]
    elif field and wanted.get("operation") == "CONTAINS":
        rows = [row for row in rows if value in row.get(field, "")]
    return json.dumps({"data": rows[(page - 1) * size : page * size], "count": len(rows)})
