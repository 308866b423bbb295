"""Makes the rows say what a file says: all of it or nothing.

Everything is stored through the services that people's forms use, in one transaction; a dry run does the same
and rolls it back. Two things follow after the commit, because they need what was committed: the broker gets
what new settings need, and what the file wants enabled is enabled. A kill in between leaves that to the next
`apply`. Nothing that the file does not name is touched, and nothing is deleted but a schedule that the file
says is none, unless somebody wants what it leaves out of its pools removed: that follows the commit too,
each by the operation of its page, which keeps what still runs and what has messages.
"""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction

from agents.groups.group import disable_group, enable_group
from agents.groups.members import save_members
from agents.groups.operations import DeleteGroup, DisableGroup, EnableGroup
from agents.manifests.document import MODELS, Document, Entry, ManifestProblem, Rejected, gathered
from agents.manifests.export import Change, between, members_of, schedule_fields, superfluous
from agents.manifests.store import (
    store_destination,
    store_group,
    store_pool,
    store_setting,
    why_not_saved,
    why_not_switched,
)
from agents.models import (
    GroupMember,
    LaunchSetting,
    PoisonPolicy,
    Pool,
    ProvisionState,
    Schedule,
    ScheduledGroup,
)
from agents.provisioning.provision import provision_setting
from agents.reasons import FROM_FILE
from agents.schedules.tick import delete_schedule, save_schedule
from agents.settings.enable import disable_setting, enable_setting
from agents.settings.operations import DisableSetting, EnableSetting, RemoveSetting
from agents.settings.pools import affected_by
from agents.settings.removal import refusal_by_rows
from console.audit.log import attempt
from console.audit.saves import Saving
from console.operations.operation import Act, check_allowed, perform
from console.operations.refusals import Refused

PATIENCE_SECONDS = 15.0
Owner = LaunchSetting | ScheduledGroup


@dataclass(frozen=True, slots=True)
class Manner:
    """`dry_run`: nothing is stored. `prune`: what the file leaves out of its pools goes. `checked`: who
    applies it needs the right for each change. `seconds`: of all the waiting for the broker."""

    dry_run: bool = False
    prune: bool = False
    checked: bool = False
    seconds: float = math.inf


@dataclass
class Outcome:
    """`changes` in the order in which they were made; `refused`: what could not be enabled, though it was
    stored; `withheld`: keys of enabled settings that a changed list of allowed agents keeps from their
    servers."""

    changes: list[Change] = field(default_factory=list)
    refused: list[ManifestProblem] = field(default_factory=list)
    withheld: list[str] = field(default_factory=list)


def apply(document: Document, by: Any, now: datetime, how: Manner = Manner()) -> Outcome:
    """Raises Rejected with every problem that was found."""
    work = _Work(document, by, now, checked=how.checked)
    with transaction.atomic():
        # Groups before settings, as everybody locks them; on PostgreSQL a trip at this moment waits.
        list(ScheduledGroup.objects.select_for_update(no_key=True).order_by("pk"))
        work.store()
        if work.problems:
            raise Rejected(work.problems)
        work.record()
        wanted, withheld = work.enablings(), work.withheld()
        going = list(superfluous(document)) if how.prune else []
        outcome = Outcome(work.changes, withheld=withheld)
        if how.dry_run:
            _foresee(outcome, going, by, now)
            transaction.set_rollback(True)
    until = time.monotonic() + how.seconds
    for path, owner in wanted:
        outcome.changes.append(Change(f"{path}/enabled", "false", "true"))
        if not how.dry_run:
            with gathered(outcome.refused, path):
                _enable(owner, by, now, until)
    for path, row in going if not how.dry_run else ():
        with gathered(outcome.refused, path):
            _remove(row, by)
            outcome.changes.append(Change(path, "there", None))
    return outcome


def _remove(row: Owner, by: Any) -> None:
    """Raises Refused or NotAllowed. What is gone by now is done."""
    with suppress(type(row).DoesNotExist):
        if isinstance(row, ScheduledGroup):
            perform(DeleteGroup, row, by)
        else:
            perform(RemoveSetting, LaunchSetting.objects.get(pk=row.pk), by)


def _foresee(outcome: Outcome, going: Sequence[tuple[str, Owner]], by: Any, now: datetime) -> None:
    """As far as the rows tell: what the broker holds is asked for when it is done."""
    groups = {row.pk for _path, row in going if isinstance(row, ScheduledGroup)}
    for path, row in going:
        outcome.changes.append(Change(path, "there", None))
        with gathered(outcome.refused, path):
            if isinstance(row, ScheduledGroup):
                check_allowed(DeleteGroup, row, by)
                refused = DeleteGroup().refusal(row, now)
            else:
                check_allowed(RemoveSetting, row, by)
                refused = None if _leaves(row, groups) else refusal_by_rows(row)
            if refused is not None:
                raise refused


