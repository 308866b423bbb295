"""Every page of the site, by name, for tests that look at all of them; and what their HTML says."""

from collections.abc import Callable
from contextlib import suppress
from html.parser import HTMLParser
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from agents.provisioning import queue_counts as figures
from agents.provisioning.queue_counts import QueueFigures
from broker.port import ManagementFailed
from tests.web.factories import World


def every_page(world: World) -> dict[str, str]:
    """Addresses that somebody with every permission may open."""
    key = "orders-export"
    setting, activation = world.settings[key], world.activations[key]
    hostile = next(each for each in world.protocols if each.exception_type == "ValueError")
    assert world.job and world.launches and world.waiting and world.alert
    trip, group = world.launches.trip, world.launches.group
    return {
        "overview": "/",
        "settings": "/settings/",
        "settings off": "/settings/?state=off",
        "setting": f"/settings/{key}/",
        "setting where they failed": "/settings/prices-import/",
        "setting that is off": "/settings/stock-sync/",
        "switch off": f"/settings/{key}/disable/",
        "switch on": "/settings/stock-sync/enable/",
        "setting off by its breaker": f"/settings/{trip.setting.key}/",
        "member of a group": "/settings/night-sum/",
        "what if": f"/settings/{key}/what-if/?m=4",
        "what if, wrongly asked": f"/settings/{key}/what-if/?m=x",
        "run now": "/settings/night-sum/run/",
        "stop": "/settings/night-sum/stop/",
        "resume": f"/settings/{key}/resume/srv-3/",
        "stop on a server": f"/settings/{key}/stop_on/srv-1/",
        "start on a server": f"/settings/{key}/start_on/srv-1/",
        "label a setting": f"/settings/{key}/label/",
        "labelled settings": "/settings/?label=team%3Dbilling&pool=main",
        "enable many": "/bulk/settings/enable/?state=off",
        "label many": "/bulk/settings/label/?pool=main",
        "activations": "/activations/",
        "filtered activations": f"/activations/?setting={key}&state=running&span=7d",
        "alerts": "/alerts/",
        "filtered alerts": "/alerts/?kind=server_silent&pool=main",
        "alert": f"/alerts/{world.alert.pk}/",
        "snooze alert": f"/alerts/{world.alert.pk}/snooze/",
        "close alert": f"/alerts/{world.alert.pk}/close/",
        "notifications": "/notices/",
        "filtered notifications": "/notices/?event=trip&state=sent",
        "alert rules": reverse("admin:alerts_alertrule_changelist"),
        "trips": "/trips/",
        "filtered trips": f"/trips/?setting={trip.setting.key}&state=open",
        "trip": f"/trips/{trip.pk}/",
        "groups": "/groups/",
        "group": f"/groups/{group.name}/",
        "group switch off": f"/groups/{group.name}/disable/",
        "group switch on": f"/groups/{group.name}/enable/",
        "group run": f"/groups/{group.name}/run/",
        "activation": f"/activations/{activation.pk}/",
        "freezes": "/freezes/",
        "freeze of the site": "/site/1/",
        "freeze of a pool": "/pools/main/",
        "freeze the site": "/site/1/freeze/",
        "unfreeze the site": "/site/1/unfreeze/",
        "freeze a pool": "/pools/main/freeze/",
        "unfreeze a pool": "/pools/main/unfreeze/",
        "new maintenance window": reverse("admin:agents_maintenancewindow_add"),
        "servers": "/servers/",
        "silent servers": "/servers/?state=silent",
        "server": "/servers/srv-4/",
        "cordoned server": "/servers/srv-3/",
        "cordon": "/servers/srv-1/cordon/",
        "drain": "/servers/srv-1/drain/",
        "back": "/servers/srv-3/uncordon/",
        "new server": "/servers/srv-5/",
        "protocols": "/protocols/",
        "filtered protocols": f"/protocols/?setting={key}&temporary=true&span=1h",
        "fingerprints": "/fingerprints/",
        "filtered fingerprints": f"/fingerprints/?setting={key}&exception=Key&book=unknown&span=1d",
        "fingerprint": f"/fingerprint/?of={world.protocols[0].fingerprint}",
        "hostile fingerprint": f"/fingerprint/?of={hostile.fingerprint}",
        "protocol": f"/protocols/{world.protocols[0].pk}/",
        "hostile protocol": f"/protocols/{hostile.pk}/",
        "case file": f"/cases/?key=ID:{key}-0&setting={key}",
        "dead letters": "/dead-letters/",
        "dead letters of a setting": f"/dead-letters/{key}/?state=every",
        "groups of dead letters": f"/dead-letters/{key}/groups/",
        "dead letters by day": "/letters/groups/?by=day",
        "all dead letters by fault": "/letters/groups/",
        "all dead letters": "/letters/?state=every",
        "saved filters": "/saved-filters/",
        "dead letters of nobody": "/dead-letters/unknown/",
        "give back all": f"/dead-letters/{key}/give-back/?all=1",
        "give back some": f"/dead-letters/{key}/give-back/?letter={world.letters[-5].pk}"
        f"&letter={world.letters[0].pk}",
        **{
            f"letter {letter.pk}": f"/letters/{letter.pk}/"
            for letter in (world.letters[0], *world.letters[-4:])
        },
        "redirect all": f"/dead-letters/{key}/redirect/?all=1",
        "discard some": f"/dead-letters/{key}/discard/?letter={world.letters[-5].pk}",
        "edit by a rule": f"/dead-letters/{key}/edit/?all=1",
        "edit a letter": f"/letters/{world.letters[-5].pk}/edit/",
        "import": f"/dead-letters/{key}/import/",
        "audit": "/audit/",
        "filtered audit": f"/audit/?setting={key}&result=refused",
        "waiting messages": f"/settings/{key}/waiting/?part=delayed",
        "action on waiting messages": f"/waiting-actions/{world.waiting.pk}/",
        "action on waiting messages, what stayed": f"/waiting-actions/{world.waiting.pk}/?show=stayed",
        "replays": "/replays/",
        "replay": f"/replays/{world.job.pk}/",
        "replay, handled": f"/replays/{world.job.pk}/?show=handled",
        "bin": "/dead-letters/bin/",
        "bin of a setting": f"/dead-letters/{key}/bin/",
        "foreign queues": "/foreign-queues/",
        "health": "/health/",
        "insights": "/insights/",
        "timeline": "/timeline/?range=30d&compare=week",
        "timeline of a setting": f"/timeline/?setting={key}&kind=trip&kind=alert",
        "timeline of a server": "/timeline/?server=srv-1&range=1y",
        "timeline, wrongly asked": "/timeline/?range=x&setting=none&from=yesterday",
        "table of insights": "/insights/tables/failure_trends/",
        "retention": "/retention/",
        "retention, further on": "/retention/?after=invoices",
        "records": "/records/",
        "destinations": "/destinations/",
        "destination": f"/destinations/{setting.destination_id}/",
        "destinations of the admin": reverse("admin:agents_destination_changelist"),
        "change destination": reverse("admin:agents_destination_change", args=[setting.destination_id]),
        "apply a policy": f"/destinations/{setting.destination_id}/apply/",
        "adopt a policy": f"/destinations/{setting.destination_id}/adopt/",
        "new setting": reverse("admin:agents_launchsetting_add"),
        "change setting": reverse("admin:agents_launchsetting_change", args=[setting.pk]),
        "preview": f"/previews/setting/?breaker_m=4&destination={setting.destination_id}",
    }


