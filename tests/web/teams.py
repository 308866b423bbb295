"""People with rights in pools only."""

from django.contrib.auth.models import Group, User

from agents.models import LaunchSetting, Pool, PoolGrant, ScheduledGroup, Server
from tests.web.launching import group_of
from tests.web.rows import make_person, make_setting

EVERY_RIGHT = ("edit", "enable", "disable", "run", "stop")


def teammate(*pools: Pool, name: str = "mate", rights: tuple[str, ...] = EVERY_RIGHT) -> User:
    """A viewer whose team has these rights in these pools, and no permission beyond."""
    team = Group.objects.create(name=f"team of {name}")
    for pool in pools:
        PoolGrant.objects.create(pool=pool, group=team, **{f"may_{right}": True for right in rights})
    person = make_person(name, "viewer")
    person.groups.add(team)
    return person


def group_over_two_pools(server: Server) -> tuple[ScheduledGroup, LaunchSetting, LaunchSetting]:
    """Group `gab` with `sa` in the pool `pa` and `sb` in `pb`, both ready to start on the server."""
    members = []
    for letter in "ab":
        pool = Pool.objects.create(name=f"p{letter}")
        pool.servers.add(server)
        members.append(make_setting(pool, f"s{letter}", timing="DELAYED"))
    return group_of(*members, name="gab"), members[0], members[1]
