"""The mode CLIENT from outside: an agent returns without an answer, and others answer what it left open."""

from typing import Any

import requests

from tests.product import scripted
from tests.product.house import House

KEY = "answered"
ANSWERS = "acknowledgements/"


def test_others_commit_and_roll_back_what_an_agent_left_open(house: House) -> None:
    address = house.setting(KEY, mode="CLIENT", concurrency=1, committed_destination="t.committed")
    house.setting("told", destination="t.committed")  # gathers the events
    house.setting("words", mode="AUTO", spread="ANY")
    house.enable(KEY)
    house.enable("words")
    house.publish_with_ids(address, {_message_id(n): scripted.ok(n) for n in range(4)})
    waiting = _waiting(house, 4)
    assert house.count(KEY) == [4], "the broker holds every one of them"
    assert {row["state"] for row in waiting.values()} == {"open"}

    # By its id, over REST.
    status, body = _answer(house, acknowledgement=waiting[0]["acknowledgement"], action="jbxCommit")
    assert (status, body["state"]) == (200, "committed"), body
    house.until("it has left the broker", lambda: house.count(KEY, "told") == [3, 1])
    assert _answer(house, acknowledgement=waiting[0]["acknowledgement"], action="COMMIT")[0] == 200
    assert _answer(house, acknowledgement=waiting[0]["acknowledgement"], action="ROLLBACK")[0] == 409

    # By its message; it comes again with a protocol, and waits anew.
    status, body = _answer(house, setting=KEY, jms_message_id=_message_id(1), action="ROLLBACK")
    assert (status, body["state"]) == (200, "rolled_back"), body
    assert house.count(KEY) == [3]
    house.until("it waits again", lambda: _waiting(house).get(1, {}).get("attempt") == 2)
    house.until(
        "its protocol is here", lambda: [p["exception_type"] for p in house.protocols(KEY)] == ["rollback"]
    )

    # By another agent, with the token of its server.
    house.publish(
        "t.words", [{"do": "acknowledge", "action": "COMMIT", "id": waiting[2]["acknowledgement"], "note": 1}]
    )
    house.until("the agent's word counts", lambda: house.count(KEY, "told") == [2, 2])
    answer = f"{ANSWERS}{waiting[2]['acknowledgement']}/"
    house.until("its server has told", lambda: house.call("GET", answer)["state"] == "committed")
    assert house.call("GET", answer)["answered_from"].startswith("agent on srv-")

    # Its server dies: whoever answers is told, and the message comes again.
    lost = _waiting(house)[3]
    house.kill(f"kma-{lost['server']}")
    house.until(
        "it is lost", lambda: house.call("GET", f"{ANSWERS}{lost['acknowledgement']}/")["state"] == "lost"
    )
    status, body = _answer(house, acknowledgement=lost["acknowledgement"], action="COMMIT")
    assert (status, body["state"]) == (410, "lost")
    house.until("the rest is committed", lambda: _commit_all(house) and house.count(KEY, "told") == [0, 4])
    assert house.count(f"DLQ.{KEY}") == [0]
    house.call("POST", f"settings/{KEY}/disable/", {"reason": "over"})
    house.call("POST", "settings/words/disable/", {"reason": "over"})


def _message_id(n: int) -> str:
    return f"ID:{KEY}-{n}"


def _waiting(house: House, count: int = 0) -> dict[int, dict[str, Any]]:
    """What waits now, by the number of its message; after there are `count` of them."""

    def listed() -> dict[int, dict[str, Any]]:
        rows = house.pages(f"{ANSWERS}?setting={KEY}")
        return {int(row["jms_message_id"].rpartition("-")[2]): row for row in rows}

    if count:
        house.until(f"{count} wait", lambda: len(listed()) == count)
    return listed()


def _commit_all(house: House) -> bool:
    """What waits now; some of it may come back with a server that was killed."""
    for row in _waiting(house).values():
        assert _answer(house, acknowledgement=row["acknowledgement"], action="COMMIT")[0] in (200, 202, 410)
    return True


def _answer(house: House, **body: str) -> tuple[int, Any]:
    answer = requests.post(
        f"{house.facts['url'].rstrip('/')}/api/v1/{ANSWERS}",
        json=body,
        headers={"Authorization": f"Bearer {house.token}"},
        timeout=30,
    )
    return answer.status_code, answer.json()
