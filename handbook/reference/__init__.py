"""Pages that are read from the code: each module makes those of one subject."""

from collections.abc import Callable, Mapping
from pathlib import Path

from django.utils import translation

import ma_site.urls  # noqa: F401 - declares pages, forms and what people do
from handbook.reference import codes, commands, environment, fields, metrics, routes

# By the place of the page, without `.md`.
Pages = Mapping[str, str]
SUBJECTS: tuple[Callable[[], Pages], ...] = (
    fields.pages,
    environment.pages,
    commands.pages,
    routes.pages,
    codes.pages,
    metrics.pages,
)


def write(folder: Path) -> None:
    """Django must be set up; no database is asked."""
    with translation.override("en"):
        for pages in SUBJECTS:
            for place, text in pages().items():
                path = folder / f"{place}.md"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, "utf-8")
