"""Text on its ground is readable in both themes: contrast of at least 4.5 : 1 (WCAG 2.2, 1.4.3)."""

import re
from pathlib import Path

import pytest
from django.conf import settings

THEME = Path(settings.BASE_DIR, "static", "ma", "theme.css").read_text(encoding="utf-8")
PAIRS = [
    *((f"--{state}-fg", ground) for state in ("ok", "bad", "warn", "info", "off")
      for ground in ("--body-bg", "--darkened-bg", f"--{state}-bg")),
    *((text, ground) for text in ("--body-fg", "--body-quiet-color", "--link-fg")
      for ground in ("--body-bg", "--darkened-bg", "--code-bg", "--selected-row")),
    ("--body-fg", "--mark-bg"), ("--body-fg", "--bad-bg"), ("--body-fg", "--warn-bg"), ("--body-fg",
    "--info-bg"),
    ("--header-link-color", "--header-bg"), ("--nav-quiet", "--header-bg"),
    ("--button-fg", "--default-button-bg"), ("--button-fg", "--button-bg"), ("--button-fg",
    "--object-tools-bg"),
]  # fmt: skip


def colours(selector: str) -> dict[str, str]:
    light = dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6});", THEME.split("}")[0]))
    if selector == "light":
        return light | {"--button-fg": "#ffffff"}
    block = THEME.split(selector)[1].split("}")[0]
    return light | dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6});", block)) | {"--button-fg": "#ffffff"}


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", ["light", 'html[data-theme="dark"]', "prefers-color-scheme: dark"])
def test_every_pair_of_text_and_ground_is_readable(theme: str) -> None:
    known = colours(theme)
    poor = {pair: round(contrast(known[pair[0]], known[pair[1]]), 2) for pair in PAIRS}

    assert not {pair: value for pair, value in poor.items() if value < 4.5}


def test_dark_by_choice_is_dark_by_preference() -> None:
    assert colours('html[data-theme="dark"]') == colours("prefers-color-scheme: dark")
