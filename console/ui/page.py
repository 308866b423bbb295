"""The consoles of the site: pages that are no list of rows of the admin, panels on pages of lower apps,
and the small things that both are made of. Higher apps register theirs here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, wraps
from typing import Any, Literal, TypedDict, get_args
from urllib.parse import urlencode

from django.contrib import admin
from django.http import HttpRequest, HttpResponseBase
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import URLPattern, get_script_prefix, path, reverse
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from console.ui.errors import MissingPermission

Text = str | Promise
View = Callable[..., HttpResponseBase]


@dataclass(frozen=True, slots=True)
class Tab:
    """One entry of the navigation; `page(section=…)` marks the current one. `allowed`: asked about the
    person where a permission is not all that lets them in. `badge(request)`: a short text beside the label,
    empty for none; it is asked for on every page. `model`: `app.model` of what it lists, whose rows have
    the page `page`, addressed by their field `key`. `go`: the key that leads here after `g`."""

    section: str
    label: Text
    url_name: str
    permission: str = ""
    allowed: Callable[[Any], bool] | None = None
    badge: Callable[[HttpRequest], str] | None = None
    model: str = ""
    page: str = ""
    key: str = "pk"
    go: str = ""

    def is_for(self, user: Any) -> bool:
        if self.allowed is not None:
            return self.allowed(user)
        return not self.permission or bool(user.has_perm(self.permission))

    @property
    def url(self) -> str:
        return reverse(self.url_name)


@dataclass(frozen=True, slots=True)
class TabGroup:
    """Tabs that open under one label. Where a person may see one of them, it stands alone."""

    label: Text
    tabs: tuple[Tab, ...]


Navigation = Sequence[Tab | TabGroup]


_navigation: list[Tab | TabGroup] = []
_views: list[tuple[str, View, str]] = []


def set_navigation(entries: Navigation) -> None:
    _navigation[:] = entries


def crumbs_of_model(model: str, plural: Text, user: Any, row: Any = None) -> list[tuple[Text, str]]:
    """The way from the overview to the form of a row, or to the form of a new one: *Settings › Destinations ›
    name*. A model (`app.model`) without an entry of its own is below the administration."""
    found, tab = _way_to(lambda each: each.model == model, user)
    if tab is None:
        below, _tab = _way_to(lambda each: each.section == "records", user)
        found = [*below, (plural, link(f"{model.replace('.', '_')}_changelist"))]
    if row is not None and row.pk is not None:
        found.append((str(row), link(tab.page, getattr(row, tab.key)) if tab else ""))
    return found


def _way_to(wanted: Callable[[Tab], bool], user: Any) -> tuple[list[tuple[Text, str]], Tab | None]:
    for entry in navigation_for(user):
        for tab in filter(wanted, all_tabs([entry])):
            group = [(entry.label, "")] if isinstance(entry, TabGroup) else []
            return [*group, (tab.label, tab.url)], tab
    return [], None


def navigation_for(user: Any) -> list[Tab | TabGroup]:
    """The navigation of this person: what they may not see is left out."""
    return [entry for each in _navigation if (entry := _seen_by(user, each))]


def _seen_by(user: Any, entry: Tab | TabGroup) -> Tab | TabGroup | None:
    if isinstance(entry, Tab):
        return entry if entry.is_for(user) else None
    tabs = tuple(tab for tab in entry.tabs if tab.is_for(user))
    return replace(entry, tabs=tabs) if len(tabs) > 1 else next(iter(tabs), None)


def all_tabs(entries: Navigation) -> list[Tab]:
    return [tab for entry in entries for tab in (entry.tabs if isinstance(entry, TabGroup) else (entry,))]


def add_page(route: str, view: View, name: str) -> None:
    """Serves `view` at `route` of the site, for staff only, as `admin:name`."""
    entry = (route, view, name)
    if entry not in _views:
        _views.append(entry)


def urls(admin_view: Callable[[View], View]) -> list[URLPattern]:
    """Returns them for the site's `get_urls`: before the admin's own, whose catch-all would take them."""
    return [path(route, admin_view(view), name=name) for route, view, name in _views]


def needs(*permissions: str) -> Callable[[View], View]:
    """403 without all of `permissions`. Being staff is checked by the site."""

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if missing := [each for each in permissions if not request.user.has_perm(each)]:
                raise MissingPermission(*missing)
            return view(request, *args, **kwargs)

        return guarded

    return decorate


def page(
    request: HttpRequest,
    template: str,
    *,
    title: Text,
    section: str,
    crumbs: list[tuple[Text, str]] | None = None,
    status: int = 200,
    **context: Any,
) -> TemplateResponse:
    """A page of a console in the frame of the site. `crumbs` lie between Overview and `title`."""
    frame = {**admin.site.each_context(request), "title": title, "section": section, "crumbs": crumbs or []}
    return TemplateResponse(request, template, {**frame, **context}, status=status)


def refreshes_another(request: HttpRequest, part: str) -> bool:
    """Returns whether only another part of the page is refreshed than the one with this id: what it costs can
    be left out then."""
    target = request.headers.get("HX-Target", "")
    return bool(target) and target != part


def link(name: str, *args: Any) -> str:
    return _address(name, args, get_script_prefix())


# A page with its lists has hundreds, and is asked for again and again.
@lru_cache(maxsize=4096, typed=True)
def _address(name: str, args: tuple[Any, ...], _prefix: str) -> str:
    return reverse(f"admin:{name}", args=args)


def link_to(name: str, key: Any, query: str = "") -> str:
    """`query`: the page is asked for with this name, where no address could hold every key."""
    return f"{link(name)}?{urlencode({query: key})}" if query else link(name, key)


Page = Literal[
    "setting",
    "setting_notes",
    "setting_live",
    "setting_whole",
    "activation",
    "overview",
    "banner",
    "server",
    "server_notes",
    "trip",
    "trip_head",
    "trip_side",
    "fingerprint",
    "destination",
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


def render_panels(page: Page, request: HttpRequest, shown: Any = None) -> list[Rendered]:
    """The panels of a page as HTML, in their order. `shown` is the object of the page, None on the
    overview and above every page."""
    panels = [entry.function(request, shown) for entry in _registered[page]]
    return [
        Rendered(str(panel["title"]), render_to_string(panel["template"], panel["context"], request))
        for panel in panels
        if panel is not None
    ]


# -- the small things that pages are made of: states, facts, buttons, tags -----------------------------------
#


@dataclass(frozen=True, slots=True)
class StateLabel:
    """`tone`: ok · bad · warn · info · off. `icon` is a symbol of templates/ma/icons.html."""

    word: Text
    tone: str
    icon: str


@dataclass(frozen=True, slots=True)
class Fact:
    """`follows` is the consequence of the value; `warns` when somebody should think about it."""

    name: Text
    value: Text
    follows: Text = ""
    warns: bool = False
    code: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    title: Text
    facts: list[Fact]


@dataclass(frozen=True, slots=True)
class Button:
    """`name` is its id on the page; `refusal` says why it is disabled, empty where it is not. `posts`: it
    acts at once, with `sent`."""

    name: str
    text: Text
    url: str
    icon: str
    tone: str = ""
    refusal: str = ""
    posts: bool = False
    sent: Mapping[str, str] = field(default_factory=dict)


def kept_tag(durable: bool) -> SafeString:
    """Renders a tag for a message that the broker forgets when it restarts; nothing for any other."""
    return SafeString("") if durable else format_html(' <span class="tag">{}</span>', _("non-persistent"))


@dataclass(frozen=True, slots=True)
class Bar:
    """`show` is the filter of the list below that shows what this bar counts."""

    label: Text
    count: int
    total: int
    tone: str
    show: str

    @property
    def short(self) -> str:
        """Returns the label up to what explains it."""
        return str(self.label).partition(":")[0]
