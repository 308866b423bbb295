"""Kinds of failures: what is known of them is shown wherever they appear; merged and apart again; two
activations."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone

from agents.models import Activation, ActivationState
from console.audit.models import AuditEntry
from console.operations.refusals import Refused
from failures.error_groups import known_errors, merges
from failures.error_groups.increments import note
from failures.error_groups.queries import fingerprint_url
from failures.error_groups.rollup import fold_all
from failures.models import FailureProtocol, Fingerprint, FingerprintChange, FoldMark, KnownError
from tests.web.factories import World
from tests.web.pages import looked_at, signed_in
from tests.web.rows import make_person

KEY = "orders-export"


def act(world: World, name: str, who: str = "operator", **values: str) -> int:
    return signed_in(world, who).post(f"/fingerprint/{name}/", values).status_code


def text_of(world: World, path: str, who: str = "viewer") -> str:
    return looked_at(signed_in(world, who), path).text


def test_the_list_shows_each_kind_once_the_most_recent_first(world: World) -> None:
    page = looked_at(signed_in(world, "viewer"), "/fingerprints/")
    shown = [link for link in page.links() if link.startswith("/fingerprint/?of=")]
    rows = Fingerprint.objects.order_by("-recent_at", "-fingerprint")

    assert shown == [fingerprint_url(row.pk) for row in rows]
    assert "46" in page.text and "46 total" in str([a.get("aria-label") for _, a in page.found])
    assert "46" in text_of(world, "/fingerprints/?exception=Key&book=new")
    assert "No results." in text_of(world, "/fingerprints/?book=known")
    assert "No results." in text_of(world, "/fingerprints/?setting=stock-sync")


def test_counts_that_stand_still_are_told(world: World) -> None:
    assert "Counts last updated" not in text_of(world, "/fingerprints/")
    FoldMark.objects.update(folded_at=timezone.now() - timedelta(minutes=5))
    assert "Counts last updated" in text_of(world, "/fingerprints/")


def test_what_is_written_is_shown_wherever_it_appears(world: World) -> None:
    protocol = world.protocols[0]
    of = protocol.fingerprint
    said = {
        "cause": "the currency is missing <b>",
        "runbook_url": "https://wiki/x",
        "ticket": "OPS-17",
        "advice": "give_back",
    }
    assert act(world, "write", of=of, **said) == 302

    for path in (
        fingerprint_url(of),
        f"/activations/{protocol.activation_uuid}/",
        "/fingerprints/?book=known",
    ):
        assert "OPS-17" in text_of(world, path), path
    page = text_of(world, fingerprint_url(of))
    assert "the currency is missing <b>" in page and "fix the cause, then replay" in page
    assert "OPS-17" in text_of(world, f"/protocols/{protocol.pk}/")


@pytest.mark.parametrize(
    "said",
    [
        {"runbook_url": "javascript:alert(1)"},
        {"runbook_url": "ftp://x"},
        {"runbook_url": "http://[::1"},
        {"runbook_url": "https:///x"},
        {"advice": "explode"},
        {"cause": "x" * 5000},
        {"ticket": "x" * 300},
    ],
)
def test_what_cannot_be_written_is_refused_with_a_reason(world: World, said: dict[str, str]) -> None:
    of = world.protocols[0].fingerprint
    client = signed_in(world, "operator")
    client.post("/fingerprint/write/", {"of": of, **said})

    assert not KnownError.objects.exists()
    assert looked_at(client, fingerprint_url(of)).found.count(("li", {"class": "error"})) == 1


def test_a_fix_that_did_not_hold_is_told(world: World) -> None:
    row = Fingerprint.objects.get(pk=world.protocols[0].fingerprint)
    assert act(world, "fixed", of=row.pk, version=world.protocols[0].agent_version) == 302
    assert "Not seen since." in text_of(world, fingerprint_url(row.pk))

    again = FailureProtocol.objects.get(pk=world.protocols[0].pk)
    again.pk = uuid4()
    again.occurred_at = again.received_at = timezone.now() + timedelta(minutes=1)
    note([again])
    fold_all(timezone.now())

    assert "regressed" in text_of(world, fingerprint_url(row.pk))
    assert "regressed" in text_of(world, "/fingerprints/?book=returned")
    for path in (f"/activations/{again.activation_uuid}/", f"/protocols/{world.protocols[0].pk}/"):
        assert "regressed" in text_of(world, path), path
    assert act(world, "not-fixed", of=row.pk) == 302
    assert "No results." in text_of(world, "/fingerprints/?book=returned")


def test_merged_ones_are_one_and_apart_again(world: World) -> None:
    one, other = (row.pk for row in Fingerprint.objects.order_by("-count")[:2])
    counts = {row.pk: row.count for row in Fingerprint.objects.all()}
    assert act(world, "write", of=one, ticket="OPS-1") == 302
    assert act(world, "merge", of=one, other=other) == 302

    assert f"{counts[one] + counts[other]} failures" in text_of(world, fingerprint_url(one))
    assert "Merged into" in text_of(world, fingerprint_url(other))
    assert known_errors.known_of([other])[other].ticket == "OPS-1"
    assert act(world, "split", of=one, other=other) == 302
    assert f"{counts[one]} failures" in text_of(world, fingerprint_url(one))
    assert (
        known_errors.known_of([other]) == {}
        and {row.pk: row.count for row in Fingerprint.objects.all()} == counts
    )
    assert FingerprintChange.objects.filter(fingerprint=one).count() == 3


def test_what_was_written_goes_along_and_a_split_undoes_the_merge(world: World) -> None:
    first, second, third = (row.pk for row in Fingerprint.objects.order_by("pk")[:3])
    by, now = world.people["operator"], timezone.now()
    merges.merge(first, second, by=by, now=now)
    known_errors.write(second, known_errors.KnownErrorFields(ticket="OPS-2"), by=by, now=now)
    merges.merge(second, third, by=by, now=now)

    assert (
        known_errors.known_of([first])[first].ticket == "OPS-2"
        and known_errors.known_of([third])[third].pk == third
    )
    assert "OPS-2" in text_of(world, fingerprint_url(third))
    merges.split(second, of=third, by=by, now=now)
    assert merges.heads_of([first, second, third]) == {first: second, second: second, third: third}
    told = text_of(world, fingerprint_url(first))
    assert f"merged this group into {third}" in told and f"split this group off from {third}" in told
    assert f"split off from this group: {second}" in text_of(world, fingerprint_url(third))


def test_one_that_is_known_already_keeps_what_was_written_of_it(world: World) -> None:
    one, other = (row.pk for row in Fingerprint.objects.order_by("pk")[:2])
    by, now = world.people["operator"], timezone.now()
    known_errors.write(one, known_errors.KnownErrorFields(ticket="OPS-1"), by=by, now=now)
    known_errors.write(other, known_errors.KnownErrorFields(ticket="OPS-2"), by=by, now=now)
    merges.merge(one, other, by=by, now=now)

    assert known_errors.known_of([one])[one].ticket == "OPS-2"
    merges.split(one, of=other, by=by, now=now)
    assert known_errors.known_of([one])[one].ticket == "OPS-1"


def test_counts_of_several_lead_to_no_list_of_one(world: World) -> None:
    one, other = (row.pk for row in Fingerprint.objects.order_by("-count")[:2])
    before = looked_at(signed_in(world, "viewer"), fingerprint_url(one)).links()
    merges.merge(other, one, by=world.people["operator"], now=timezone.now())
    after = looked_at(signed_in(world, "viewer"), fingerprint_url(one)).links()

    assert [link for link in before if link.startswith("/protocols/?server=")]
    assert not [link for link in after if link.startswith(("/protocols/?server=", "/protocols/?setting="))]
    assert f"/protocols/?fingerprint={other.replace(':', '%3A')}" in after


def test_a_kind_that_came_a_moment_ago_has_its_page_and_is_counted_in_it(world: World) -> None:
    row = FailureProtocol.objects.get(pk=world.protocols[0].pk)
    note([row])
    assert "47 failures" in text_of(world, fingerprint_url(row.fingerprint))
    row.fingerprint = "v1:0000000000000002"
    note([row])

    assert "1 failure" in text_of(world, fingerprint_url(row.fingerprint))


def test_a_filter_that_means_nothing_finds_nothing(world: World) -> None:
    for query in ("book=zzz", "span=9999d", "setting=nope"):
        page = looked_at(signed_in(world, "viewer"), f"/fingerprints/?{query}")
        assert not [link for link in page.links() if link.startswith("/fingerprint/?of=")], query


def test_merging_makes_neither_chains_nor_circles(world: World) -> None:
    a, b, c = (row.pk for row in Fingerprint.objects.order_by("pk")[:3])
    by, now = world.people["operator"], timezone.now()
    merges.merge(a, b, by=by, now=now)
    merges.merge(b, c, by=by, now=now)

    assert sorted(Fingerprint.objects.filter(merged_into=c).values_list("pk", flat=True)) == [a, b]
    for one, into in ((c, a), (c, c), (a, c), ("nobody", c)):
        with pytest.raises(Refused):
            merges.merge(one, into, by=by, now=now)
    assert merges.heads_of([a, b, c, "nobody"]) == {a: c, b: c, c: c, "nobody": "nobody"}


def test_who_may_not_does_nothing(world: World) -> None:
    of = world.protocols[0].fingerprint
    for name in ("write", "fixed", "not-fixed", "merge", "split"):
        assert act(world, name, "viewer", of=of, other=of, ticket="x") == 403, name
        assert signed_in(world, "operator").get(f"/fingerprint/{name}/").status_code == 405
    assert signed_in(world, "outsider").get("/fingerprints/").status_code == 403
    assert not KnownError.objects.exists() and not FingerprintChange.objects.exists()
    assert "Edit notes" not in text_of(world, fingerprint_url(of))
    assert signed_in(world, "viewer").get("/fingerprint/?of=nobody").status_code == 404


def test_what_people_do_is_in_the_audit_and_leads_to_its_page(world: World) -> None:
    of, other = (row.pk for row in Fingerprint.objects.order_by("-count")[:2])
    act(world, "write", of=of, ticket="OPS-1")
    act(world, "write", of=of, ticket="OPS-1")
    act(world, "merge", of=of, other=of)
    act(world, "merge", of=of, other=other)
    act(world, "merge", "viewer", of=of, other=other)
    assert act(world, "merge", of="nobody", other=other) == 404

    rows = AuditEntry.objects.order_by("pk")
    of_kind = f"fingerprint:{of}"
    assert list(rows.values_list("action", "target", "result", "by_name")) == [
        ("error_group.known", of_kind, "done", "operator"),
        ("error_group.known", of_kind, "done", "operator"),
        ("error_group.merge", of_kind, "refused", "operator"),
        ("error_group.merge", of_kind, "done", "operator"),
        ("error_group.merge", of_kind, "refused", "viewer"),
        ("error_group.merge", "page:/fingerprint/merge/", "refused", "operator"),
    ]
    assert [row.detail for row in rows][:2] == [{"fields": ["ticket"]}, {"changed": False}]
    reader = make_person("reader", "operator")
    reader.user_permissions.add(Permission.objects.get(codename="view_auditentry"))
    browser = Client()
    browser.force_login(reader)
    assert fingerprint_url(of) in looked_at(browser, "/audit/").links()


def test_groups_stay_when_retention_has_deleted_their_protocols(world: World) -> None:
    activation = world.activations[KEY]
    before = text_of(world, f"/activations/{activation.pk}/")
    FailureProtocol.objects.filter(activation=activation).delete()
    after = text_of(world, f"/activations/{activation.pk}/")

    assert "46" in before and "46" in after
    assert "deleted by retention" in after and "deleted by retention" not in before


def test_activations_show_their_failures_by_server(world: World) -> None:
    activation = world.activations[KEY]
    for path in (f"/settings/{KEY}/", f"/activations/?setting={KEY}"):
        page = looked_at(signed_in(world, "viewer"), path)
        words = [str(attributes.get("aria-label")) for tag, attributes in page.found if tag == "svg"]
        runs = activation.runs.order_by("-failed", "server__name")

        assert ", ".join(f"{run.server.name}: {run.failed}" for run in runs if run.failed) in words, path
        assert f"/protocols/?activation={activation.pk}" in page.links()


class TestTwoActivations:
    def make_next(self, world: World) -> Activation:
        before = world.activations[KEY]
        now = timezone.now()
        Activation.objects.filter(pk=before.pk).update(
            state=ActivationState.SUCCEEDED,
            ended_at=now,
            number=1,
            launched_with={"concurrency": 4, "parameters": {"a": 1}},
        )
        return Activation.objects.create(
            setting=before.setting,
            number=2,
            started_at=now,
            launched_with={"concurrency": 8, "parameters": {"a": 2, "b": "x"}},
        )

    def test_they_are_compared_and_so_are_the_fields(self, world: World) -> None:
        after = self.make_next(world)
        kept = world.protocols[0]
        row = FailureProtocol.objects.get(pk=kept.pk)
        row.activation_uuid, row.fingerprint, row.exception_type = (
            after.pk,
            "v1:0000000000000001",
            "shop.NewError",
        )
        note([row])
        text = text_of(world, f"/activations/{after.pk}/")

        assert "Comparison with the previous finished activation" in text
        assert "shop.NewError" in text and text.index("new") and "gone" in text
        assert "concurrent messages per server" in text and "parameters: b" in text

    def test_merged_ones_are_one_and_told_by_their_head(self, world: World) -> None:
        after = self.make_next(world)
        head, other = (row for row in Fingerprint.objects.order_by("-count")[:2])
        merges.merge(other.pk, head.pk, by=world.people["operator"], now=timezone.now())
        row = FailureProtocol.objects.filter(fingerprint=other.pk)[0]
        row.activation_uuid = after.pk
        note([row])
        panel = text_of(world, f"/activations/{after.pk}/").split(
            "Comparison with the previous finished activation"
        )[1]

        assert panel.count(head.exception_type) == 1 and other.exception_type not in panel
        assert "+1 merged" in panel

    def test_the_first_one_has_nothing_beside_it(self, world: World) -> None:
        assert "Compared with" not in text_of(world, f"/activations/{world.activations[KEY].pk}/")
