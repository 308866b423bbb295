"""Nothing inline on any page, whatever the rows hold: the policy of the site would block it."""

import re
from pathlib import Path

import pytest
from django.conf import settings

from tests.web.factories import HOSTILE, World
from tests.web.pages import signed_in
from tests.web.rendered import Pages


@pytest.mark.process  # as dear: it reads every page
@pytest.mark.parametrize("language", ["en", "ru"])
def test_no_page_has_anything_inline(pages: Pages, language: str) -> None:
    for name, page in pages.of("chief", language).items():
        assert page.status == 200, name
        assert page.elements.inline_scripts == 0, name
        for tag, attributes in page.elements.found:
            assert tag != "style", name
            inline = [each for each in attributes if each == "style" or each.startswith("on")]
            assert not inline, (name, tag, attributes)
            for each in ("href", "src", "action", "hx-get"):
                assert not re.match(r"\s*(javascript|data|https?|//)", attributes.get(each) or ""), (
                    name,
                    attributes,
                )
            assert not [each for each in attributes if each.startswith(("hx-on", "hx-vals", "hx-vars"))], name
        assert "script-src 'self'; style-src 'self'" in page.headers["Content-Security-Policy"], name


def test_hostile_texts_stay_texts_on_every_page_that_shows_them(world: World) -> None:
    client = signed_in(world, "chief")
    letter = next(each for each in world.letters if each.setting_key == "mail-send")
    protocol = next(each for each in world.protocols if each.exception_type == "ValueError")

    for path in (
        f"/protocols/{protocol.pk}/",
        "/protocols/?exception=ValueError",
        f"/activations/{protocol.activation_uuid}/",
        "/settings/mail-send/",
        f"/letters/{letter.pk}/",
        "/dead-letters/mail-send/",
        f"/waiting-actions/{world.waiting.pk if world.waiting else ''}/",
        f"/cases/?key={protocol.message_key}&setting=mail-send",
    ):
        html = client.get(path).content.decode()
        assert "<script>alert" not in html and "<img src=x" not in html, path
        assert not re.search("[\u202a-\u202e\u2066-\u2069\ufeff\x00\x1b]", html), path
        assert "U+202E" in html, path


def test_the_hostile_text_is_really_hostile() -> None:
    assert "<script>" in HOSTILE and "\u202e" in HOSTILE and "\x1b" in HOSTILE


def test_our_static_files_name_no_other_host() -> None:
    for path in Path(settings.BASE_DIR, "static", "ma").iterdir():
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "//" not in re.sub(r"(?m)//.*$|/\*.*?\*/", "", text, flags=re.S) or path.suffix == ".js", path
        assert "http:" not in text and "https:" not in text, path
