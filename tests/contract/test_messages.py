"""Versions that understand each other, ids of records, and what no log shows."""

from uuid import UUID

import pytest

from contract.messages import BlockedMessage, DesiredRun, check_version
from contract.records import REFUSED, derived_id
from contract.wire import UnsupportedVersion, dump, load


@pytest.mark.parametrize("version", [3, 4])
def test_a_side_understands_its_own_version_and_the_one_before(version: int) -> None:
    check_version(version)


@pytest.mark.parametrize("version", [-3, 0, 2, 5])
def test_another_version_is_refused_by_name(version: int) -> None:
    with pytest.raises(
        UnsupportedVersion, match=f"^version: this MA supports versions 3 to 4, not {version}$"
    ):
        check_version(version)


def test_both_sides_name_a_blocked_message_alike_whatever_its_key_holds() -> None:
    here = BlockedMessage("a\0b", 3)
    there = load(BlockedMessage, dump(here))
    assert there.key != here.key and there.digest == here.digest
    assert BlockedMessage("a", 3).digest == (
        "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
    )


def test_the_secret_of_a_run_is_in_no_log() -> None:
    run = DesiredRun(UUID(int=1), 1, "s", "a", "d", "q", acknowledgement_secret="c0ffee")
    assert "c0ffee" not in repr(run) and "acknowledgement_property" in repr(run)


def test_a_record_that_is_made_twice_has_one_id_and_those_of_one_handling_differ() -> None:
    """Spools that wait during an upgrade hold ids: what they are derived by may not change."""
    first = UUID("00112233-4455-6677-8899-aabbccddeeff")
    assert [str(derived_id(first, number)) for number in (0, 1, 2, REFUSED)] == [
        "00112233-4455-6677-8899-aabbccddeeff",
        "01112233-4455-6677-8899-aabbccddeeff",
        "02112233-4455-6677-8899-aabbccddeeff",
        "03112233-4455-6677-8899-aabbccddeeff",
    ]
    assert derived_id(UUID(int=3 << 120), REFUSED) == UUID(int=0), "an id that has the bits already"
