"""Whatever happens in whatever order: what launch control promises always holds.

A hypothesis state machine over the real services. It starts, loses, freezes, partitions, trips, resumes,
enables and disables; after each step the promises are looked at.
"""

from contextlib import ExitStack, suppress
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import transaction
from django.test import TestCase
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from agents import liveness
from agents.breaker.interruption import resume_on_server
from agents.heartbeat.desired import desired_state
from agents.models import (
    Activation,
    BreakerTrip,
    Duty,
    Interruption,
    LaunchSetting,
    Pool,
    Run,
    RunPhase,
    Server,
    ServerStop,
)
from agents.reconciler import keep_up
from agents.servers.operations import set_duty
from agents.settings.enable import disable_setting, enable_setting
from agents.settings.operations import StartOnServer, StopOnServer
from console.operations.operation import perform
from console.operations.refusals import Refused
from console.reasons import said
from tests.web.launch_world import Kma, key_of
from tests.web.rows import NOW, make_setting

pytestmark = pytest.mark.both_databases

SERVERS = ("srv-1", "srv-2", "srv-3")
ANY, MANY, LONE = "any", "many", "lone"
STEP = 4  # seconds between two heartbeats of a server: less than a third of what makes it lost

servers = st.sampled_from(SERVERS)
keys = st.sampled_from((ANY, MANY, LONE))


