"""A fingerprint is split by setting: counts are divided as they were counted, before and since; and joined
again."""

from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents.models import Run
from console.operations.refusals import Refused
from failures.error_groups import known_errors, merges, splits
from failures.error_groups.queries import (
    fingerprint_url,
    hours_of,
    of_fingerprints,
    settings_of_groups,
    totals_of,
)
from failures.error_groups.rollup import fold_all
from failures.error_groups.splits import known_in
from failures.intake.batch import accept_batch
from failures.models import FailureGroup, FailureProtocol, Fingerprint, FingerprintAct, FingerprintChange
from retention.erasure import protocols
from tests.web import reports
from tests.web.factories import World
from tests.web.pages import looked_at, signed_in
from tests.web.rows import api_client, make_person

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]

KIND = "v1:0123456789abcdef"


@pytest.fixture
def ann(db: None) -> User:
    return make_person("ann")


@pytest.fixture
def runs() -> dict[str, Run]:
    found = {}
    for key in ("orders", "stock"):
        found[key] = reports.run(reports.setting(key), reports.server())
    return found


def fail(run: Run, count: int, *, fold: bool = True) -> None:
    now = timezone.now()
    named = reports.run_of(run)
    spool = reports.Spool(run.server.name)
    contents = [reports.protocol(named, reports.message(str(uuid4())), occurred_at=now) for _ in range(count)]
    accept_batch(run.server, spool.batch(*contents), now)
    if fold:
        fold_all(now)


def counts(*kinds: str) -> dict[str, tuple[int, int, int]]:
    """By kind: in all, in the hours, in the groups."""
    now = timezone.now()
    since = now - timedelta(days=7)
    totals, hours = totals_of(kinds), hours_of(kinds, since, now)
    return {
        each: (
            totals[each].count,
            sum(hours[each]),
            sum(alike.count for alike in of_fingerprints([each], since)),
        )
        for each in kinds
    }


@pytest.fixture
def part(ann: User, runs: dict[str, Run]) -> str:
    fail(runs["orders"], 5)
    fail(runs["stock"], 3)
    return splits.part_off(KIND, "stock", by=ann, now=timezone.now())


def test_the_past_is_divided_as_it_was_counted(part: str) -> None:
    assert counts(KIND, part) == {KIND: (5, 5, 5), part: (3, 3, 3)}
    since = timezone.now() - timedelta(days=7)
    assert (settings_of_groups([KIND], since), settings_of_groups([part], since)) == (
        {"orders": 5},
        {"stock": 3},
    )


def test_protocols_and_groups_keep_their_fingerprint(part: str) -> None:
    assert set(FailureProtocol.objects.values_list("fingerprint", flat=True)) == {KIND}
    assert set(FailureGroup.objects.values_list("fingerprint", flat=True)) == {KIND}


@pytest.mark.parametrize("fold", [False, True])
def test_what_comes_later_is_divided_too_whether_folded_or_not(
    part: str, runs: dict[str, Run], fold: bool
) -> None:
    fail(runs["stock"], 4, fold=fold)
    fail(runs["orders"], 2, fold=fold)
    assert counts(KIND, part) == {KIND: (7, 7, 7), part: (7, 7, 7)}


def test_what_was_not_folded_yet_when_it_was_split_is_counted_once(ann: User, runs: dict[str, Run]) -> None:
    fail(runs["orders"], 5)
    fail(runs["stock"], 3)
    fail(runs["stock"], 2, fold=False)
    part = splits.part_off(KIND, "stock", by=ann, now=timezone.now())
    assert counts(KIND, part) == {KIND: (5, 5, 5), part: (5, 5, 5)}
    fold_all(timezone.now())
    assert counts(KIND, part) == {KIND: (5, 5, 5), part: (5, 5, 5)}


def test_what_no_group_holds_any_more_stays_with_the_whole(ann: User, runs: dict[str, Run]) -> None:
    fail(runs["orders"], 5)
    fail(runs["stock"], 3)
    fail(reports.run(reports.setting("third"), reports.server()), 1)
    FailureGroup.objects.filter(setting_key="stock").delete()
    part = splits.part_off(KIND, "stock", by=ann, now=timezone.now())
    assert counts(KIND, part) == {KIND: (9, 6, 6), part: (0, 3, 0)}


def test_joined_again_everything_is_as_before_and_split_again_too(
    part: str, ann: User, runs: dict[str, Run]
) -> None:
    fail(runs["stock"], 4)
    assert splits.join(part, by=ann, now=timezone.now()) == KIND
    assert counts(KIND) == {KIND: (12, 12, 12)}
    fail(runs["stock"], 1)
    assert counts(KIND) == {KIND: (13, 13, 13)} and merges.members_of(KIND) == [KIND]

    assert splits.part_off(KIND, "stock", by=ann, now=timezone.now()) == part
    assert counts(KIND, part) == {KIND: (5, 5, 5), part: (8, 8, 8)}
    told = FingerprintChange.objects.filter(fingerprint=KIND).order_by("id").values_list("what", "by_name")
    assert list(told) == [
        (FingerprintAct.SPLIT, "ann"),
        (FingerprintAct.MERGED, "ann"),
        (FingerprintAct.SPLIT, "ann"),
    ]


