"""Three people, two servers, a pool and a setting for every web test.

Django is set up after this file is loaded, so models are imported inside the fixtures.
"""

from __future__ import annotations

from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Any

import pytest

from console import exports
from tests import costs, slow_calls

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from agents.models import LaunchSetting, Pool, Server
    from tests.web.factories import World
    from tests.web.rendered import Pages

# There nothing is kept: each test makes its rows.
collect_ignore = ["test_kept_rows.py"] if costs.database() == "postgresql" else []


@pytest.fixture(autouse=True)
def plain_static_files(settings: Any) -> None:
    """The manifest of static files is made by collectstatic, which tests do not need."""
    plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)
    settings.STORAGES = {**settings.STORAGES, "staticfiles": plain}


@pytest.fixture(autouse=True)
def quick_passwords(settings: Any) -> None:
    """The real hasher takes half a second per person on purpose."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Jobs that a worker was told of: here is none."""
    told: list[str] = []

    def send(task: str, kind: str, job: str, **_: object) -> None:
        slow_calls.note("sends a task")
        told.append(job)

    monkeypatch.setattr("console.jobs.engine.send", send)
    return told


@pytest.fixture(autouse=True)
def begins_in_english() -> None:
    """Whatever language the last request of the test before was answered in."""
    from django.utils import translation

    translation.activate("en")


@pytest.fixture(autouse=True)
def knows_no_counts() -> None:
    """Of the broker of the test before."""
    from agents.provisioning import queue_counts

    queue_counts.forget()


@pytest.fixture(autouse=True)
def fresh_cache() -> None:
    """Counts of the throttles end with the test."""
    from django.core.cache import cache

    cache.clear()


@pytest.fixture(autouse=True)
def all_places_for_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that asks for a file and does not read it holds its place for ever; a server closes it."""
    monkeypatch.setattr(exports, "_running", BoundedSemaphore(exports.AT_ONCE))


@pytest.fixture(autouse=True)
def alerts_are_looked_at_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where beat is away, a heartbeat begins a thread that looks at them: it would go on into the next
    test."""
    from alerts import agents_hooks

    monkeypatch.setattr(agents_hooks, "_next_question", float("inf"))


@pytest.fixture(scope="session")
def known_groups() -> dict[str, list[int]]:
    """Name → permissions, as the first test found them."""
    return {}


@pytest.fixture
def groups(db: None, known_groups: dict[str, list[int]]) -> None:
    """Made by the site once in a session, then copied: it takes longer than most tests."""
    from django.contrib.auth.models import Group

    from tests.web.rows import make_roles

    if not known_groups:
        make_roles()
        for group in Group.objects.all():
            known_groups[group.name] = [*group.permissions.values_list("pk", flat=True)]
        return
    members = Group.permissions.through
    members.objects.bulk_create(
        members(group_id=group.pk, permission_id=permission)
        for group in Group.objects.bulk_create(Group(name=name) for name in known_groups)
        for permission in known_groups[group.name]
    )


@pytest.fixture
def operator(groups: None) -> User:
    """May enable, disable, give back, and change settings."""
    from tests.web.rows import make_person

    return make_person("operator", "operator")


@pytest.fixture
def viewer(groups: None) -> User:
    """May look at everything and change nothing."""
    from tests.web.rows import make_person

    return make_person("viewer", "viewer")


@pytest.fixture
def outsider(groups: None) -> User:
    """A known person without any permission."""
    from tests.web.rows import make_person

    return make_person("outsider")


@pytest.fixture
def server(db: None) -> Server:
    from agents.models import Server

    return Server.objects.create(name="srv-1")


@pytest.fixture
def second_server(db: None) -> Server:
    from agents.models import Server

    return Server.objects.create(name="srv-2")


@pytest.fixture
def pool(server: Server, second_server: Server) -> Pool:
    from agents.models import Pool

    pool = Pool.objects.create(name="demo")
    pool.servers.add(server, second_server)
    return pool


@pytest.fixture
def setting(pool: Pool) -> LaunchSetting:
    """Ready on the broker, disabled, ANY."""
    from tests.web.rows import make_setting

    return make_setting(pool)


@pytest.fixture
def world(db: None, monkeypatch: pytest.MonkeyPatch) -> World:
    """A house after a busy morning; its broker does not answer."""
    from agents.provisioning import queue_counts as figures
    from tests.web import factories
    from tests.web.kept_rows import kept

    figures.forget()
    monkeypatch.setattr(factories, "PASSWORD", "p")
    return kept("world", lambda: factories.make_world(letters=21))


@pytest.fixture
def pages(world: World) -> Pages:
    from tests.web.rendered import Pages

    return Pages(world)
