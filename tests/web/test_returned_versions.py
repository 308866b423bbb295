"""A known error that is fixed in a version has returned only when that version, a newer or an unknown one
fails."""

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from agents.models import Run
from alerts.evaluation import evaluate_kind
from alerts.models import Alert
from alerts.sources import kind_of
from contract.records import Protocol
from failures.error_groups import known_errors, merges, splits
from failures.error_groups.queries import fingerprint_url
from failures.error_groups.rollup import fold_all
from failures.intake.batch import accept_batch
from failures.models import KnownError
from tests.web import reports
from tests.web.rows import api_client

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]
KIND, OTHER = "v1:0123456789abcdef", "v1:fedcba9876543210"
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


class Hall:
    """A server whose agents fail, and the person who said yesterday that it is fixed in 2.0."""

    def __init__(self, key: str = "orders") -> None:
        self.server = reports.server()
        self.run: Run = reports.run(reports.setting(key), self.server)
        self.spool = reports.Spool("srv-1")
        self.now = timezone.now()

    def failure(self, version: str, ago: timedelta = MINUTE, fingerprint: str = KIND) -> Protocol:
        run = replace(reports.run_of(self.run), agent_version=version)
        return reports.protocol(run, fingerprint=fingerprint, occurred_at=self.now - ago)

    def send(self, *failures: Protocol) -> None:
        accept_batch(self.server, self.spool.batch(*failures), self.now)
        fold_all(self.now)


@pytest.fixture
def hall() -> Hall:
    hall = Hall()
    hall.send(hall.failure("1.9", timedelta(days=2)))
    return hall


@pytest.fixture
def ann() -> User:
    return reports.person("ann", "failures.view_fingerprint", "failures.can_know_errors")


def fix(ann: User, version: str, fingerprint: str = KIND, ago: timedelta = timedelta(hours=1)) -> None:
    known_errors.fixed(fingerprint, version, by=ann, now=timezone.now() - ago)


def is_listed(ann: User) -> bool:
    client = Client()
    client.force_login(ann)
    return KIND[3:] in client.get("/fingerprints/?book=returned").content.decode()


def page(ann: User, fingerprint: str = KIND) -> str:
    client = Client()
    client.force_login(ann)
    return client.get(fingerprint_url(fingerprint)).content.decode()


def alerts() -> list[str]:
    kind = kind_of("fingerprint_returned")
    assert kind is not None
    evaluate_kind(kind, timezone.now())
    return list(Alert.objects.filter(kind=kind.name, state="open").values_list("subject", flat=True))


def test_an_agent_that_is_older_than_the_fix_does_not_bring_it_back(hall: Hall, ann: User) -> None:
    fix(ann, "2.0")
    hall.send(hall.failure("1.9"), hall.failure("1.10"))

    assert (alerts(), is_listed(ann)) == ([], False)
    told = page(ann)
    assert "regressed" not in told
    assert "Still seen in older versions:" in told
    assert told.index("1.10</span>") < told.index("1.9</span>"), "the newest first"


def test_the_servers_that_still_have_an_older_version_are_named(hall: Hall, ann: User) -> None:
    fix(ann, "1.10")
    behind = Hall("invoices")
    behind.server = reports.server("srv-2")
    behind.run = reports.run(behind.run.activation.setting, behind.server)
    behind.spool = reports.Spool("srv-2")
    behind.send(behind.failure("1.3"))

    assert alerts() == []
    assert 'class="mono">1.3</span> on srv-2' in page(ann)
    shown = api_client(ann).get(f"/api/v1/fingerprints/{KIND}/").json()
    assert (shown["older"], shown["returned"]) == ([{"version": "1.3", "servers": ["srv-2"]}], False)

    hall.send(hall.failure("1.11"))
    shown = api_client(ann).get(f"/api/v1/fingerprints/{KIND}/").json()
    assert (shown["older"], shown["returned"]) == ([{"version": "1.3", "servers": ["srv-2"]}], True)


