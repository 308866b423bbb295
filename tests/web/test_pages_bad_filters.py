"""What an address asks for comes back on the page: with nothing invisible in its text, and nothing that
runs."""

from html.parser import HTMLParser
from urllib.parse import urlencode

import pytest
from django.test import Client

from dlq.search.filter import LetterFilter
from tests.web.factories import World
from tests.web.pages import signed_in

KEY = "orders-export"
HOSTILE = "\u202e\"'><script>alert(1)</script>="
FIELDS = ("/letters/", f"/dead-letters/{KEY}/bin/")
PATHS = (
    *FIELDS, "/letters/groups/", f"/dead-letters/{KEY}/give-back/?match=1",
    f"/dead-letters/{KEY}/export/?file=csv"
)  # fmt: skip


class Parts(HTMLParser):
    """Texts outside of fields, values of fields, tags."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts, self.values = "", ""
        self.scripts: list[str | None] = []
        self.handlers: list[str] = []
        self._inside = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag
        named = dict(attrs)
        if tag == "script":
            self.scripts.append(named.get("src"))
        self.handlers += [name for name in named if name.startswith("on")]
        for name, value in attrs:
            if (tag, name) == ("input", "value"):
                self.values += value or ""
            else:
                self.texts += value or ""

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "textarea":
            self.values += data
        else:
            self.texts += data


@pytest.fixture
def chief(world: World) -> Client:
    return signed_in(world, "chief")


@pytest.mark.process  # as dear: each filter of each page
def test_no_field_of_a_filter_brings_its_value_raw_into_a_text(chief: Client) -> None:
    for path in PATHS:
        typed = ""
        for name in (*LetterFilter.base_filters, "nothing\u202e"):
            asked = f"{path}{'&' if '?' in path else '?'}{urlencode({name: HOSTILE})}"
            answer = chief.get(asked, follow=True)
            if not answer.headers["Content-Type"].startswith("text/html"):
                continue
            parts = Parts(answer.content.decode())
            assert answer.status_code == 200 and "\u202e" not in parts.texts, asked
            assert all(parts.scripts) and not parts.handlers, asked
            typed += parts.values
        assert path not in FIELDS or HOSTILE in typed, "a field keeps what was typed"


def test_no_other_list_does_either(chief: Client) -> None:
    hostile = dict.fromkeys(("setting", "state", "span", "action", "result", "server", "temporary"), HOSTILE)
    for path in ("/audit/", "/replays/", "/protocols/", "/activations/", "/trips/"):
        parts = Parts(chief.get(f"{path}?{urlencode(hostile)}").content.decode())
        assert "\u202e" not in parts.texts and all(parts.scripts), path
