"""Ways to look at a body: what is shown as XML is the whole of it, or there is no such way."""

import pytest

from dlq.dead_letters.rules.body import BodyFormat, pretty


@pytest.mark.parametrize("text", ["<a>1<2 and 3<4</a>", "<a><</a>", "<<a></a>"])
def test_text_with_a_lone_bracket_is_not_shown_as_xml(text: str) -> None:
    assert pretty(text, BodyFormat.XML) is None


def test_what_is_shown_as_xml_differs_by_white_space_alone() -> None:
    text = '<?xml version="1.0"?><a b="1>0"><!-- 1<2 --><c>3</c><![CDATA[4<5]]></a>'
    shown = pretty(text, BodyFormat.XML)
    assert shown is not None and "".join(shown.split()) == "".join(text.split())