def _leaves(setting: LaunchSetting, groups: set[int]) -> bool:
    """Of a group that goes before, and disabled with it."""
    member = GroupMember.objects.filter(setting=setting.pk).first()
    return member is not None and member.group_id in groups and not setting.enabled


class _Work:
    """The order lets a file move a setting from a schedule of its own into a group, or from one group to
    another."""

    def __init__(self, document: Document, by: Any, now: datetime, *, checked: bool) -> None:
        self.document, self.by, self.now, self.checked = document, by, now, checked
        self.changes: list[Change] = []
        self.problems: list[ManifestProblem] = []
        # By the paths of entries: one entry of the audit for all that is saved of a row.
        self.saves: dict[str, Saving] = {}

    def store(self) -> None:
        scheduled = [*self.document.of("settings"), *self.document.of("groups")]
        for entry in scheduled:
            self._disable(entry)
            self._drop_schedule(entry)
        for entry in self.document.of("groups"):
            self._let_members_go(entry)
        pools = partial(store_pool, now=self.now)
        for section, store in (
            ("pools", pools),
            ("destinations", store_destination),
            ("settings", store_setting),
        ):
            for entry in sorted(self.document.of(section), key=_hands_on):
                with gathered(self.problems, entry.path):
                    self.changes += store(entry, self.by, partial(self._begin, entry))
        for entry in self.document.of("groups"):
            with gathered(self.problems, entry.path):
                self.changes += store_group(entry, partial(self._begin, entry))
                self._set_members(entry)
        for entry in scheduled:
            self._set_schedule(entry)
        for entry in self.document.of("settings"):
            self._check_enabled_alone(entry)
        for path, owner in self.enablings():
            self._need(path, partial(why_not_switched, self.by, "enable", owner))

    def record(self) -> None:
        """Records what was saved in the audit."""
        for section, model in MODELS.items():
            key = "key" if section == "settings" else "name"
            for entry in self.document.of(section):
                if save := self.saves.get(entry.path):
                    save.row = model.objects.get(**{key: entry.name})
                    save.end()

    def _begin(self, entry: Entry, row: Any) -> Saving:
        """Before the first change of a row; it is None where it is new."""
        if entry.path not in self.saves:
            self._need(entry.path, partial(why_not_saved, self.by, entry, row))
            self.saves[entry.path] = Saving(row, self.by)
        return self.saves[entry.path]

    def _need(self, path: str, why_not: Callable[[], str]) -> None:
        """A missing right is a problem like others: with it nothing is stored."""
        if self.checked and (why := why_not()):
            self.problems.append(ManifestProblem(path, why, forbidden=True))

    def withheld(self) -> list[str]:
        """Enabled settings of pools whose list this file changes, with an agent that the list does not
        allow."""
        changed = {change.path for change in self.changes}
        names = [
            entry.name for entry in self.document.of("pools") if f"{entry.path}/allowed_agents" in changed
        ]
        pools = Pool.objects.filter(name__in=names).order_by("name")
        return [key for pool in pools for key in affected_by(pool, pool.allowlist).enabled]

    def enablings(self) -> list[tuple[str, Owner]]:
        entries = [*self.document.of("settings"), *self.document.of("groups")]
        owners = [(entry.path, _owner(entry)) for entry in entries if entry.given.get("enabled") is True]
        return [(path, owner) for path, owner in owners if owner is not None and not owner.enabled]

    def _disable(self, entry: Entry) -> None:
        owner = _owner(entry)
        if owner is None or not owner.enabled or entry.given.get("enabled") is not False:
            return
        self._need(entry.path, partial(why_not_switched, self.by, "disable", owner))
        with gathered(self.problems, entry.path):
            if isinstance(owner, ScheduledGroup):
                act = Act(DisableGroup(), owner, self.by, self.now, {})
                done = disable_group(owner, self.by, FROM_FILE(), self.now, record=act.record)
            else:
                act = Act(DisableSetting(), owner, self.by, self.now, {})
                done = disable_setting(owner, self.by, FROM_FILE(), self.now, record=act.record)
            self.changes += [Change(f"{entry.path}/enabled", "true", "false")] * done

    def _check_enabled_alone(self, entry: Entry) -> None:
        if "enabled" in entry.given and GroupMember.objects.filter(setting__key=entry.name).exists():
            text = "the setting belongs to a group: set `enabled` on the group instead"
            self.problems.append(ManifestProblem(f"{entry.path}/enabled", text))

    def _drop_schedule(self, entry: Entry) -> None:
        schedule = _schedule(entry)
        if schedule is None or "schedule" not in entry.given or entry.given["schedule"] is not None:
            return
        self._begin(entry, _owner(entry))
        delete_schedule(schedule, self.by, self.now)
        self.changes += [Change(f"{entry.path}/schedule", str(schedule), "none")]

    def _set_schedule(self, entry: Entry) -> None:
        """The mapping in the file is the whole schedule: what it does not say has its default."""
        given, owner = entry.given.get("schedule"), _owner(entry)
        if given is None or owner is None:
            return
        stored = _schedule(entry)
        wanted = Schedule(**given, **{_kind(owner): owner})
        wanted.crontab = " ".join(wanted.crontab.split())
        path = f"{entry.path}/schedule"
        old = schedule_fields(stored) if stored else None
        new = schedule_fields(wanted)
        if old == new:
            return
        if stored is not None:
            for name in ("crontab", "time_zone", "every_seconds", "missed"):
                setattr(stored, name, getattr(wanted, name))
        self._begin(entry, owner)
        with gathered(self.problems, path):
            save_schedule(stored or wanted, self.by, self.now)
        self.changes += between(path, old, {**dict.fromkeys(old or {}), **new})

    def _let_members_go(self, entry: Entry) -> None:
        group = ScheduledGroup.objects.filter(name=entry.name).first()
        if group is None or "members" not in entry.given:
            return
        before = members_of(group)
        if (staying := [key for key in before if key in entry.given["members"]]) != before:
            self._begin(entry, group)
            with gathered(self.problems, f"{entry.path}/members"):
                save_members(group, staying, self.by, self.now)
                self.changes += between(entry.path, {"members": before}, {"members": staying})

    def _set_members(self, entry: Entry) -> None:
        group = ScheduledGroup.objects.filter(name=entry.name).first()
        if (
            group is None
            or "members" not in entry.given
            or (before := members_of(group)) == entry.given["members"]
        ):
            return
        path = f"{entry.path}/members"
        if any(problem.path == path for problem in self.problems):
            return
        self._begin(entry, group)
        with gathered(self.problems, path):
            save_members(group, entry.given["members"], self.by, self.now)
            self.changes += between(entry.path, {"members": before}, {"members": entry.given["members"]})


