"""Every text is there in Russian, with right plural forms, and the compiled file is that of the source."""

import ast
import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import translation
from django.utils.translation import ngettext

from console.ui import amounts
from tests.web.factories import World
from tests.web.pages import looked_at, signed_in
from tests.web.rendered import Pages

SOURCE = Path(settings.BASE_DIR, "locale", "ru", "LC_MESSAGES", "django.po")
PACKAGES = (
    "agents", "alerts", "broker", "console", "contract", "dlq", "failures", "insights", "ma_site",
    "retention", "templates",
)  # fmt: skip
# Words that are the same in both languages.
SAME = {
    "MA",
    "API",
    "REST API",
    "KMA",
    "crontab",
    "heartbeat",
    "Spark master",
    "Dups-OK",
    "Heartbeat",
    "“%(text)s”",
    ", ± %(percent)s%%",
}


def entries(text: str) -> list[dict[str, str]]:
    """Keyword → text of each entry; `flags` holds its comments."""
    found = []
    for block in re.split(r"\n\n+", text.strip()):
        entry: dict[str, str] = {"flags": ""}
        keyword = ""
        for line in block.split("\n"):
            if line.startswith("#"):
                entry["flags"] += line
            elif match := re.match(r'(\w+(?:\[\d\])?) (".*")$', line):
                keyword = match[1]
                entry[keyword] = ast.literal_eval(match[2])
            elif line.startswith('"'):
                entry[keyword] += ast.literal_eval(line)
        found.append(entry)
    return [entry for entry in found if entry.get("msgid")]


def test_every_text_is_translated_and_none_is_a_guess() -> None:
    for entry in entries(SOURCE.read_text(encoding="utf-8")):
        assert "fuzzy" not in entry["flags"], entry["msgid"]
        texts = [text for keyword, text in entry.items() if keyword.startswith("msgstr")]
        assert len(texts) == (3 if "msgid_plural" in entry else 1), entry["msgid"]
        for text in texts:
            assert text, entry["msgid"]
            wanted = set(re.findall(r"%\(\w+\)[sd]|\{\w+\}", entry["msgid"]))
            assert set(re.findall(r"%\(\w+\)[sd]|\{\w+\}", text)) == wanted, entry["msgid"]
            assert entry["msgid"] in SAME or re.search("[а-яёА-ЯЁ]", text), entry["msgid"]


@pytest.mark.process
def test_no_text_of_the_source_is_missing(tmp_path: Path) -> None:
    """Extracts the texts anew, from a copy: the work tree stays as it is."""
    for name in PACKAGES:
        shutil.copytree(
            Path(settings.BASE_DIR, name), tmp_path / name, ignore=shutil.ignore_patterns("*.pyc")
        )
    (tmp_path / "locale").mkdir()
    command = [sys.executable, "-m", "django", "makemessages", "-l", "ru", "--no-wrap", "-v", "0"]
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=120)
    fresh = (tmp_path / "locale" / "ru" / "LC_MESSAGES" / "django.po").read_text(encoding="utf-8")

    known = {(entry.get("msgctxt"), entry["msgid"]) for entry in entries(SOURCE.read_text(encoding="utf-8"))}
    missing = [
        entry["msgid"] for entry in entries(fresh) if (entry.get("msgctxt"), entry["msgid"]) not in known
    ]
    assert not missing, "run django-admin makemessages -l ru, translate, compilemessages"


TEXT = r"(?:_|n?p?gettext(?:_lazy)?)"


def texts_within_formatted(source: str) -> list[int]:
    if not re.search(rf"\{{[^{{}}\n]*\b{TEXT}\(", source):
        return []
    return [
        call.lineno
        for part in ast.walk(ast.parse(source))
        if isinstance(part, ast.JoinedStr)
        for call in ast.walk(part)
        if isinstance(call, ast.Call) and re.fullmatch(TEXT, ast.unparse(call.func))
    ]


