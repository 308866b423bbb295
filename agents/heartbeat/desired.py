"""Describes what one server shall run, from the rows."""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping

import structlog
from django.db import DatabaseError

from agents import hooks
from agents.acknowledgements.answers import secret_of
from agents.activations.queries import NotSent, why_not_sent
from agents.liveness import LEASE_SECONDS, leased
from agents.models import LaunchSetting, PoisonPolicy, Run, RunPhase, Server, Spread, Timing, Withheld
from agents.models.activation import OPEN_ACTIVATIONS
from agents.models.setting import AckMode
from contract import wire
from contract.messages import AgentKind, DesiredRun, DesiredState, GiveUpRequest, Mode
from contract.outcomes import AfterLast
from contract.records import BreakerCounts

log = structlog.get_logger(__name__)

# -- consecutive failures that a DELAYED setting carries into its next activation ----------------------------

# The desired state carries them to every server: a bound keeps it small.
MOST_KNOWN = 1000
# As it is sent.
_as_sent = json.JSONEncoder(sort_keys=True, ensure_ascii=True, allow_nan=False).encode


def carried_counts(run: Run) -> BreakerCounts | None:
    """Returns what the run that ended last before this one had counted: for MANY on the same server, for ANY
    on any.

    None: the KMA starts from 0. So it is for what runs as soon as possible, after a person enabled the
    setting, and where a person resumed a run that was given up.
    """
    if run.activation.setting.timing != Timing.DELAYED:
        return None
    last = _last_before(run)
    if last is None or not last.any_count:
        return None
    if last.activation_id == run.activation_id and last.state == RunPhase.INTERRUPTED:
        return None
    return BreakerCounts(last.same_type, last.same_count, last.any_count, tuple(last.counted_marks))


def _last_before(run: Run) -> Run | None:
    setting = run.activation.setting
    closed = Run.objects.filter(closed_at__isnull=False)
    if setting.spread == Spread.MANY:
        closed = closed.filter(server=run.server_id)
    within = closed.filter(activation=run.activation_id, epoch__lt=run.epoch).order_by("-epoch").first()
    if within is not None:
        return within
    # What ran before the setting was enabled is forgiven. Of one setting only one activation is open: this
    # one.
    earlier = closed.filter(activation__setting=setting, activation__enabling=run.activation.enabling)
    earlier = earlier.exclude(activation=run.activation_id)
    return earlier.order_by("-activation__number", "-activation__started_at", "-epoch").first()


def attempts_known(settings: Collection[LaunchSetting]) -> dict[str, dict[str, int]]:
    """Returns, by setting, the largest known number per message; the messages with the most attempts when
    there are too many."""
    answers = hooks.known_attempts(settings)
    return {
        setting.key: _bounded([answer[setting.key] for answer in answers if setting.key in answer])
        for setting in settings
    }


def _bounded(found: Collection[Mapping[str, int]]) -> dict[str, int]:
    known: dict[str, int] = {}
    for attempts in found:
        for key, number in attempts.items():
            known[key] = max(number, known.get(key, 0))
    if len(known) > MOST_KNOWN:
        known = dict(sorted(known.items(), key=lambda item: (-item[1], item[0]))[:MOST_KNOWN])
    return known


def desired_state(server: Server) -> DesiredState:
    """`version` is a hash of the content: it changes exactly when the content does.

    A run that cannot be made or written is left out and says so in its row; the others of the server go on.
    Its KMA stops it, as one that is not wanted there.
    """
    wanted = Run.objects.filter(
        server=server,
        wanted=True,
        closed_at=None,
        activation__state__in=OPEN_ACTIVATIONS,
        activation__ending="",
        activation__setting__enabled=True,
    ).exclude(state=RunPhase.INTERRUPTED)
    rows = wanted.select_related("activation__setting__destination", "activation__setting__pool")
    rows = rows.order_by("activation__setting__key", "epoch")
    known = attempts_known({run.activation.setting.key: run.activation.setting for run in rows}.values())
    runs, dumped, withheld = [], [], {}
    for run in rows:
        try:
            made = _desired_run(run, server, known[run.activation.setting.key])
            # What cannot be written must not reach the answer of this server's heartbeat.
            text = _as_sent(wire.dump(made))
        except DatabaseError:
            raise
        except NotSent as reason:
            withheld[run.pk] = reason.because
            if run.withheld_because != reason.because:
                log.warning(
                    "run withheld",
                    setting=run.activation.setting.key,
                    server=server.name,
                    because=reason.because.value,
                )
        except Exception as error:
            withheld[run.pk] = why_not_sent(run.activation.setting) or Withheld.CANNOT_BE_SENT
            if run.withheld_because != withheld[run.pk]:
                log.error(
                    "run withheld", setting=run.activation.setting.key, server=server.name, exc_info=error
                )
        else:
            runs.append(made)
            dumped.append(text)
    _note_withheld(rows, withheld)
    version = hashlib.sha256(f"{server.name}\n[{', '.join(dumped)}]".encode()).hexdigest()[:32]
    return DesiredState(server=server.name, version=version, runs=tuple(runs))


