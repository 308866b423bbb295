"""Masked properties of dead letters: who sees them, on pages and over REST, and that the row stays whole."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from rest_framework.test import APIClient

from agents.models import LaunchSetting
from broker.amqp.codec import decode
from broker.port import BodyKind
from console.audit.models import AuditEntry
from contract.typed import Typed
from dlq.dead_letters.masks import MASK, Masks, masks_for
from dlq.dead_letters.rules.json_masks import masked_head
from dlq.dead_letters.rules.parser import raw_row
from dlq.exports import record_export
from dlq.index import store
from dlq.models import DeadLetter
from tests.dlq.jobs import begun
from tests.web import letters, reports
from tests.web.rows import make_roles

pytestmark = pytest.mark.django_db

SECRET = "4111-secret"
BROKEN = b"\x00\x01" + SECRET.encode()
HOSTILE = [
    '<script>alert("n")</script>',
    "card\u202e",
    "name",
    "__proto__",
    "{{ 7|add:7 }}",
    "x" * 5000,
    "masked",
]


def person(name: str, *, sees: bool) -> User:
    """An operator; or one who may see what is masked too."""
    make_roles()
    user = reports.person(name, *(["dlq.can_see_masked"] if sees else []))
    user.groups.add(Group.objects.get(name="operator"))
    return user


@pytest.fixture
def operator() -> User:
    return person("operator", sees=False)


@pytest.fixture
def trusted() -> User:
    return person("trusted", sees=True)


def orders(*masked: str) -> LaunchSetting:
    return reports.setting(masked_properties=list(masked))


def letter(key: str = "orders", number: int = 10, **properties: str) -> DeadLetter:
    typed = {
        name: Typed("string", value)
        for name, value in (properties or {"card": SECRET, "region": "north"}).items()
    }
    return letters.dead(key, number, f"ID:{number}", properties=typed)


def broken(queue: str = "DLQ.orders") -> DeadLetter:
    """Bytes that are no message, with the secret in them."""
    row = raw_row(BROKEN, letters.NODE, reports.AT, "not AMQP")
    row.queue = queue
    store.store([row], row.seen_at)
    return row


def page(user: User, path: str, status: int = 200) -> str:
    client = Client()
    client.force_login(user)
    answer = client.get(path)
    assert answer.status_code == status, (path, answer.status_code)
    return answer.content.decode()


def api(user: User, path: str) -> Any:
    return rest(user, f"dead-letters/{path}")


def rest(user: User, path: str) -> Any:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=reports.bearer_of(user)["Authorization"])
    answer = client.get(f"/api/v1/{path}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_operators_see_the_mask_and_the_trusted_the_value(operator: User, trusted: User) -> None:
    orders("card")
    path = f"/letters/{letter().pk}/"
    assert SECRET not in page(operator, path) and SECRET in page(trusted, path)
    text = page(operator, path)
    assert MASK in text and "north" in text and "Can see masked properties" in text
    assert "Can see masked properties" not in page(trusted, path)


def test_the_api_says_what_is_masked_and_tells_the_rest(operator: User, trusted: User) -> None:
    orders("card")
    row = letter()
    told = {item["name"]: item for item in api(operator, f"{row.pk}/")["properties"]}
    assert told["card"] == {"name": "card", "type": "", "value": MASK, "masked": True}
    assert told["region"] == {"name": "region", "type": "string", "value": "north"}
    assert {"name": "card", "type": "string", "value": SECRET} in api(trusted, f"{row.pk}/")["properties"]


@pytest.mark.parametrize("kind", ["string", "binary"])
def test_the_api_masks_fields_of_a_whole_body_too(kind: str, operator: User, trusted: User) -> None:
    orders("card")
    text = f'{{"region": "north", "card": "{SECRET}"}}'
    row = letters.dead("orders", 10, "ID:10", body=Typed(kind, text if kind == "string" else text.encode()))
    assert api(trusted, f"{row.pk}/")["body"] == {"text": text}
    assert api(operator, f"{row.pk}/")["body"] == {"text": f'{{"region": "north", "card": "{MASK}"}}'}


def test_the_api_tells_nothing_of_a_body_that_cannot_be_taken_apart(operator: User, trusted: User) -> None:
    orders("card")
    row = letters.dead("orders", 10, "ID:10", body=Typed("string", f'{{"card": "{SECRET}"'))
    assert SECRET in api(trusted, f"{row.pk}/")["body"]["text"]
    assert api(operator, f"{row.pk}/")["body"] == {"masked": True}


def test_the_row_keeps_the_value_for_the_way_back(operator: User) -> None:
    orders("card")
    row = letter()
    page(operator, f"/letters/{row.pk}/")
    api(operator, f"{row.pk}/")
    row.refresh_from_db()
    assert {"name": "card", "type": "string", "value": SECRET} in row.properties
    assert decode(bytes(row.encoded)).properties["card"] == Typed("string", SECRET)


def test_annotations_are_masked_by_the_same_names(operator: User) -> None:
    orders("x-opt-ORIG-ADDRESS")
    row = letter()
    told = {item["name"]: item["value"] for item in api(operator, f"{row.pk}/")["annotations"]}
    assert told["x-opt-ORIG-ADDRESS"] == MASK and told["x-opt-ORIG-QUEUE"] == "orders"


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_masked_like_any_other(name: str, operator: User, trusted: User) -> None:
    orders(name)
    properties: dict[str, Any] = {name: SECRET, "region": "north"}
    row = letter(**properties)
    assert SECRET not in page(operator, f"/letters/{row.pk}/")
    assert SECRET not in str(api(operator, f"{row.pk}/"))
    seen = page(trusted, f"/letters/{row.pk}/")
    assert SECRET in seen and "<script>alert(" not in seen


def test_names_are_whole_and_know_capitals(operator: User) -> None:
    orders("card")
    row = letter(card=SECRET, Card="other", card2="more")
    assert {item["value"] for item in api(operator, f"{row.pk}/")["properties"]} == {MASK, "other", "more"}


def test_nested_values_are_masked_as_one(operator: User) -> None:
    orders("card")
    value = Typed("map", ((Typed("string", "number"), Typed("string", SECRET)),))
    row = letters.dead("orders", 10, "ID:10", properties={"card": value})
    assert SECRET not in page(operator, f"/letters/{row.pk}/") + str(api(operator, f"{row.pk}/"))


def test_letters_of_no_known_setting_are_masked_by_every_list(operator: User, trusted: User) -> None:
    orders("card")
    reports.setting("invoices", masked_properties=["iban"])
    row = letter("gone", card=SECRET, iban="DE-secret", region="north")
    text = page(operator, f"/letters/{row.pk}/")
    assert SECRET not in text and "DE-secret" not in text and "north" in text
    assert SECRET in page(trusted, f"/letters/{row.pk}/")


def test_the_list_of_another_setting_masks_nothing_here(operator: User) -> None:
    orders()
    reports.setting("invoices", masked_properties=["card"])
    assert SECRET in page(operator, f"/letters/{letter().pk}/")


def test_a_letter_cannot_choose_the_list_by_what_it_says_of_itself(operator: User) -> None:
    orders("card")
    reports.setting("open")
    row = letter("open")
    DeadLetter.objects.filter(pk=row.pk).update(queue="DLQ.orders")
    assert SECRET not in page(operator, f"/letters/{row.pk}/")


def test_bytes_that_are_no_message_are_not_told(operator: User, trusted: User) -> None:
    orders("card")
    row = broken()
    path, hexadecimal = f"/letters/{row.pk}/", SECRET.encode().hex()
    text = page(operator, path)
    assert SECRET not in text and SECRET.encode().hex(" ") not in text and f"{path}body/" not in text
    page(operator, f"{path}body/", 403)
    assert api(operator, f"{row.pk}/")["body"] == {"masked": True}
    assert hexadecimal not in str(api(operator, f"{row.pk}/")) + str(api(operator, ""))
    assert f"{path}body/" in page(trusted, path) and SECRET in page(trusted, f"{path}body/")
    assert hexadecimal in str(api(trusted, ""))


def test_without_a_list_bytes_that_are_no_message_are_shown(operator: User) -> None:
    orders()
    row = broken()
    assert SECRET in page(operator, f"/letters/{row.pk}/body/")


def test_bytes_that_are_no_message_have_no_words(operator: User, trusted: User) -> None:
    orders("card")
    row = broken()
    for path in (
        f"/dead-letters/orders/?text={SECRET.encode().hex()[:12]}*",
        "/dead-letters/orders/?text=secret",
    ):
        assert f"/letters/{row.pk}/" not in page(operator, path) + page(trusted, path)


def test_heads_of_bodies_before_giving_back_and_after(operator: User, trusted: User) -> None:
    setting = orders("card")
    row, job = broken(), None
    DeadLetter.objects.filter(pk=row.pk).update(orig_message_id=77)
    asked = f"/dead-letters/orders/give-back/?letter={row.pk}"
    hexadecimal = SECRET.encode().hex()
    assert hexadecimal not in page(operator, asked) and hexadecimal in page(trusted, asked)
    job = letters.given_back(setting, row)
    assert hexadecimal not in page(operator, f"/replays/{job.pk}/")
    assert hexadecimal in page(trusted, f"/replays/{job.pk}/")


def test_a_case_page_never_tells_a_masked_value(operator: User) -> None:
    orders("card")
    letter()
    text = page(operator, "/cases/?key=ID:10&setting=orders")
    assert "DLQ.orders" in text and SECRET not in text


def test_a_search_by_a_masked_property_is_refused_with_its_name(operator: User, trusted: User) -> None:
    orders("card")
    reports.setting("open")
    masks = masks_for(operator)
    assert (
        "Cannot use the property “card”: it is masked. Ask for the permission "
        "“Can see masked properties of dead letters”."
    ) in masks.refusal("card", ["orders"]) and (
        "Cannot use the property “card”: it is masked. Ask for the permission "
        "“Can see masked properties of dead letters”."
    ) in masks.refusal("card")
    assert masks.refusal("region", ["orders"]) == masks.refusal("card", ["open"]) == ""
    assert (
        "Cannot use the property “card”: it is masked. Ask for the permission "
        "“Can see masked properties of dead letters”."
    ) in masks.refusal("card", ["open", "orders"])
    assert masks_for(trusted).refusal("card") == ""


def test_what_the_trusted_look_for_is_not_told_to_others(operator: User, trusted: User) -> None:
    """A job says which filter it has: whoever reads the value there knows that a letter has it."""
    setting = orders("card")
    letter()
    query = f"prop=region%3Dnorth&prop=card%3D{SECRET}"
    job = begun(setting, action="discard", scope="matching", by=trusted, now=reports.AT, query=query)
    record_export(trusted, key="orders", file="csv", bodies=False, query=query)
    path = f"/replays/{job.pk}/"
    assert SECRET in page(trusted, path) and SECRET in rest(trusted, f"replays/{job.pk}/")["query"]
    told = [page(operator, path), rest(operator, f"replays/{job.pk}/")["query"]]
    told += [str(entry.detail) for entry in AuditEntry.objects.all()]
    assert len(told) == 4 and not any(SECRET in text for text in told)
    assert all(MASK in text and "north" in text for text in told)
    job.refresh_from_db()
    assert job.query == query


def test_operators_do_not_get_the_permission_and_administrators_have_it(operator: User) -> None:
    chief = User.objects.create_superuser("chief")
    orders("card")
    assert not operator.has_perm("dlq.can_see_masked") and chief.has_perm("dlq.can_see_masked")
    assert masks_for(operator).any and masks_for(chief) == Masks()


NESTED = [
    '{"payload": "{\\"card\\": \\"4111-secret\\"}", "n": 1}',
    '{"payload": "{\\"c\\\\u0061rd\\": \\"4111-secret\\"}"}',
    '{"a": ["x", "[{\\"card\\" : \\"4111-secret\\"}]"]}',
]


@pytest.mark.parametrize("text", NESTED)
def test_json_in_a_string_of_json_is_masked_as_a_whole(operator: User, text: str) -> None:
    orders("card")
    row = letters.dead("orders", 10, body=Typed("string", text))
    masks = masks_for(operator)
    for told in (
        masks.head_of_body(row),
        masks.body(row, text) or "",
        masked_head(text[:-4], masks.names(row)),
    ):
        assert SECRET not in told and MASK in told
    assert masks.body(row, '{"payload": "{\\"n\\": 1}"}') == '{"payload": "{\\"n\\": 1}"}'


@pytest.mark.parametrize("coding", ["latin-1", "utf-16"])
def test_a_body_in_another_coding_is_not_told_in_hexadecimal(
    operator: User, trusted: User, coding: str
) -> None:
    orders("card")
    body = '{"card": "4111-secret", "name": "Müller"}'.encode(coding)
    row = letters.dead("orders", 10, body=Typed("binary", body), body_kind=BodyKind.DATA)
    assert masks_for(trusted).head_of_body(row) == f"0x{body.hex()}"
    assert masks_for(operator).head_of_body(row) == MASK
    client = APIClient()
    client.force_authenticate(operator)
    for path in ("/api/v1/dead-letters/", f"/api/v1/dead-letters/{row.pk}/"):
        assert body[:16].hex() not in client.get(path).content.decode(), path
    wish = {"body": {"base64": "/w=="}, "other_form": True, "dry_run": True}
    answer = client.post(f"/api/v1/dead-letters/{row.pk}/edit/", wish, format="json")
    assert answer.status_code >= 400 and "7b 22" not in answer.content.decode()