def test_no_text_is_within_a_formatted_string() -> None:
    """The extraction does not look there."""
    assert texts_within_formatted("a = f'{x} {escape(_(\"y\"))}'") == [1]
    files = [path for name in PACKAGES for path in Path(settings.BASE_DIR, name).rglob("*.py")]
    found = {path: texts_within_formatted(path.read_text(encoding="utf-8")) for path in files}
    assert not {path: lines for path, lines in found.items() if lines}


@pytest.mark.process
def test_the_compiled_file_is_that_of_the_source(tmp_path: Path) -> None:
    compiled = tmp_path / "django.mo"
    subprocess.run(["msgfmt", "--check-format", "-o", compiled, SOURCE], check=True, timeout=60)
    assert compiled.read_bytes() == SOURCE.with_suffix(".mo").read_bytes(), "run django-admin compilemessages"


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1, "1 сообщение"),
        (2, "2 сообщения"),
        (5, "5 сообщений"),
        (11, "11 сообщений"),
        (21, "21 сообщение"),
        (112, "112 сообщений"),
    ],
)
def test_plural_forms_are_right(count: int, words: str) -> None:
    with translation.override("ru"):
        assert ngettext("%(n)s message", "%(n)s messages", count) % {"n": count} == words


def test_numbers_and_durations_are_written_in_russian() -> None:
    with translation.override("ru"):
        assert amounts.number(1234567).replace("\xa0", " ") == "1 234 567"
        assert amounts.duration(93784).replace("\xa0", " ") == "1 д 2 ч"
        assert amounts.duration(4.25) == "4,25 с" and amounts.duration(0.0003) == "0,3 мс"


@pytest.mark.process  # as dear: it reads every page
def test_every_page_is_russian(pages: Pages) -> None:
    for name, page in pages.of("chief", "ru").items():
        assert page.status == 200, name
        assert re.search("[а-я]{4}", page.elements.text), name
        for word in ("Overview", "Dead letters", "Processed", "Switch", "Replay", "Open", "ago"):
            assert not re.search(rf"\b{word}\b", page.elements.text), (name, word)


def test_the_language_is_chosen_on_every_page(world: World) -> None:
    client = signed_in(world, "viewer")
    answer = client.post("/i18n/setlang/", {"language": "ru", "next": "/servers/"}, follow=True)

    assert "Серверы" in answer.content.decode() and answer.request["PATH_INFO"] == "/servers/"


def test_a_date_in_may_has_the_form_that_follows_a_number() -> None:
    with translation.override("ru"):
        assert amounts.instant(datetime(2026, 5, 31, 8, 6, 21, tzinfo=UTC)) == "31 мая 2026, 08:06:21 UTC"


def test_windows_of_a_schedule_have_small_months_as_all_times(world: World) -> None:
    page = looked_at(signed_in(world, "viewer", headers={"accept-language": "ru"}), "/groups/nightly/")
    months = re.findall(r"\b\d{1,2} (\w{3}) \d{4}, \d\d:\d\d \(", page.text)

    assert months
    assert all(month.islower() for month in months)


def test_the_reason_of_a_job_stands_in_russian_quotes_where_it_is_approved(world: World) -> None:
    assert world.job
    type(world.job).objects.filter(pk=world.job.pk).update(state="awaiting", needs_second=True)
    client = signed_in(world, "chief", headers={"accept-language": "ru"})

    assert f"«{world.job.reason}»" in looked_at(client, f"/replays/{world.job.pk}/approve/").text


def test_what_people_wrote_stands_in_russian_quotes(world: World) -> None:
    assert world.job
    client = signed_in(world, "viewer", headers={"accept-language": "ru"})

    assert (
        "«export 2.4.1 reads orders without a currency»"
        in looked_at(client, f"/replays/{world.job.pk}/").text
    )
    assert "В DLQ с" in looked_at(client, "/dead-letters/").text
