"""Requests to the routes of launch control, failures and the pipeline, each on rows of its own."""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.forms import MultiWidget
from django.test import Client, RequestFactory
from django.utils import timezone

from agents.acknowledgements import answers
from agents.destinations.policies import mark_of, policy_lines, read_policy
from agents.models import (
    Acknowledgement,
    Activation,
    Destination,
    Duty,
    LaunchSetting,
    MaintenanceWindow,
    Pool,
    PoolGrant,
    ScheduledGroup,
    Server,
    ServerToken,
)
from alerts.models import AlertRule, Notice, NoticeState, NoticeTarget
from broker.management.desired_topology import setting_topology
from broker.management.topology import apply
from broker.port import Management
from console.models import ApiToken, SavedFilter
from contract.redelivery import RedeliveryPolicy
from failures.models import Fingerprint
from insights.models import PipelineRun
from tests.web import reports
from tests.web.factories import World
from tests.web.launches import make_setting
from tests.web.launching import group_of
from tests.web.test_acknowledgements import House
from tests.web.unsafe_routes import PASSWORD, Ask

NEW_PASSWORD = "purple monkey dishwasher 7"
REST, ON, OFF = "/api/v1", "orders-export", "stock-sync"
# The delete button of the admin leads to the page that asks.
REMOVED_ON_THEIR_PAGES = (LaunchSetting, ScheduledGroup, Server)