class Launching(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self._rows = ExitStack()
        atomic = transaction.atomic()
        # As Django's own test cases: intake asks that its transaction is the outermost one.
        atomic._from_testcase = True  # type: ignore[attr-defined]
        self._rows.enter_context(atomic)
        self.now = NOW
        self.resumed: set[int] = set()
        self.kmas = {name: Kma(name, UUID(int=number)) for number, name in enumerate(SERVERS, start=1)}

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self._rows.close()

    @initialize()
    def make(self) -> None:
        pool = Pool.objects.create(name="demo")
        pool.servers.set([Server.objects.create(name=name) for name in SERVERS])
        make_setting(pool, ANY, address="t.any", spread="ANY")
        make_setting(pool, MANY, address="t.many", spread="MANY")
        make_setting(pool, LONE, agent="demo.report", kind="standalone", spread="ANY")
        self._hear()
        for key in (ANY, MANY, LONE):
            enable_setting(_setting(key), None, self.now)
        self._hear()

    # -- time and talk ---------------------------------------------------------------------------------------

    @rule(seconds=st.sampled_from((STEP, 3 * STEP, 8 * STEP, 20 * STEP)))
    def time_passes(self, seconds: int) -> None:
        for _ in range(seconds // STEP):
            self.now += timedelta(seconds=STEP)
            self._hear()
            with TestCase.captureOnCommitCallbacks(execute=True):
                keep_up(self.now)
            self.lone_works_once()

    @rule(name=servers)
    def a_heartbeat_stays_unanswered(self, name: str) -> None:
        if self.kmas[name].is_heard:
            self.kmas[name].beat(self.now, answered=False)

    @rule(name=servers, twice=st.booleans(), told=st.booleans())
    def records_arrive(self, name: str, twice: bool, told: bool) -> None:
        """`told`: what is to be done right after the commit is done; else the process died between the
        two."""
        if self.kmas[name].is_heard:
            with TestCase.captureOnCommitCallbacks(execute=told):
                self.kmas[name].send(self.now, twice=twice)

    def _hear(self) -> None:
        for kma in self.kmas.values():
            if kma.is_heard:
                with TestCase.captureOnCommitCallbacks(execute=True):
                    kma.send(self.now)
                kma.beat(self.now)

    # -- what happens to servers -----------------------------------------------------------------------------

    @rule(name=servers)
    def die(self, name: str) -> None:
        self.kmas[name].die()

    @rule(name=servers)
    def revive(self, name: str) -> None:
        kma = self.kmas[name]
        kma.alive, kma.frozen = True, False

    @rule(name=servers, frozen=st.booleans())
    def freeze_or_wake(self, name: str, frozen: bool) -> None:
        self.kmas[name].frozen = frozen and self.kmas[name].alive

    @rule(name=servers, cut=st.booleans())
    def partition_or_mend(self, name: str, cut: bool) -> None:
        self.kmas[name].cut = cut

    @rule(key=keys, how=st.sampled_from(("die", "freeze", "cut")))
    def strike_who_works(self, key: str, how: str) -> None:
        for kma in self.kmas.values():
            if kma.at_work(key, self.now):
                if how == "die":
                    kma.die()
                kma.frozen = kma.frozen or how == "freeze"
                kma.cut = kma.cut or how == "cut"
                return

    @rule(name=servers, key=keys)
    def trip(self, name: str, key: str) -> None:
        kma = self.kmas[name]
        for run in kma.at_work(key, self.now) if kma.acts else []:
            kma.give_up(run, self.now)

    @rule(key=keys)
    def trip_everywhere_at_once(self, key: str) -> None:
        for name in SERVERS:
            self.trip(name, key)

    # -- what people do --------------------------------------------------------------------------------------

    @rule(key=keys)
    def enable(self, key: str) -> None:
        enable_setting(_setting(key), None, self.now)

    @rule(key=keys)
    def disable(self, key: str) -> None:
        disable_setting(_setting(key), None, said("a person"), self.now)

    @rule(key=keys, name=servers)
    def resume(self, key: str, name: str) -> None:
        try:
            run = resume_on_server(_setting(key), Server.objects.get(name=name), None, self.now)
        except Refused:
            return
        self.resumed.add(run.pk)

    @rule(name=servers, duty=st.sampled_from(Duty))
    def change_duty(self, name: str, duty: Duty) -> None:
        set_duty(Server.objects.get(name=name), duty, None, self.now)

    @rule(key=keys, name=servers)
    def stop_on_one_server(self, key: str, name: str) -> None:
        with suppress(Refused):
            perform(StopOnServer, _setting(key), None, self.now, server=Server.objects.get(name=name))

    @rule(key=keys, name=servers)
    def start_on_one_server(self, key: str, name: str) -> None:
        perform(StartOnServer, _setting(key), None, self.now, server=Server.objects.get(name=name))

    # -- what always holds -----------------------------------------------------------------------------------

    @invariant()
    def lone_works_once(self) -> None:
        """No broker fences it: only leases keep two from working at once."""
        at_work = [name for name, kma in self.kmas.items() if kma.at_work(LONE, self.now)]
        assert len(at_work) <= 1, f"at work at once: {at_work}"

    @invariant()
    def one_run_of_any_is_wanted(self) -> None:
        for key in (ANY, LONE):
            wanted = Run.objects.filter(activation__setting__key=key, wanted=True, closed_at=None)
            assert wanted.count() <= 1

    @invariant()
    def what_is_disabled_is_wanted_nowhere(self) -> None:
        assert not Run.objects.filter(
            activation__setting__enabled=False, wanted=True, closed_at=None
        ).exists()

    @invariant()
    def one_trip_per_cause(self) -> None:
        for key in (ANY, MANY, LONE):
            trips = list(BreakerTrip.objects.filter(setting__key=key))
            assert len({trip.activation_id for trip in trips}) == len(trips), "an activation trips once"
            assert sum(trip.ended_at is None for trip in trips) <= 1
            for trip in trips:
                gave_up = set(trip.quorum["interrupted"])
                alone = trip.quorum["rule"] == "all_there_are" and not trip.quorum["live"]
                assert len(gave_up) >= (1 if key != MANY or alone else 2)
                assert Run.objects.filter(activation=trip.activation, state=RunPhase.INTERRUPTED).exists()
            if any(trip.ended_at is None for trip in trips):
                assert not _setting(key).enabled, "off until a person enables it"

    @invariant()
    def what_was_given_up_is_not_taken_up_again(self) -> None:
        given_up = Run.objects.filter(state=RunPhase.INTERRUPTED)
        for server in Server.objects.filter(pk__in=given_up.values("server")):
            wanted = {key_of(run) for run in desired_state(server).runs}
            for run in given_up.filter(server=server):
                assert (run.activation_id, run.epoch) not in wanted
                known = Interruption.objects.filter(run=run).order_by("received_at").first()
                if known is None:  # a heartbeat told of it before its record came
                    continue
                later = Run.objects.filter(activation=run.activation_id, server=server, epoch__gt=run.epoch)
                # A person may have taken the server back before the MA was told.
                later = later.filter(created_at__gte=known.received_at)
                first = later.order_by("epoch").values_list("pk", flat=True).first()
                assert first is None or first in self.resumed, "begun anew, and no person asked for it"

    @invariant()
    def nothing_is_wanted_where_a_person_stopped_it(self) -> None:
        for stop in ServerStop.objects.all():
            wanted = Run.objects.filter(server=stop.server_id, wanted=True, closed_at=None)
            wanted = wanted.filter(activation__setting=stop.setting_id, activation__ending="")
            assert not wanted.filter(activation__setting__enabled=True).exists()

    @invariant()
    def epochs_grow(self) -> None:
        for activation in Activation.objects.all():
            epochs = list(activation.runs.order_by("pk").values_list("epoch", flat=True))
            assert epochs == sorted(set(epochs)) and activation.last_epoch >= max(epochs, default=0)


def _setting(key: str) -> LaunchSetting:
    return LaunchSetting.objects.get(key=key)


@pytest.mark.process  # as dear: many histories
@pytest.mark.django_db
def test_launch_control_keeps_its_promises_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing listens: a KMA of this world learns by its poll.
    monkeypatch.setattr(liveness, "poll", lambda servers: None)
    # Not made smaller when it fails: 22 steps are read sooner than minutes of shrinking are over.
    phases = (Phase.explicit, Phase.generate)
    bounds = settings(
        phases=phases, max_examples=14, stateful_step_count=22, deadline=None, derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    run_state_machine_as_test(Launching, settings=bounds)