def _note_withheld(rows: Iterable[Run], withheld: Mapping[int, Withheld]) -> None:
    """A run that is withheld stays wanted: it is sent again as soon as it can be. Killed before this, the
    next heartbeat finds the same and notes it."""
    for run in rows:
        because = withheld.get(run.pk, "")
        if run.withheld_because != because:
            Run.objects.filter(pk=run.pk, withheld_because=run.withheld_because).update(
                withheld_because=because
            )


def _desired_run(run: Run, server: Server, attempts: Mapping[str, int]) -> DesiredRun:
    setting = run.activation.setting
    if because := why_not_sent(setting):
        raise NotSent(because)
    return DesiredRun(
        activation=run.activation_id,
        epoch=run.epoch,
        setting=setting.key,
        agent=setting.agent,
        kind=AgentKind(setting.kind),
        count_message_once=setting.count_once,
        trial_first=run.activation.trial,
        carried_counts=carried_counts(run),
        limit_messages=setting.drain_limit_messages if setting.timing == Timing.DELAYED else 0,
        restart_seconds=_restart_seconds(setting),
        lease_seconds=LEASE_SECONDS if leased(setting) else 0.0,
        destination=setting.subscribed.name if setting.takes_messages else "",
        queue=setting.consumed_queue if setting.takes_messages else "",
        mode=Mode(setting.mode),
        concurrency=setting.concurrency,
        max_attempts=setting.subscribed.max_attempts if setting.takes_messages else 1,
        max_failures=setting.breaker_m,
        grace_seconds=setting.grace_seconds,
        handling_timeout_seconds=setting.handling_timeout_seconds,
        transaction_timeout_seconds=setting.transaction_timeout_seconds,
        dups_ok_messages=setting.dups_ok_messages,
        dups_ok_seconds=setting.dups_ok_seconds,
        acknowledgement_timeout_seconds=setting.acknowledgement_timeout_seconds,
        acknowledgement_property=setting.acknowledgement_property,
        committed_destination=setting.committed_destination,
        rolled_back_destination=setting.rolled_back_destination,
        acknowledgement_secret=secret_of(run, server) if setting.mode == AckMode.CLIENT else "",
        ordered=setting.ordered,
        blocked_seconds=setting.blocked_seconds,
        retries_requested=setting.retries_asked,
        give_up_request=_give_up_request(setting),
        after_last=AfterLast(setting.after_last),
        exception_destination=setting.exception_destination
        if setting.after_last == PoisonPolicy.EXCEPTION
        else "",
        duplicate_key=setting.duplicate_key,
        duplicate_window_seconds=setting.duplicate_window_seconds,
        isolate=setting.isolate,
        child_memory_mb=setting.child_memory_mb,
        parameters=setting.parameters,
        known_attempts=attempts,
        masked_properties=tuple(setting.masked_properties),
    )


def _give_up_request(setting: LaunchSetting) -> GiveUpRequest | None:
    if not setting.give_ups_asked:
        return None
    return GiveUpRequest(setting.give_ups_asked, setting.give_up_digest, setting.give_up_attempt)


def _restart_seconds(setting: LaunchSetting) -> float:
    """Only a standalone agent that runs as soon as possible is started again after it raised."""
    again = setting.timing == Timing.ASAP and not setting.takes_messages
    return setting.restart_seconds if again else 0.0