class Rows:
    """In the busy house of tests/web/factories.py."""

    def __init__(self, world: World, person: User, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world, self.person, self.numbers = world, person, count(1)
        self.pool = Pool.objects.get(name="main")
        self.kind, self.other_kind = Fingerprint.objects.order_by("-count").values_list("pk", flat=True)[:2]
        monkeypatch.setattr(answers, "PAUSE", 0.01)
        monkeypatch.setattr(answers.until_ended, "__defaults__", (0.05,))

    def lie_on(self, management: Management) -> None:
        """The broker has another policy than is wanted."""
        self.management = management
        policy = RedeliveryPolicy(max_attempts=7)
        apply(management, setting_topology(ON, "shop.orders", policy, False, "MA.DLA"))

    def requests(self) -> Iterator[Ask]:
        yield from self._settings()
        yield from self._groups()
        yield from self._places()
        yield from self._failures()
        yield from self._pipeline()
        yield from self._answers()
        yield from self._forms()

    # -- launch control --------------------------------------------------------------------------------------

    def _settings(self) -> Iterator[Ask]:
        rest, page = f"{REST}/settings/{{key}}/", "/settings/<slug:key>/"
        new = {"key": "new", "agent": "demo.orders", "pool": "main", "destination": "shop.orders"}
        yield Ask(f"POST {REST}/settings/", said=new)
        yield Ask(f"PATCH {rest}", [OFF], {"description": "x"})
        yield Ask(f"DELETE {rest}", [self._delayed().key])
        activation = Activation.objects.filter(setting__key="night-sum", state="running").get()
        yield Ask(f"POST {REST}/activations/{{id}}/stop/", [activation.pk], {"reason": "x"})
        for begin in (rest, page):
            yield Ask(f"POST {begin}enable/", [OFF])
            yield Ask(f"POST {begin}disable/", [ON], {"reason": "x"})
            yield Ask(f"POST {begin}run/", [self._delayed(enabled=True).key])
            yield Ask(f"POST {begin}stop/", ["night-sum"], {"reason": "x"})
            yield Ask(f"POST {begin}retry/", [self._ordered().key])
            yield Ask(f"POST {begin}label/", [ON], {"add": "team=billing"})
        many = {"settings": [ON], "add": "team=billing"}
        yield Ask(f"POST {REST}/bulk/", said=many | {"action": "label"})
        yield Ask("POST /bulk/settings/<slug:verb>/", ["label"], many)
        Server.objects.filter(name="srv-3").update(duty=Duty.ACTIVE)
        yield Ask(f"POST {rest}resume/", [ON], {"server": "srv-3"})
        Server.objects.filter(name="srv-3").update(duty=Duty.ACTIVE)
        yield Ask(f"POST {page}resume/<str:server>/", [ON, "srv-3"])
        yield Ask(f"POST {rest}stop-on/", [ON], {"server": "srv-1", "reason": "x"})
        yield Ask(f"POST {rest}start-on/", [ON], {"server": "srv-1"})
        yield Ask(f"POST {page}stop_on/<str:server>/", [ON, "srv-1"], {"reason": "x"})
        yield Ask(f"POST {page}start_on/<str:server>/", [ON, "srv-1"])
        yield Ask(f"POST {page}remove/", [self._delayed().key])
        target, hook = {"channel": "email", "address": "oncall@shop.example"}, "https://example.org/hook"
        yield Ask(f"POST {page}notices/<int:pk>/test/", [ON, self._target().pk])
        yield Ask(f"POST {REST}/notice-targets/", said=target | {"setting": ON})
        yield Ask(f"DELETE {REST}/notice-targets/{{id}}/", [self._target().pk])
        yield Ask(f"POST {REST}/notice-targets/{{id}}/renew-secret/", [self._target("webhook", hook).pk])
        yield Ask(f"POST {REST}/notice-targets/{{id}}/test/", [self._target().pk])
        yield Ask("POST /notice-targets/<int:pk>/test/", [self._target().pk])
        yield Ask(f"POST {REST}/notices/{{id}}/resend/", [self._notice().pk])
        yield Ask("POST /notices/<int:pk>/resend/", [self._notice().pk])

    def _delayed(self, **fields: Any) -> LaunchSetting:
        key = f"delayed-{next(self.numbers)}"
        destination = self.world.settings[ON].destination
        return make_setting(self.world, key, "demo.late", timing="DELAYED", destination=destination, **fields)

    def _ordered(self) -> LaunchSetting:
        values = {"ordered": True, "spread": "MANY", "mode": "AUTO", "blocked_seconds": -1.0, "enabled": True}
        destination = self.world.settings[ON].destination
        setting = make_setting(self.world, "ordered", "demo.row", destination=destination, **values)
        reports.run(setting, self.world.servers["srv-1"])
        return setting

    def _target(self, channel: str = "email", address: str = "oncall@shop.example") -> NoticeTarget:
        setting = self.world.settings[ON]
        return NoticeTarget.objects.create(setting=setting, channel=channel, address=address)

    def _notice(self) -> Notice:
        target = self._target()
        about = {"target": target, "channel": target.channel, "address": target.address}
        return Notice.objects.create(state=NoticeState.FAILED, **about)

    def _groups(self) -> Iterator[Ask]:
        rest, page = f"{REST}/groups/{{name}}/", "/groups/<slug:name>/"
        members = [self._delayed().key, self._delayed().key]
        yield Ask(f"POST {REST}/groups/", said={"name": "new", "members": members})
        yield Ask(f"PATCH {rest}", ["nightly"], {"description": "x"})
        yield Ask(f"DELETE {rest}", [self._group()])
        yield Ask(f"POST {rest}stop/", ["nightly"], {"reason": "x"})
        for begin in (rest, page):
            yield Ask(f"POST {begin}enable/", [self._group()])
            yield Ask(f"POST {begin}disable/", ["nightly"], {"reason": "x"})
            yield Ask(f"POST {begin}run/", [self._group(enabled=True)])
            yield Ask(f"POST {begin}move/", ["nightly"], {"member": "night-sum", "to": "up"})
        yield Ask(f"POST {page}delete/", [self._group()])

    def _group(self, **fields: Any) -> str:
        group = group_of(self._delayed(enabled=True), self._delayed(enabled=True), name="group")
        type(group).objects.filter(pk=group.pk).update(**({"enabled": False} | fields))
        return group.name

    def _window(self) -> MaintenanceWindow:
        """One that nobody meets: it opens on 29 February."""
        return MaintenanceWindow.objects.create(crontab="0 0 29 2 *", minutes=1, reason="x")

    def _places(self) -> Iterator[Ask]:
        yield Ask(f"POST {REST}/destinations/", said={"name": "demo.new"})
        yield Ask(f"PATCH {REST}/destinations/{{name}}/", ["shop.orders"], {"max_attempts": 3})
        yield Ask(f"POST {REST}/pools/", said={"name": "new", "servers": ["srv-1"]})
        yield Ask(f"PATCH {REST}/pools/{{name}}/", ["main"], {"description": "x"})
        for begin in (f"{REST}/site/{{id}}/", "/site/<int:pk>/"):
            yield Ask(f"POST {begin}freeze/", [1], {"reason": "x"})
            yield Ask(f"POST {begin}unfreeze/", [1], {"reason": "x"})
        for begin in (f"{REST}/pools/{{name}}/", "/pools/<slug:name>/"):
            yield Ask(f"POST {begin}freeze/", ["main"], {"reason": "x"})
            yield Ask(f"POST {begin}unfreeze/", ["main"], {"reason": "x"})
        night = {"crontab": "0 2 * * 0", "minutes": 60, "reason": "x"}
        yield Ask(f"POST {REST}/maintenance-windows/", said=night)
        yield Ask(f"PATCH {REST}/maintenance-windows/{{id}}/", [self._window().pk], {"minutes": 90})
        yield Ask(f"DELETE {REST}/maintenance-windows/{{id}}/", [self._window().pk])
        yield Ask(f"POST {REST}/grants/", said={"pool": "main", "group": "operator", "may_run": True})
        yield Ask(f"PATCH {REST}/grants/{{id}}/", [self._grant().pk], {"may_run": True})
        yield Ask(f"DELETE {REST}/grants/{{id}}/", [self._grant().pk])
        for begin in (f"{REST}/servers/{{name}}/", "/servers/<str:name>/"):
            yield Ask(f"POST {begin}cordon/", ["srv-1"], {"reason": "x"})
            yield Ask(f"POST {begin}drain/", ["srv-1"], {"reason": "x"})
            yield Ask(f"POST {begin}uncordon/", ["srv-3"])
        yield Ask("POST /servers/<str:name>/remove/", [Server.objects.create(name="gone").name])
        yield Ask(f"DELETE {REST}/servers/{{name}}/", [Server.objects.create(name="gone").name])
        text = f"settings: {{{OFF}: {{breaker_m: 77}}}}"
        yield Ask(f"POST {REST}/manifests/", said={"text": text})
        yield Ask("POST /server-tokens/<int:pk>/revoke/", [self._row(ServerToken)])
        yield Ask(f"POST {REST}/server-tokens/{{id}}/revoke/", [self._row(ServerToken)])
        yield Ask("POST /tokens/<int:pk>/revoke/", [self._row(ApiToken)])
        yield Ask(f"POST {REST}/tokens/{{id}}/revoke/", [self._row(ApiToken)])
        assert self.world.alert is not None
        alert = [self.world.alert.pk]
        until = (timezone.now() + timedelta(hours=1)).isoformat()
        yield Ask(f"POST {REST}/alerts/{{id}}/close/", alert, {"reason": "x"})
        yield Ask(f"POST {REST}/alerts/{{id}}/snooze/", alert, {"until": until})
        yield Ask("POST /alerts/<int:pk>/close/", alert, {"reason": "x"})
        yield Ask("POST /alerts/<int:pk>/snooze/", alert, {"until_0": "4h"})

    def _mark(self) -> str:
        """What was written to it is on the broker by now."""
        self.lie_on(self.management)
        destination = Destination.objects.get(name="shop.orders")
        return mark_of(policy_lines(destination, read_policy(destination)))

    def _grant(self) -> PoolGrant:
        return PoolGrant.objects.create(pool=self.pool, group=Group.objects.get(name="viewer"))

    # -- failures, the pipeline, answers ---------------------------------------------------------------------

    def _failures(self) -> Iterator[Ask]:
        kind, other = [self.kind], {"other": self.other_kind}
        rest = f"{REST}/fingerprints/{{fingerprint}}/"
        fixed = Ask(f"POST {rest}fixed/", kind, {"version": "2"})
        merged = Ask(f"POST {rest}merge/", kind, other)
        apart = Ask(f"POST {rest}part-off/", kind, {"setting": ON})
        yield from (fixed, merged, apart)
        yield Ask(f"POST {rest}known/", kind, {"cause": "x", "advice": "give_back"})
        yield Ask(f"POST {rest}not-fixed/", kind, first=fixed)
        yield Ask(f"POST {rest}split/", kind, other, first=merged)
        yield Ask(f"POST {rest}join/", [self._part], first=apart)
        of = {"of": self.kind}
        yield Ask("POST /fingerprint/write/", said=of | {"cause": "x", "advice": "give_back"})
        yield Ask("POST /fingerprint/fixed/", said=of | {"version": "2"})
        yield Ask("POST /fingerprint/not-fixed/", said=of, first=fixed)
        yield Ask("POST /fingerprint/merge/", said=of | other)
        yield Ask("POST /fingerprint/split/", said=of | other, first=merged)
        yield Ask("POST /fingerprint/part-off/", said=of | {"setting": ON})
        yield Ask("POST /fingerprint/join/", said={"of": self._part}, first=apart)
        named = {"name": "keys", "query": "exception=Key"}
        yield Ask(f"POST {REST}/protocols/saved/", said=named)
        yield Ask(f"PATCH {REST}/protocols/saved/{{id}}/", [self._view], {"shared": True})
        yield Ask(f"DELETE {REST}/protocols/saved/{{id}}/", [self._view])
        yield Ask("POST /protocols/saved/save/", said=named)
        yield Ask("POST /protocols/saved/<int:pk>/change/", [self._view], {"name": "others"})
        yield Ask("POST /protocols/saved/<int:pk>/delete/", [self._view])

    def _part(self) -> object:
        return Fingerprint.objects.exclude(part_of=None).get().pk

    def _view(self) -> object:
        return SavedFilter.objects.create(
            list="protocols", owner=self.person, name="keys", query="exception=Key"
        ).pk

    def _pipeline(self) -> Iterator[Ask]:
        yield Ask(f"POST {REST}/pipeline-runs/", said={"jobs": ["odd_servers"]})
        yield Ask("POST /insights/run/")
        for begin in (f"{REST}/pipeline-runs/{{id}}/", "/insights/runs/<uuid:pk>/"):
            yield Ask(f"POST {begin}cancel/", [self._run])

    def _run(self) -> object:
        return PipelineRun.objects.create(state="running").pk

    def _answers(self) -> Iterator[Ask]:
        for route in ("POST /answers/<int:pk>/commit/", "POST /answers/<int:pk>/rollback/"):
            self._opened()
            yield Ask(route, [Acknowledgement.objects.get().pk])
        said = {"acknowledgement": self._opened(), "action": "COMMIT"}
        yield Ask(f"POST {REST}/acknowledgements/", said=said)

    def _opened(self) -> str:
        house = House(self.pool, self.world.servers["srv-1"])
        house.store(house.opened(house.id()))
        return house.id()

    # -- forms of the admin ----------------------------------------------------------------------------------

    def _forms(self) -> Iterator[Ask]:
        new = {"old_password": PASSWORD, "new_password1": NEW_PASSWORD, "new_password2": NEW_PASSWORD}
        yield Ask("POST /password_change/", said=new)
        for act in ("adopt", "apply"):  # what is written to the broker stays there
            destination = self.world.settings[ON].destination_id
            seen = self._hidden(f"/destinations/{destination}/{act}/")
            yield Ask(f"POST /destinations/<int:pk>/{act}/", [destination], seen)
            route = f"POST {REST}/destination-policies/{{name}}/{act}/"
            yield Ask(route, ["shop.orders"], {"seen": self._mark})
        for model, forms in admin.site._registry.items():
            rows = f"/{model._meta.app_label}/{model._meta.model_name}/"
            request = self._request()
            if forms.has_add_permission(request):
                yield Ask(f"POST {rows}add/", said=self._form(f"{rows}add/") | self._added(model))
            if forms.has_change_permission(request):
                pk = self._row(model)
                yield Ask(f"POST {rows}<id>/change/", [pk], self._form(f"{rows}{pk}/change/"))
            if forms.has_delete_permission(request) and model not in REMOVED_ON_THEIR_PAGES:
                yield Ask(f"POST {rows}<id>/delete/", [self._row(model)], {"post": "yes"})
            for action in forms.get_actions(request):
                chosen = {"action": action, "_selected_action": self._row(model), "post": "yes"}
                yield Ask(f"POST {rows} {action}", said=chosen)
        said = {"usable_password": "true", "password1": NEW_PASSWORD, "password2": NEW_PASSWORD}
        yield Ask("POST /auth/user/<id>/password/", [self._row(User)], said)

    def _request(self) -> Any:
        request: Any = RequestFactory().post("/")
        request.user = self.person
        return request

    def _row(self, model: Any) -> Any:
        """One that nothing else needs."""
        pool = Pool.objects.create(name="spare")
        made: dict[Any, Callable[[], Any]] = {
            AlertRule: lambda: AlertRule.objects.create(kind="spool_filling", pool=pool, upper=50),
            ApiToken: lambda: ApiToken.objects.create(user=self.person, name="spare", digest="d"),
            Destination: lambda: Destination.objects.create(name="demo.spare"),
            Group: lambda: Group.objects.create(name="spare"),
            LaunchSetting: self._delayed,
            MaintenanceWindow: self._window,
            NoticeTarget: self._target,
            Pool: lambda: pool,
            PoolGrant: self._grant,
            ScheduledGroup: lambda: ScheduledGroup.objects.get(name="nightly"),
            Server: lambda: Server.objects.create(name="spare"),
            ServerToken: lambda: ServerToken.objects.create(server=self.world.servers["srv-1"], digest="d"),
            User: lambda: User.objects.create_user("spare", password=None, is_staff=True),
        }
        return made[model]().pk

    def _added(self, model: Any) -> dict[str, Any]:
        """What has to be said of a new one."""
        pool, destination = self.pool.pk, self.world.settings[ON].destination_id
        members = "\n".join(self._delayed().key for _ in range(2))
        said: dict[Any, dict[str, Any]] = {
            AlertRule: {"kind": "spool_filling", "pool": pool, "watched": "on", "upper": "50"},
            Destination: {"name": "demo.new"},
            Group: {"name": "new"},
            LaunchSetting: {"key": "new", "agent": "demo.orders", "pool": pool, "destination": destination},
            MaintenanceWindow: {"crontab": "0 0 29 2 *", "time_zone": "UTC", "minutes": 1, "reason": "x"},
            NoticeTarget: {"pool": pool, "channel": "email", "address": "oncall@shop.example"},
            Pool: {"name": "new"},
            PoolGrant: {"pool": pool, "group": Group.objects.get(name="viewer").pk, "may_run": "on"},
            ScheduledGroup: {"name": "new", "members": members},
            Server: {"name": "new"},
            User: {"username": "new", "password1": NEW_PASSWORD, "password2": NEW_PASSWORD},
        }
        return said[model]

    def _form(self, address: str) -> dict[str, Any]:
        """The fields of a page of the admin as they came."""
        context = self._page(address).context
        sets = [each.formset for each in context["inline_admin_formsets"]]
        forms = [context["adminform"].form, *(each.management_form for each in sets)]
        forms += [form for each in sets for form in each.forms]
        return {name: value for form in forms for name, value in _sent(form)}

    def _hidden(self, address: str) -> dict[str, Any]:
        text = self._page(address).content.decode()
        return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', text))

    def _page(self, address: str) -> Any:
        browser = Client()
        browser.force_login(self.person)
        return browser.get(address)


def _sent(form: Any) -> Iterator[tuple[str, Any]]:
    """Name and value of each field as a browser sends them."""
    for bound in form:
        widget: Any = bound.field.widget
        value: Any = bound.value()
        if isinstance(widget, MultiWidget):
            parts: Any = widget.decompress(value)
            yield from ((f"{bound.html_name}_{n}", part or "") for n, part in enumerate(parts))
        elif value is not None and value is not False:
            yield bound.html_name, "on" if value is True else value
