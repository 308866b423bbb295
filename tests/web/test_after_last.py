"""What becomes of a message without an attempt left: who may choose it, what is refused, and what pages say
of it."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from rest_framework.test import APIClient

from agents.heartbeat.desired import desired_state
from agents.manifests.apply import apply
from agents.manifests.document import Rejected, document_of
from agents.models import LaunchSetting, Run
from contract.outcomes import AfterLast
from contract.records import REFUSED, derived_id
from failures.intake.batch import accept_batch
from failures.models import FailureProtocol
from tests.web import reports
from tests.web.pages import Elements
from tests.web.reports import Spool
from tests.web.rows import NOW, make_roles

pytestmark = pytest.mark.django_db
WHY_NOT = "You cannot choose to discard messages"


@pytest.fixture
def orders() -> LaunchSetting:
    return reports.setting()


def person(*permissions: str) -> User:
    make_roles()
    user = reports.person("anna", *permissions)
    user.groups.add(Group.objects.get(name="operator"))
    return user


def patched(user: User, **values: Any) -> Any:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=reports.bearer_of(user)["Authorization"])
    return client.patch("/api/v1/settings/orders/", values, format="json")


def chosen() -> tuple[str, str]:
    setting = LaunchSetting.objects.get(key="orders")
    return setting.after_last, setting.exception_destination


def test_discarding_takes_a_permission_of_its_own_over_rest(orders: LaunchSetting) -> None:
    answer = patched(person(), after_last="discard")
    assert answer.status_code == 400 and WHY_NOT in answer.content.decode()
    assert chosen() == ("dlq", "")


def test_who_may_discards_and_others_keep_what_they_find(orders: LaunchSetting) -> None:
    LaunchSetting.objects.update(after_last="discard")
    user = person()
    assert patched(user, after_last="discard", description="other").status_code == 200
    assert patched(user, after_last="dlq").status_code == 200
    assert patched(user, after_last="discard").status_code == 400
    user = User.objects.get(
        pk=reports.person("chief", "agents.can_discard", "agents.change_launchsetting").pk
    )
    user.groups.add(Group.objects.get(name="operator"))
    assert patched(user, after_last="discard").status_code == 200


def test_the_form_refuses_it_too(orders: LaunchSetting) -> None:
    client = Client()
    client.force_login(person())
    answer = client.post(f"/agents/launchsetting/{orders.pk}/change/", {"after_last": "discard"})
    assert answer.status_code == 200 and WHY_NOT in Elements(answer.content.decode()).text
    assert chosen() == ("dlq", "")


def test_a_file_refuses_it_too(orders: LaunchSetting) -> None:
    wanted = document_of({"settings": {"orders": {"after_last": "discard"}}})
    with pytest.raises(Rejected) as error:
        apply(wanted, person(), NOW)
    assert WHY_NOT in str(error.value.problems[0])
    assert chosen() == ("dlq", "")
    apply(wanted, None, NOW)
    assert chosen() == ("discard", "")


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("", "Enter a destination, or choose another action."),
        (
            "MA.DLA",
            (
                "Use only A–Z, a–z, 0–9 and . _ / -. Reserved names: activemq, mops, jms, "
                "ExpiryQueue, MA and DLQ."
            ),
        ),
        ("own", "The message would loop through its own destination endlessly. Enter another destination."),
    ],
)
def test_an_exception_destination_is_named_and_is_another_one(
    orders: LaunchSetting, to: str, said: str
) -> None:
    to = orders.subscribed.name if to == "own" else to
    user = person()
    answer = patched(user, after_last="exception", exception_destination=to)
    assert answer.status_code == 400 and said in str(answer.json())
    assert patched(user, after_last="exception", exception_destination="orders.broken").status_code == 200
    assert chosen() == ("exception", "orders.broken")


def test_exception_destinations_do_not_lead_back(orders: LaunchSetting) -> None:
    """Over others that send a message on. One that ends elsewhere, or goes round without this one, is none of
    its."""
    aside = {"after_last": "exception"}
    reports.setting("second", **aside, exception_destination="t.third")
    third = reports.setting("third", **aside, exception_destination=orders.subscribed.name)
    user = person()

    answer = patched(user, **aside, exception_destination="t.second")
    assert answer.status_code == 400
    assert "The message would come back here through second, third. Enter another destination." in str(
        answer.json()
    )
    LaunchSetting.objects.filter(pk=third.pk).update(exception_destination="t.second")
    assert patched(user, **aside, exception_destination="t.second").status_code == 200
    LaunchSetting.objects.filter(pk=third.pk).update(
        exception_destination=orders.subscribed.name, after_last="dlq"
    )
    assert patched(user, **aside, exception_destination="t.third").status_code == 200


def test_a_way_back_that_is_there_keeps_nobody_from_another_change(orders: LaunchSetting) -> None:
    reports.setting("second", after_last="exception", exception_destination=orders.subscribed.name)
    LaunchSetting.objects.filter(pk=orders.pk).update(
        after_last="exception", exception_destination="t.second"
    )
    user = person()

    assert patched(user, description="unchanged").status_code == 200
    assert patched(user, after_last="dlq").status_code == 200
    assert patched(user, after_last="exception").status_code == 400


@pytest.mark.parametrize("order", [("orders", "second"), ("second", "orders")])
def test_a_file_turns_a_way_round_whatever_its_order(orders: LaunchSetting, order: tuple[str, str]) -> None:
    reports.setting("second", after_last="exception", exception_destination=orders.subscribed.name)
    wanted = {
        "orders": {"after_last": "exception", "exception_destination": "t.second"},
        "second": {"after_last": "dlq"},
    }
    apply(document_of({"settings": {key: wanted[key] for key in order}}), None, NOW)

    assert chosen() == ("exception", "t.second")


def test_servers_are_told(orders: LaunchSetting) -> None:
    run = reports.run(orders, reports.server())
    LaunchSetting.objects.update(enabled=True, after_last="exception", exception_destination="orders.broken")
    Run.objects.update(wanted=True, closed_at=None)
    (told,) = desired_state(run.server).runs
    assert (told.after_last, told.exception_destination) == (AfterLast.EXCEPTION, "orders.broken")


def stored(run: Run, disposition: str) -> FailureProtocol:
    about = reports.message("ID:1", 3)
    batch = Spool().batch(
        reports.protocol(
            reports.run_of(run), about, outcome="raised", last_attempt=True, disposition=disposition
        )
    )
    assert accept_batch(run.server, batch, NOW).new == 1
    return FailureProtocol.objects.get(pk=batch.records[0].id)


@pytest.mark.parametrize(
    ("disposition", "words"),
    [
        ("exception", "sent to the exception destination"),
        ("discarded", "discarded"),
        ("dlq", "dead-lettered message"),
    ],
)
def test_the_protocols_page_says_what_became_of_it(
    orders: LaunchSetting, disposition: str, words: str
) -> None:
    row = stored(reports.run(orders, reports.server()), disposition)
    client = Client()
    client.force_login(reports.person("viewer", "failures.view_failureprotocol"))
    page = Elements(client.get(f"/protocols/{row.pk}/").content.decode()).text
    assert "Outcome" in page and words in page
    listed = client.get("/protocols/").content.decode()
    assert (f'<span class="tag">{words}</span>' in listed) == (disposition != "dlq")


def test_the_page_says_so_where_the_broker_refused(orders: LaunchSetting) -> None:
    row = stored(reports.run(orders, reports.server()), "exception")
    refusal = FailureProtocol.objects.get(pk=row.pk)
    refusal.pk, refusal.number, refusal.disposition = derived_id(row.pk, REFUSED), 2, "dlq"
    refusal.save(force_insert=True)
    client = Client()
    client.force_login(reports.person("viewer", "failures.view_failureprotocol"))
    content = client.get(f"/protocols/{row.pk}/").content.decode()
    assert (
        "The broker refused the operation; the message is in the DLQ." in content
        and str(refusal.pk) in content
    )


def test_a_word_that_nobody_knows_is_refused(orders: LaunchSetting) -> None:
    run = reports.run(orders, reports.server())
    batch = Spool().batch(reports.protocol(reports.run_of(run), disposition="burnt"))
    receipt = accept_batch(run.server, batch, NOW)
    assert [refusal.number for refusal in receipt.refused] == [1]


@pytest.mark.parametrize(
    ("values", "end"),
    [
        ({"after_last": "dlq"}, "The message is dead-lettered"),
        ({"after_last": "discard"}, "discarded"),
        ({"after_last": "exception", "exception_destination": "t.errors"}, "sent to t.errors"),
    ],
    ids=["dlq", "discard", "exception"],
)
def test_the_schedule_of_a_setting_ends_with_it(
    orders: LaunchSetting, values: dict[str, str], end: str
) -> None:
    LaunchSetting.objects.update(**values)
    client = Client()
    client.force_login(person())
    text = Elements(client.get("/settings/orders/").content.decode()).text
    schedule = text[text.index("Redelivery of a failing message") :]
    assert end in schedule and ("The message is dead-lettered" in schedule) == (values["after_last"] == "dlq")


@pytest.mark.parametrize("field", ["committed_destination", "rolled_back_destination"])
def test_no_event_of_an_answer_comes_back_as_a_message(orders: LaunchSetting, field: str) -> None:
    own = orders.subscribed.name
    anna = person()
    answer = patched(anna, mode="CLIENT", **{field: own})
    assert (answer.status_code, answer.json()["where"]) == (400, field), answer.content
    assert patched(anna, mode="CLIENT", **{field: "shop.answers"}).status_code == 200
