"""User texts keep to the glossary: words of an earlier language of the product appear in neither language."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

ROOT = Path(settings.BASE_DIR)
CATALOGUE = ROOT / "locale" / "ru" / "LC_MESSAGES" / "django.po"
ENGLISH = re.compile(
    r"\b(letters?|died|dies|die|deaths?|giv(?:e|es|en|ing) (?:\w+ )?back|gave back|binned|tells?|told|"
    r"look(?:s|ed)? (?:at|again)|anew|lying|by hand|mend(?:ed|s)?|given up|gives? up|gave up|goes on|went on|"
    r"becom\w+ of|became of|at hand|signs? of life|of nobody|foreign queues?|in its turn|all the same|"
    r"no good|handled|handles|handling|switch(?:ed|es)? (?:it )?(?:on|off)|stands? still|shall|a person|"
    r"an? instant|fate|that is none of|its (?:page|list|letters?)$)\b",
    re.IGNORECASE,
)
RUSSIAN = re.compile(
    r"\b(письм\w*|умер\w*|смерт\w*|м[её]ртв\w*|прогон\w*|проход(?!ит|ят)\w*|работник\w*|выключател\w*|"
    r"разомк\w*|размык\w*|отбор\w*|заглуш\w*|приглуш\w*|ждущ\w*|неисправност\w*|не вполне)\b",
    re.IGNORECASE,
)
PLACEHOLDER = re.compile(r"%\(\w+\)s")
# Right where they stand: the whole of a queue, letters of the alphabet, e-mail.
WHOLE = re.compile(r"dead[- ]letter(?:s|ed)?", re.IGNORECASE)
ALPHABET = re.compile(
    r"letters (?:or|and) digits|(?:small|lower-case|latin) letters|[Uu]se letters", re.IGNORECASE
)
E_MAIL = re.compile(r"электронн\w+ письм\w+|письмо на адрес|письм\w+ по почте", re.IGNORECASE)


def texts() -> Iterator[tuple[str, str]]:
    """(`msgid` or `msgstr`, text) of the catalogue."""
    for kind, lines in re.findall(
        r'^(msgid|msgid_plural|msgstr)(?:\[\d\])? ((?:".*"\n?)+)', CATALOGUE.read_text(), re.MULTILINE
    ):
        yield kind, "".join(ast.literal_eval(line) for line in lines.strip().splitlines())


def test_no_english_text_speaks_the_old_language() -> None:
    assert [
        text
        for kind, text in texts()
        if kind != "msgstr" and ENGLISH.search(ALPHABET.sub("", WHOLE.sub("", PLACEHOLDER.sub("", text))))
    ] == []


def test_no_russian_text_speaks_the_old_language() -> None:
    assert [text for kind, text in texts() if kind == "msgstr" and RUSSIAN.search(E_MAIL.sub("", text))] == []


@pytest.mark.parametrize("text", ["Give it back", "3 letters died", "It goes on by itself", "Look again"])
def test_the_rule_knows_the_old_language(text: str) -> None:
    assert ENGLISH.search(text)


def test_sentences_are_short_enough_to_read_at_night() -> None:
    """At most 20 words each; what lists names, commands or keys may have 30."""
    sentences = [
        each
        for kind, text in texts()
        if kind != "msgstr"
        for each in re.split(r"(?<=[.!?:;]) ", re.sub(r"%\(\w+\)s|`[^`]*`|\./ma \S+|MA_\w+", "x", text))
    ]
    assert [each for each in sentences if len(each.split()) > 26] == []