def _enable(owner: Owner, by: Any, now: datetime, until: float) -> None:
    """Raises Refused, which the next `apply` may not meet any more: the broker may have been away."""
    if isinstance(owner, ScheduledGroup):
        _provide([member.setting for member in owner.members.select_related("setting")], until)
        act = Act(EnableGroup(), owner, by, now, {})
        with attempt(**act.about, by=by):
            enable_group(owner, by, now, record=act.record)
        return
    _provide([owner], until)
    act = Act(EnableSetting(), owner, by, now, {})
    with attempt(**act.about, by=by):
        enable_setting(LaunchSetting.objects.get(pk=owner.pk), by, now, record=act.record)


def _provide(settings: Sequence[LaunchSetting], until: float) -> None:
    """Waits until the broker has what they need: here or, where a worker is at it already, there."""
    deadline = min(until, time.monotonic() + PATIENCE_SECONDS)
    while time.monotonic() < deadline:
        pending = LaunchSetting.objects.filter(pk__in=[setting.pk for setting in settings])
        pending = pending.filter(provision_state=ProvisionState.PENDING)
        if not (found := list(pending)):
            return
        for setting in found:
            provision_setting(setting.pk)
        if (
            problem := pending.exclude(provision_problem="")
            .values_list("provision_problem", flat=True)
            .first()
        ):
            raise Refused("not_provisioned", f"The broker is unavailable: {problem}.", "")
        time.sleep(0.2)


def _kind(owner: Owner) -> str:
    return "group" if isinstance(owner, ScheduledGroup) else "setting"


def _owner(entry: Entry) -> Owner | None:
    if entry.section == "groups":
        return ScheduledGroup.objects.filter(name=entry.name).first()
    return LaunchSetting.objects.filter(key=entry.name).first()


def _schedule(entry: Entry) -> Schedule | None:
    owner = _owner(entry)
    return None if owner is None else Schedule.objects.filter(**{_kind(owner): owner}).first()


def _hands_on(entry: Entry) -> bool:
    """Returns whether it is a setting that sends messages on after their last attempt: after the others,
    among which may be one that does so no more, and so leads nothing back here."""
    return entry.given.get("after_last") == PoisonPolicy.EXCEPTION
