"""Every field of a form has a label, and an icon is hidden or has a name, on every page for who may do
all."""

from html.parser import HTMLParser

import pytest

from tests.web.rendered import Pages

# By what it takes: it renders every page.
pytestmark = pytest.mark.process

FIELDS = ("input", "select", "textarea")
# What is no field for people, or carries its word itself.
UNLABELLED = ("hidden", "submit", "button", "reset", "image")
# Elements without an end.
VOID = ("input", "img", "br", "hr", "meta", "link", "wbr", "use", "path", "symbol")


class Names(HTMLParser):
    """`nameless`: fields, icons and buttons of a page that nobody is told the name of."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.labelled: set[str] = set()
        self.fields: list[tuple[str, str, bool]] = []
        self.nameless: list[str] = []
        self._open: list[str] = []
        self._button: tuple[str, list[str]] | None = None
        self.feed(html)
        self.nameless += [
            text for text, name, named in self.fields if not named and name not in self.labelled
        ]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found, text = {name: value or "" for name, value in attrs}, self.get_starttag_text() or ""
        named = bool(found.get("aria-label") or found.get("aria-labelledby"))
        if tag == "label" and "for" in found:
            self.labelled.add(found["for"])
        if tag in FIELDS and found.get("type") not in UNLABELLED and "hidden" not in found.get("class", ""):
            self.fields.append((text, found.get("id", ""), named or "label" in self._open))
        # Symbols are drawn where they are used; Django's own toggle of the theme has a text beside each.
        drawn = any(each in found.get("class", "") for each in ("base-svgs", "theme-icon"))
        if tag == "svg" and not (named or drawn or found.get("aria-hidden") == "true"):
            self.nameless.append(text)
        if tag == "img" and "alt" not in found:
            self.nameless.append(text)
        if tag in ("button", "a", "summary") and "hidden" not in found:  # a script shows it with its text
            self._button = (text, ["named"] if named or found.get("title") else [])
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            del self._open[len(self._open) - 1 - self._open[::-1].index(tag) :]
        if self._button and tag in ("button", "a", "summary"):
            if not any(each.strip() for each in self._button[1]):
                self.nameless.append(self._button[0])
            self._button = None

    def handle_data(self, data: str) -> None:
        if self._button:
            self._button[1].append(data)


@pytest.mark.parametrize("language", ["en", "ru"])
def test_every_field_icon_and_button_has_a_name(pages: Pages, language: str) -> None:
    nameless = {
        name: found
        for name, page in pages.of("chief", language).items()
        if (found := Names(page.html).nameless)
    }
    assert nameless == {}


def test_what_has_no_name_is_found() -> None:
    assert (
        len(Names('<input id="a"><svg><use/></svg><button><svg aria-hidden="true"/></button><img>').nameless)
        == 4
    )
    assert Names('<label for="a">A</label><input id="a"><label><input>B</label><a>C</a>').nameless == []
