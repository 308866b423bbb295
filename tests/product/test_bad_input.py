"""Whatever a publisher sends ends as a letter that every page can show, and the agents go on."""

from broker.amqp.publisher import AmqpPublisher
from broker.port import BodyKind, Message, Outgoing
from contract.typed import Typed
from tests.broker.messages import VALUES, everything
from tests.product import scripted
from tests.product.house import House

MEGABYTE = 1024 * 1024

ODD = {
    "no JSON": Message(body=Typed("string", "{'half': ")),
    "JSON of another shape": Message(body=Typed("string", "[[1]]")),
    "nothing at all": Message(body=Typed("binary", b""), body_kind=BodyKind.DATA),
    "an empty value": Message(),
    "bytes that are no text": Message(
        body=Typed("binary", b"\xff\xfe\x00\x80" * 10), body_kind=BodyKind.DATA
    ),
    "text with NUL": Message(body=Typed("string", "nul \0 and <script>alert(1)</script>")),
    "20 MB": Message(body=Typed("binary", b"{" * (20 * MEGABYTE)), body_kind=BodyKind.DATA),
    "every AMQP type": everything(Typed("list", VALUES)),
    "a sequence": Message(body=Typed("list", VALUES), body_kind=BodyKind.SEQUENCE),
}


def test_odd_messages_become_letters_that_every_page_shows(house: House) -> None:
    address = house.setting("odd", concurrency=1)
    house.enable("odd")
    publisher = AmqpPublisher(house.account("publisher", "amqp"))
    try:
        for message in ODD.values():
            publisher.publish([Outgoing(address, message)])
    finally:
        publisher.close()
    house.publish(address, [scripted.ok(1)])
    house.until(
        "the odd are dead, the good one is handled", lambda: house.count("odd", "DLQ.odd") == [0, len(ODD)]
    )
    assert house.truth("odd").count(1) == 1

    house.until("every letter is indexed", lambda: len(house.dead_letters("odd")) == len(ODD))
    house.until("every failure is reported", lambda: len(house.protocols("odd")) == len(ODD))
    assert {row["outcome"] for row in house.protocols("odd")} == {"invalid"}
    browser = house.browser()
    for row in house.dead_letters("odd"):
        whole = house.call("GET", f"dead-letters/{row['id']}/")
        assert len(whole["case"]["protocols"]) == 1, "joined by the same key on both sides"
        page = browser.get(f"{house.facts['url']}letters/{row['id']}/", timeout=60)
        assert page.status_code == 200
        assert "<script>alert" not in page.text
    assert browser.get(f"{house.facts['url']}dead-letters/odd/", timeout=60).status_code == 200
