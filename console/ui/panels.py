"""Panels that higher apps add to the pages of this one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, get_args

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

Page = Literal[
    "setting",
    "setting_notes",
    "setting_live",
    "setting_whole",
    "activation",
    "overview",
    "server",
    "trip",
    "trip_side",
    "fingerprint",
]


class Panel(TypedDict):
    """`template` is rendered with `context` under the heading `title`."""

    title: str
    template: str
    context: dict[str, Any]


PanelFunction = Callable[[HttpRequest, Any], Panel | None]


@dataclass(frozen=True, slots=True)
class _Registered:
    order: int
    function: PanelFunction


_registered: dict[str, list[_Registered]] = {page: [] for page in get_args(Page)}


def register_panel(page: Page, order: int, function: PanelFunction) -> None:
    """`function(request, object)` answers a panel, or None where it has nothing to show. Small orders come
    first."""
    entries = _registered[page]
    if all(entry.function is not function for entry in entries):
        entries.append(_Registered(order, function))
        entries.sort(key=lambda entry: entry.order)


@dataclass(frozen=True, slots=True)
class Rendered:
    title: str
    html: SafeString


def render(page: Page, request: HttpRequest, shown: Any = None) -> list[Rendered]:
    """The panels of a page as HTML, in their order. `shown` is the object of the page, None on the
    overview."""
    panels = [entry.function(request, shown) for entry in _registered[page]]
    return [
        Rendered(str(panel["title"]), render_to_string(panel["template"], panel["context"], request))
        for panel in panels
        if panel is not None
    ]
