import re
import stat
from pathlib import Path
from xml.etree import ElementTree

import pytest

from deploy.services import artemis
from deploy.services.artemis import BrokerPorts

CORE = "{urn:activemq:core}"


@pytest.fixture
def core() -> ElementTree.Element:
    text = artemis.broker_xml(BrokerPorts(21, 22, 23), "88000", "cluster-secret")
    found = ElementTree.fromstring(text).find(f"{CORE}core")
    assert found is not None
    return found


def text(core: ElementTree.Element, path: str) -> str:
    return core.findtext("/".join(f"{CORE}{part}" for part in path.split("/"))) or ""


def address_setting(core: ElementTree.Element, match: str) -> dict[str, str]:
    for setting in core.iter(f"{CORE}address-setting"):
        if setting.get("match") == match:
            return {child.tag.removeprefix(CORE): child.text or "" for child in setting}
    raise AssertionError(f"no address-setting {match}")


def test_every_acceptor_listens_on_loopback_with_one_protocol(core: ElementTree.Element) -> None:
    acceptors = {each.get("name"): each.text or "" for each in core.iter(f"{CORE}acceptor")}
    assert acceptors["amqp"].startswith("tcp://127.0.0.1:21?protocols=AMQP;")
    assert acceptors["stomp"].startswith("tcp://127.0.0.1:22?protocols=STOMP;")
    assert acceptors["core"].startswith("tcp://127.0.0.1:23?protocols=CORE;")
    assert len(acceptors) == 3


def test_a_hung_amqp_consumer_is_dropped_within_ten_to_fifteen_seconds(core: ElementTree.Element) -> None:
    amqp = next(each.text or "" for each in core.iter(f"{CORE}acceptor") if each.get("name") == "amqp")
    found = re.search(r"amqpIdleTimeout=(\d+)", amqp)
    assert found and 10_000 <= int(found[1]) <= 15_000


def test_attempts_survive_a_crash_of_the_broker(core: ElementTree.Element) -> None:
    assert text(core, "persist-delivery-count-before-delivery") == "true"
    assert text(core, "journal-datasync") == "true"


def test_nothing_is_created_by_itself_and_nothing_deleted_for_lack_of_a_dead_letter_address(
    core: ElementTree.Element,
) -> None:
    default = address_setting(core, "#")
    assert default["dead-letter-address"] == "MA.DLA"
    assert {default[name] for name in default if name.startswith("auto-")} == {"false"}
    queues = [queue.get("name") for queue in core.iter(f"{CORE}queue")]
    assert queues == ["DLQ.feed"]


def test_dead_letters_page_to_disk_early(core: ElementTree.Element) -> None:
    letters = address_setting(core, "MA.DLA")
    assert (letters["address-full-policy"], letters["max-size-bytes"]) == ("PAGE", "20000000")


def test_the_built_in_cluster_password_is_replaced(core: ElementTree.Element) -> None:
    assert text(core, "cluster-password") == "cluster-secret"


def test_files_with_passwords_are_for_their_owner_only_and_hold_hashes(tmp_path: Path) -> None:
    etc = tmp_path / "etc"
    etc.mkdir()
    (etc / "artemis.profile").write_text('JAVA_ARGS="-XX:+UseG1GC -Xms512M -Xmx2G -Dx=y"')
    (etc / "broker-created.xml").write_text("<journal-buffer-timeout>88000</journal-buffer-timeout>")
    artemis.write_broker_files(tmp_path, BrokerPorts(1, 2, 3), {"kma": "in the clear"})
    for name in ("broker.xml", "artemis-users.properties", "artemis-roles.properties"):
        assert stat.S_IMODE((etc / name).stat().st_mode) == 0o600
    assert "in the clear" not in (etc / "artemis-users.properties").read_text()
    assert (etc / "artemis-roles.properties").read_text() == "kma = kma\n"
    assert "-Xms256M -Xmx1G -Dx=y" in (etc / "artemis.profile").read_text()
    assert "<journal-buffer-timeout>88000<" in (etc / "broker.xml").read_text()


def test_a_hash_has_a_salt_of_its_own() -> None:
    assert artemis.hashed("same") != artemis.hashed("same")