@pytest.mark.parametrize("version", ["2.0", "2.0.0", "v2.0", "2.0.1", "10.0", "", "3f2a1c9"])
def test_the_fixed_version_a_newer_and_an_unknown_one_bring_it_back(
    hall: Hall, ann: User, version: str
) -> None:
    fix(ann, "2.0")
    hall.send(hall.failure("1.9", SECOND), hall.failure(version))

    assert (alerts(), is_listed(ann)) == ([KIND], True)
    assert "regressed" in page(ann)


def test_without_a_version_every_failure_brings_it_back(hall: Hall, ann: User) -> None:
    fix(ann, "")
    hall.send(hall.failure("0.1"))
    assert (alerts(), is_listed(ann)) == ([KIND], True)


def test_fixed_again_in_a_later_version_it_has_not_returned(hall: Hall, ann: User) -> None:
    fix(ann, "2.0")
    hall.send(hall.failure("2.0"))
    assert alerts() == [KIND]
    # The failures came after this second fix, too; but they are of an older version than it.
    fix(ann, "2.1", ago=timedelta(minutes=30))
    assert (alerts(), is_listed(ann)) == ([], False)
    assert "2.0</span>" in page(ann)


def test_order_and_batches_of_arrival_and_arriving_again_change_nothing(hall: Hall, ann: User) -> None:
    versions = ["1.9", "2.0", "1.8", "2.1", "", "1.9.9"]
    for seed in range(12):
        dice, kind = random.Random(seed), f"v1:{seed:016x}"
        chosen = [dice.choice(versions) for _ in range(6)]
        failures = [hall.failure(version, (at + 1) * MINUTE, kind) for at, version in enumerate(chosen)]
        hall.send(hall.failure("1.9", timedelta(days=2), kind))
        fix(ann, "2.0", kind)
        counting = [
            failure.occurred_at for failure in failures if failure.run.agent_version in ("2.0", "2.1", "")
        ]

        dice.shuffle(failures)
        for batch in _batches(failures, dice):
            sent = hall.spool.batch(*batch)
            accept_batch(hall.server, sent, hall.now)
            if dice.random() < 0.5:
                fold_all(hall.now)
            accept_batch(hall.server, sent, hall.now)
        fold_all(hall.now)

        entry = KnownError.objects.get(pk=kind)
        assert entry.returned_at == max(counting, default=None), (seed, chosen)
        assert entry.returned == bool(counting)


def _batches(failures: Sequence[Protocol], dice: random.Random) -> list[Sequence[Protocol]]:
    cut = dice.randrange(len(failures) + 1)
    return [part for part in (failures[:cut], failures[cut:]) if part]


def test_merged_and_split_again_each_tells_what_is_its_own(hall: Hall, ann: User) -> None:
    hall.send(hall.failure("1.9", timedelta(days=2), OTHER))
    fix(ann, "2.0")
    hall.send(hall.failure("2.1", fingerprint=OTHER))
    assert alerts() == []
    merges.merge(OTHER, KIND, by=ann, now=timezone.now())
    assert alerts() == [KIND]
    merges.split(OTHER, of=KIND, by=ann, now=timezone.now())
    assert alerts() == []


def test_of_a_setting_that_was_split_off_only_its_own_failures_count(hall: Hall, ann: User) -> None:
    stock = Hall("stock")
    stock.spool = hall.spool
    stock.send(stock.failure("1.9", timedelta(days=2)))
    fix(ann, "2.0")
    part = splits.part_off(KIND, "stock", by=ann, now=timezone.now())
    stock.send(stock.failure("2.0"))
    assert alerts() == [part]
    splits.join(part, by=ann, now=timezone.now())
    assert alerts() == [KIND]


def test_an_alert_names_the_settings_whose_agents_should_have_the_fix(hall: Hall, ann: User) -> None:
    stock = Hall("stock")
    stock.spool = hall.spool
    fix(ann, "2.0")
    hall.send(hall.failure("1.9"))
    stock.send(stock.failure("2.0"))
    assert alerts() == [KIND]
    assert Alert.objects.get().setting == stock.run.activation.setting
