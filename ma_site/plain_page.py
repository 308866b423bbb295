"""A page that needs neither the database nor a person: what the site says when it can or will do nothing
else."""

from collections.abc import Sequence

from django.http import HttpResponse
from django.template.loader import render_to_string


def plain_page(
    title: str,
    lines: Sequence[str],
    *,
    status: int,
    again_in: int = 0,
    onwards: tuple[str, str] | None = None,
) -> HttpResponse:
    """In the language of the reader's cookie or browser. With `again_in` (seconds) it asks again by itself.

    `onwards`: address and words of the link to go on with."""
    page = render_to_string(
        "plain.html", {"title": title, "lines": lines, "again_in": again_in, "onwards": onwards}
    )
    answer = HttpResponse(page, status=status)
    answer.headers["Cache-Control"] = "no-store"
    return answer
