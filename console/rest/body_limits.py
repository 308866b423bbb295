"""Describes how large the body of a request may be: known before a byte of it is read."""

from collections.abc import Callable
from typing import Any, TypeVar

View = TypeVar("View", bound=Callable[..., Any])

SMALL = 1024 * 1024
# Of a page that takes a file. What it does with one that is too large for it, it says itself.
FILE = 16 * 1024 * 1024


def takes_up_to(limit: int) -> Callable[[View], View]:
    """Marks the view of a page; classes of the API have `body_limit`."""

    def mark(view: View) -> View:
        view.body_limit = limit  # type: ignore[attr-defined]  # a mark, which wrappers copy
        return view

    return mark


def limit_of(view: Any) -> int:
    """Bytes that a view takes, as they come over the network."""
    kind = getattr(view, "cls", None) or getattr(view, "view_class", view)
    return max(SMALL, getattr(kind, "body_limit", SMALL))
