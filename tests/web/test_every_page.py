"""Every page of the site, found by walking the addresses, is one of those at which tests look; and the pages
at which few tests look answer and are Russian, too."""

import re

import pytest
from django.urls import get_resolver, resolve

from tests.web.factories import World
from tests.web.other_pages import other_pages
from tests.web.pages import every_page, looked_at, signed_in
from tests.web.test_every_route import patterns

# Addresses that show no page, by what they are instead.
NO_PAGES = {
    "POST alone": """
        i18n/setlang/ logout/ insights/run/ insights/runs/<uuid:pk>/cancel/ groups/<slug:name>/move/
        settings/<slug:key>/notices/<int:pk>/test/ notice-targets/<int:pk>/test/ notices/<int:pk>/resend/
        waiting-actions/<uuid:pk>/stop/
        replays/<uuid:pk>/pause/ replays/<uuid:pk>/resume/ foreign-queues/<int:pk>/forget/
        letters/<int:pk>/whole/ letters/<int:pk>/whole/cancel/ remarks/note/ remarks/mute/ remarks/take/
        remarks/faults/<int:pk>/end/ remarks/takings/<int:pk>/end/ remarks/takings/<int:pk>/hand-over/
        fingerprint/write/ fingerprint/fixed/ fingerprint/not-fixed/ fingerprint/merge/ fingerprint/split/
        fingerprint/part-off/ fingerprint/join/ saved-filters/save/ saved-filters/<int:pk>/change/
        saved-filters/<int:pk>/delete/ protocols/saved/save/ protocols/saved/<int:pk>/change/
        protocols/saved/<int:pk>/delete/""",
    "a file, a script or a part of a page": """
        favicon.ico metrics metrics/ autocomplete/ jsi18n/ healthz/ protocols/news/ protocols/export/
        letters/export/
        dead-letters/<str:key>/export/ letters/<int:pk>/body/ letters/<int:pk>/whole/body/
        previews/destination/ previews/pool/<int:pk>/ insights/run-bar/""",
    "leads elsewhere": """
        login/ r/<path:content_type_id>/<path:object_id>/ (?P<url>.*)$""",
    "asks the broker first": """
        settings/<str:key>/waiting/ask/""",
    "nobody may": """
        console/apitoken/add/ console/apitoken/<path:object_id>/delete/ agents/activation/add/
        agents/activation/<path:object_id>/delete/ agents/statechange/add/
        agents/statechange/<path:object_id>/delete/ agents/servertoken/add/
        agents/servertoken/<path:object_id>/delete/""",
    "leads to the page that asks": """
        agents/scheduledgroup/<path:object_id>/delete/ agents/server/<path:object_id>/delete/
        agents/launchsetting/<path:object_id>/delete/""",
}
# Of a row of the admin: leads to its form.
ROW_ALONE = re.compile(r"\w+/\w+/<path:object_id>/")
ENGLISH = ("Overview", "Dead letters", "Processed", "Replay", "Open", "ago", "Add", "Change", "Delete")


def test_every_page_of_the_site_is_looked_at(world: World) -> None:
    walked = {
        route
        for route, _view in patterns(get_resolver().url_patterns)
        if not route.startswith(("api/", "^api"))
    }
    pages = every_page(world) | other_pages(world)
    known = {resolve(path.partition("?")[0]).route for path in pages.values()}
    others = {route for routes in NO_PAGES.values() for route in routes.split()}

    assert {route for route in walked - known - others if not ROW_ALONE.fullmatch(route)} == set()
    assert others & known == set()
    assert others <= walked


@pytest.mark.process  # as dear: it reads every page
def test_the_other_pages_are_there(world: World) -> None:
    client = signed_in(world, "chief")
    for name, path in other_pages(world).items():
        page = looked_at(client, path)
        assert sum(tag == "h1" for tag, _ in page.found) == 1, name


@pytest.mark.process
def test_the_other_pages_are_russian(world: World) -> None:
    client = signed_in(world, "chief", headers={"accept-language": "ru"})
    for name, path in other_pages(world).items():
        text = looked_at(client, path).text
        assert re.search("[а-я]{4}", text), name
        assert not {word for word in ENGLISH if re.search(rf"\b{word}\b", text)}, name
