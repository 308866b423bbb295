"""User texts keep to the glossary: words of an earlier language of the product appear in neither language,
nor in texts outside of the catalogue, such as commands, refusals of REST and logs."""

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
    r"instants?|fate|that is none of|its (?:page|list|letters?)$|(?<![./])bin|wish(?:es)?|house|lies?|"
    r"by itself|foreign)\b",
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
    r"letters(?:,| or| and) digits|(?:small|lower-case|latin) letters|[Uu]se letters", re.IGNORECASE
)
E_MAIL = re.compile(r"электронн\w+ письм\w+|письмо на адрес|письм\w+ по почте", re.IGNORECASE)
# What is no word of a sentence: options of commands, codes, and attributes of HTML.
CODE = re.compile(r"--[a-z-]+|`[^`]*`|<[^<>]*>")
# Constants that are no sentences, by file, each with its reason.
NO_PROSE = {
    "dlq/dead_letters/queries/counts.py": "SQL: the name of a column",
    "insights/archive/statements.py": "SQL: names of columns",
    "pipeline/results.py": "names of columns of the results",
}


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


def test_what_follows_one_another_does_so_in_each_russian_form() -> None:
    """The first form also serves 21 and 101."""
    entries = re.findall(
        r'^msgid_plural "[^"]*consecutive[^"]*"\n((?:msgstr\[\d\] .*\n?)+)',
        CATALOGUE.read_text(),
        re.MULTILINE,
    )
    assert entries
    assert [line for entry in entries for line in entry.splitlines() if "подряд" not in line] == []


def is_old(text: str) -> bool:
    """Whether an English text outside of the catalogue has such a word."""
    text = " ".join(text.split())
    return ENGLISH.search(ALPHABET.sub("", WHOLE.sub("", CODE.sub("", text)))) is not None


def constants(code: str) -> Iterator[tuple[int, str]]:
    """Lines and texts of string constants of three words or more, without docstrings and the names of places
    where tests kill a process. Of an f-string the whole, each value as one word."""
    tree = ast.parse(code)
    known = {id(node) for root in ast.walk(tree) if is_unread(root) for node in ast.walk(root)}
    for node in ast.walk(tree):
        if id(node) in known or not isinstance(node, ast.expr):
            continue
        if not isinstance(node, ast.Constant | ast.JoinedStr):
            continue
        text = ""
        if isinstance(node, ast.JoinedStr):
            known.update(map(id, node.values))
            text = "".join(str(each.value) if isinstance(each, ast.Constant) else "x" for each in node.values)
        elif isinstance(node.value, str):
            text = node.value
        if len(text.split()) >= 3:
            yield node.lineno, text


def is_unread(node: ast.AST) -> bool:
    """A docstring, or the call that names a place."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "point"


PROGRAMS = sorted({path.parent.name for path in ROOT.glob("*/__init__.py")} - {"bench", "tests"})


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_text_outside_of_the_catalogue_speaks_the_old_language(program: str) -> None:
    assert [
        f"{name}:{line}: {text}"
        for file in sorted((ROOT / program).rglob("*.py"))
        if "migrations" not in file.parts and (name := file.relative_to(ROOT).as_posix()) not in NO_PROSE
        for line, text in constants(file.read_text())
        if is_old(text)
    ] == []


def test_files_without_prose_still_need_their_exception() -> None:
    assert [
        name for name in NO_PROSE if not any(is_old(text) for _, text in constants((ROOT / name).read_text()))
    ] == []


@pytest.mark.parametrize(
    "line",
    [
        'parser.add_argument("--all", help="give letters back to their setting")',
        'raise CommandError(f"{count:,} letters moved")',
        'log.warning("removal goes on later")',
    ],
)
def test_an_old_sentence_is_found_in_a_program(line: str) -> None:
    assert [is_old(text) for _, text in constants(line)] == [True]


@pytest.mark.parametrize(
    "line", ['"""Letters go on."""', 'crash.point("erase: letters done")', 'x = "letters: 3"']
)
def test_what_nobody_reads_may_speak_it(line: str) -> None:
    assert list(constants(line)) == []


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
