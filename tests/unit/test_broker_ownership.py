"""Whose a broker is: the decision alone, and the claim on the broker in memory."""

from concurrent.futures import ThreadPoolExecutor
from uuid import UUID, uuid4

import pytest

from agents.site.broker_owner import Ownership, judge
from broker.management import site_claim
from broker.management.desired_topology import base_topology, setting_topology
from broker.management.topology import apply
from broker.memory.broker import MemoryBroker
from broker.port import ManagementFailed
from contract.redelivery import RedeliveryPolicy

SITE, OTHER = uuid4(), uuid4()


@pytest.mark.parametrize(
    ("owner", "own_keys", "broker_keys", "wanted"),
    [
        (SITE, {"a"}, {"a"}, Ownership.OURS),
        (SITE, set(), {"strange"}, Ownership.OURS),
        (OTHER, {"a"}, {"a"}, Ownership.OTHER),
        (OTHER, set(), set(), Ownership.OTHER),
        (None, set(), set(), Ownership.FREE),
        (None, {"a"}, set(), Ownership.FREE),
        (None, {"a", "b"}, {"b", "c"}, Ownership.FREE),
        (None, set(), {"a"}, Ownership.UNKNOWN),
        (None, {"b"}, {"a"}, Ownership.UNKNOWN),
    ],
)
def test_who_a_broker_belongs_to(
    owner: UUID | None, own_keys: set[str], broker_keys: set[str], wanted: Ownership
) -> None:
    assert judge(SITE, owner, own_keys, broker_keys) is wanted


def test_a_claim_is_made_once_and_read_by_everybody() -> None:
    management = MemoryBroker().management()
    assert site_claim.owner(management) is None
    assert site_claim.claim(management, SITE) == SITE
    assert site_claim.claim(management, OTHER) == SITE
    assert site_claim.owner(management) == SITE


def test_of_many_claims_at_once_one_wins() -> None:
    broker = MemoryBroker()
    sites = [uuid4() for _ in range(8)]
    with ThreadPoolExecutor(len(sites)) as pool:
        winners = set(pool.map(lambda site: site_claim.claim(broker.management(), site), sites))
    assert len(winners) == 1 and winners <= set(sites)


def test_a_takeover_names_who_owned_it_before() -> None:
    management = MemoryBroker().management()
    assert site_claim.replace_owner(management, SITE) is None
    assert site_claim.replace_owner(management, OTHER) == SITE
    assert site_claim.replace_owner(management, OTHER) == OTHER
    assert site_claim.owner(management) == OTHER


def test_a_mark_that_nobody_can_read_is_no_free_broker() -> None:
    management = MemoryBroker().management()
    site_claim.claim(management, SITE)
    management.call(
        "broker", "updateQueue", '{"name": "MA.site", "address": "MA.site", "filter-string": "1 = 0"}'
    )
    with pytest.raises(ManagementFailed, match="not a site id"):
        site_claim.owner(management)
    assert site_claim.owner_or_unreadable(management) == "1 = 0"
    assert site_claim.replace_owner(management, OTHER) is None
    assert site_claim.owner(management) == OTHER


def test_only_queues_of_settings_tell_of_settings() -> None:
    management = MemoryBroker().management()
    apply(management, base_topology("MA.DLA"))
    assert site_claim.setting_keys(management) == set()
    apply(management, setting_topology("orders", "t.orders", RedeliveryPolicy(), False, "MA.DLA"))
    assert site_claim.setting_keys(management) == {"orders"}