def signed_in(world: World, name: str, **options: Any) -> Client:
    client = Client(**options)
    client.force_login(world.people[name])
    return client


def broker_figures(**values: Any) -> Any:
    """A stand-in for asking the broker; `asked` counts how often a page did."""

    def answer(setting: Any, now: Any) -> QueueFigures:
        answer.asked += 1  # type: ignore[attr-defined]
        defaults = {"waiting": 3, "delayed": 2, "in_delivery": 1, "consumers": 4, "dead": 5}
        return QueueFigures(**(defaults | values), at=now)

    answer.asked = 0  # type: ignore[attr-defined]
    return answer


def broker_answers(monkeypatch: pytest.MonkeyPatch, answer: Callable[[Any, Any], Any]) -> None:
    """What the broker says of one setting, asked for alone or with all others."""

    def all_of(settings: Any, now: Any) -> dict[str, Any]:
        found = {}
        for setting in settings:
            with suppress(ManagementFailed):
                found[setting.key] = answer(setting, now)
        return found

    # A test before this one may have found that it does not answer.
    monkeypatch.setattr(figures, "_away_until", 0.0)
    monkeypatch.setattr(figures, "queue_figures", answer)
    monkeypatch.setattr(figures, "figures_of_all", all_of)


class Elements(HTMLParser):
    """The elements of a page with their attributes, and its visible text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.inline_scripts = 0
        self._inside = ""
        self._joined = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag == "wbr":  # no end of a word, only a place to break it
            self._joined = True
            return
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script" and data.strip():
            self.inline_scripts += 1
        elif self._inside not in ("script", "style", "title"):
            if self._joined:
                self.texts[-1] += data
            else:
                self.texts.append(data)
        self._joined = False

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def links(self) -> list[str]:
        return [attrs["href"] or "" for tag, attrs in self.found if tag == "a" and "href" in attrs]


def looked_at(client: Client, path: str) -> Elements:
    answer = client.get(path)
    assert answer.status_code == 200, (path, answer.status_code)
    return Elements(answer.content.decode())
