"""Cards for people: blocks for an incoming webhook of Slack, an Adaptive Card for a workflow of Microsoft
Teams.

Texts come from hostile places, so neither may read marks of a language in them: Slack gets plain text alone,
and of the Markdown of a card every mark is taken away.
"""

import re
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from alerts.notices.channels.request import BAD, WARNING, Message, OutgoingRequest, Recipient, as_json, cut

# Most characters of a header, of a text, and lines of a card: Slack refuses more.
HEADER, TEXT, LINES = 150, 3000, 20
COLORS: dict[int, str] = {BAD: "Attention", WARNING: "Warning"}
MARKS: dict[int, str] = {BAD: "🔴", WARNING: "🟠"}
CARD_TYPE = "application/vnd.microsoft.card.adaptive"
SCHEMA, CARD_VERSION = "http://adaptivecards.io/schemas/adaptive-card.json", "1.4"
MARKDOWN = re.compile(r"([\\`*_\[\]()#<>|~])")


def _mark(message: Message) -> str:
    """Says in one character how bad it is; the words say it too."""
    return "🟢" if message.over else MARKS.get(message.severity, "🔵")


def slack(message: Message, to: Recipient, now: datetime) -> tuple[OutgoingRequest, ...]:
    title = f"{_mark(message)} {message.title}"
    blocks: list[dict[str, Any]] = [{"type": "header", "text": _plain(title, HEADER)}]
    if message.lines:
        blocks.append({"type": "section", "text": _plain("\n".join(message.lines[:LINES]), TEXT)})
    button = {"type": "button", "text": _plain(_("Open in MA"), 75), "url": message.link, "action_id": "open"}
    blocks.append({"type": "actions", "elements": [button]})
    # Shown by clients without blocks. Not escaped it would be read as marks: `<!channel>` calls everybody.
    body = {"text": _escaped(cut(title, TEXT)), "blocks": blocks}
    return (OutgoingRequest(to.address, as_json(body)),)


def _plain(text: str, most: int) -> dict[str, Any]:
    return {"type": "plain_text", "text": cut(text, most), "emoji": False}


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def teams(message: Message, to: Recipient, now: datetime) -> tuple[OutgoingRequest, ...]:
    head: dict[str, Any] = {
        "type": "TextBlock",
        "text": _without_marks(cut(f"{_mark(message)} {message.title}", HEADER)),
        "size": "Large",
        "weight": "Bolder",
        "wrap": True,
        "color": "Good" if message.over else COLORS.get(message.severity, "Default"),
    }
    lines = [
        {"type": "TextBlock", "text": _without_marks(line), "wrap": True, "spacing": "Small"}
        for line in message.lines[:LINES]
    ]
    card = {
        "$schema": SCHEMA,
        "type": "AdaptiveCard",
        "version": CARD_VERSION,
        "body": [head, *lines],
        "actions": [{"type": "Action.OpenUrl", "title": _("Open in MA"), "url": message.link}],
    }
    attachment = {
        "contentType": "application/vnd.microsoft.card.adaptive",
        "contentUrl": None,
        "content": card,
    }
    return (OutgoingRequest(to.address, as_json({"type": "message", "attachments": [attachment]})),)


def _without_marks(text: str) -> str:
    return MARKDOWN.sub(r"\\\1", text)