def test_each_has_a_page_in_the_book_of_its_own(ann: User, runs: dict[str, Run]) -> None:
    fail(runs["orders"], 1)
    fail(runs["stock"], 1)
    known_errors.write(KIND, known_errors.KnownErrorFields(cause="before"), by=ann, now=timezone.now())
    part = splits.part_off(KIND, "stock", by=ann, now=timezone.now())
    known_errors.write(part, known_errors.KnownErrorFields(cause="no stock"), by=ann, now=timezone.now())
    known = known_in({(KIND, "orders"), (KIND, "stock")})
    assert (known[KIND, "orders"].cause, known[KIND, "stock"].cause) == ("before", "no stock")

    now = timezone.now()
    known_errors.fixed(part, "1.0", by=ann, now=now)
    fail(runs["orders"], 1)
    assert not known_in({(KIND, "stock")})[KIND, "stock"].returned
    fail(runs["stock"], 1)
    assert known_in({(KIND, "stock")})[KIND, "stock"].returned


@pytest.mark.parametrize("what", ["nowhere", "again", "of a part", "joined", "merged", "unknown"])
def test_what_cannot_be_split_or_joined_is_refused_and_changes_nothing(
    part: str, ann: User, what: str
) -> None:
    now, before = timezone.now(), Fingerprint.objects.count()
    acts: dict[str, Callable[[], object]] = {
        "nowhere": lambda: splits.part_off(KIND, "nowhere", by=ann, now=now),
        "again": lambda: splits.part_off(KIND, "stock", by=ann, now=now),
        "of a part": lambda: splits.part_off(part, "stock", by=ann, now=now),
        "joined": lambda: splits.join(KIND, by=ann, now=now),
        "merged": lambda: merges.merge(part, KIND, by=ann, now=now),
        "unknown": lambda: splits.part_off("v1:none", "stock", by=ann, now=now),
    }
    with pytest.raises(Refused):
        acts[what]()
    assert Fingerprint.objects.count() == before and FingerprintChange.objects.count() == 2


def test_on_the_page_by_who_may_and_the_page_says_what_cannot_be_divided(world: World) -> None:
    row = Fingerprint.objects.order_by("-count")[0]
    setting = FailureGroup.objects.filter(fingerprint=row.pk).values_list("setting_key", flat=True)[0]
    asked = {"of": row.pk, "setting": setting}
    assert signed_in(world, "viewer").post("/fingerprint/part-off/", asked).status_code == 403
    assert not Fingerprint.objects.exclude(part_of=None).exists()

    operator = signed_in(world, "operator")
    operator.post("/fingerprint/part-off/", asked)
    part = Fingerprint.objects.exclude(part_of=None).get()
    whole, page = (
        looked_at(operator, f"/fingerprint/?of={row.pk}"),
        looked_at(operator, f"/fingerprint/?of={part.pk}"),
    )
    assert (
        (
            "Failures of these settings are not counted here. Older failures with no recorded "
            "activation cannot be split by setting, so they are still counted here."
        )
        in whole.text
        and setting in whole.text
        and "Rejoin" in whole.text
    )
    assert (
        "The total covers only failures of activations whose counts are still stored. Older "
        "failures stay in the original group. The counts for the last 7 and 30 days are "
        "exact."
    ) in page.text and "It contains all failures of the setting" in page.text
    assert f"/protocols/?fingerprint={row.pk.replace(':', '%3A')}&setting={setting}" in page.links()
    assert f"/fingerprint/?of={part.pk.replace(':', '%3A')}" in looked_at(operator, "/fingerprints/").links()

    joined = operator.post("/fingerprint/join/", {"of": part.pk})
    assert joined["Location"] == fingerprint_url(row.pk)
    assert Fingerprint.objects.get(pk=part.pk).merged_into_id == row.pk
    assert "No settings are split off." in looked_at(operator, f"/fingerprint/?of={row.pk}").text


def test_a_name_is_erased_from_the_headline_of_a_part_too(part: str) -> None:
    Fingerprint.objects.update(headline="no customer Ada Lovelace")
    protocols._erase_headlines({KIND}, "Lovelace")
    assert set(Fingerprint.objects.values_list("headline", flat=True)) == {""}


def test_over_rest(part: str, groups: None) -> None:
    rest = "/api/v1/fingerprints/"
    operator, viewer = api_client(make_person("op", "operator")), api_client(make_person("vi", "viewer"))
    assert viewer.post(f"{rest}{KIND}/part-off/", {"setting": "orders"}).status_code == 403
    assert viewer.post(f"{rest}{part}/join/").status_code == 403
    assert operator.post(f"{rest}{KIND}/part-off/", {"setting": "nowhere"}).status_code == 409
    assert operator.post(f"{rest}{KIND}/part-off/", {"setting": "orders"}).status_code == 200
    assert operator.post(f"{rest}{part}/join/").json()["merged_into"] == KIND
