"""The kinds of this app and of those below it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from agents.models import Activation, BreakerTrip, Run
from console.reasons import Reason
from failures.archive.kinds import ArchivedKind, json, json_value, register, uuid
from failures.models import FailureProtocol, RecoveredMessage
from failures.reasons import KEY_UNREADABLE

# Activations of which something came late: what is known of them and of their runs may have changed by it.
TOUCHED = """
    SELECT activation_uuid FROM failures_failureprotocol WHERE received_at >= {first} AND received_at < {last}
    UNION
    SELECT activation_uuid FROM failures_recoveredmessage WHERE received_at >= {first}
    AND received_at < {last}
"""


def protocols() -> str:
    return f"""
        SELECT {uuid("id")} AS id, {uuid("spool")} AS spool, number, setting_key,
               {uuid("activation_uuid")} AS activation, epoch, server_name AS server, agent, agent_version,
               outcome,
               exception_type, exception_text, traceback, fingerprint, place, temporary, counted,
               last_attempt,
               successes_before, message_key, message_key_weak, queue, destination, attempt, delivery_count,
               body_digest, body_size, {json("properties")} AS properties, given_back, duration_seconds,
               memory_peak_bytes, clock_skew_seconds, traceparent, occurred_at, received_at,
               disposition, durable
        FROM failures_failureprotocol
    """


def recovered() -> str:
    return f"""
        SELECT {uuid("id")} AS id, setting_key, {uuid("activation_uuid")} AS activation, server_name
        AS server,
               message_key, attempt, occurred_at, received_at
        FROM failures_recoveredmessage
    """


def activations() -> str:
    return f"""
        SELECT {uuid("a.id")} AS id, s.key AS setting_key, a.state, a.trigger AS "trigger", a.well,
               {json("a.reason")} AS reason,
               a.started_at, a.ended_at, {json_value("a.launched_with", "breaker_m", "integer")} AS breaker_m,
               lower({json_value("a.launched_with", "spread")}) AS mode, {json("a.launched_with")}
               AS launched_with
        FROM agents_activation a JOIN agents_launchsetting s ON s.id = a.setting_id
        WHERE (a.ended_at >= {{first}} AND a.ended_at < {{last}})
           OR (a.ended_at < {{first}} AND a.id IN ({TOUCHED}))
    """


def runs() -> str:
    return f"""
        SELECT {uuid("r.activation_id")} AS activation, s.key AS setting_key, v.name AS server, r.epoch,
        r.state,
               r.handled, r.failed, r.temporary, r.recovered, r.restarts, r.created_at, r.closed_at
        FROM agents_run r JOIN agents_activation a ON a.id = r.activation_id
             JOIN agents_launchsetting s ON s.id = a.setting_id JOIN agents_server v ON v.id = r.server_id
        WHERE (r.closed_at >= {{first}} AND r.closed_at < {{last}})
           OR (r.closed_at < {{first}} AND r.activation_id IN ({TOUCHED}))
    """


def trips() -> str:
    """Again when a person has enabled the setting."""
    return f"""
        SELECT t.id, s.key AS setting_key, {uuid("t.activation_id")} AS activation,
               (SELECT v.name FROM agents_interruption i JOIN agents_server v ON v.id = i.server_id
                WHERE i.trip_id = t.id ORDER BY i.occurred_at, i.id LIMIT 1) AS server,
               t.reason, t.exception_type, t.at, t.ended_at AS enabled_again_at, t.reopened
        FROM agents_breakertrip t JOIN agents_launchsetting s ON s.id = t.setting_id
        WHERE (t.at >= {{first}} AND t.at < {{last}})
           OR (t.at < {{first}} AND t.ended_at >= {{first}} AND t.ended_at < {{last}})
    """


def register_kinds() -> None:
    register(ArchivedKind("protocols", FailureProtocol.objects.all, "received_at", protocols))
    register(ArchivedKind("recovered", RecoveredMessage.objects.all, "received_at", recovered))
    register(ArchivedKind("activations", Activation.objects.all, "ended_at", activations))
    register(ArchivedKind("runs", Run.objects.all, "closed_at", runs))
    register(ArchivedKind("trips", BreakerTrip.objects.all, "at", trips))


# The site's database as the pipeline's JDBC driver is told of it, with the same TLS as Django's connection.
#
# pgjdbc takes the names that libpq has, with two differences. Its `require` verifies nothing, where libpq's
# verifies the authority as soon as `sslrootcert` is given. And it reads a client's key as PKCS-8 in DER, or
# PKCS-12, never as PEM.


PKCS12 = (".p12", ".pfx")
DER = ".pk8"
PEM = b"-----BEGIN"


class KeyUnreadable(Exception):
    """The driver cannot read the client's key as it is. `why` says the command that makes one that it
    reads."""

    def __init__(self, why: Reason) -> None:
        super().__init__(why)
        self.why = why


def postgresql_url(known: Mapping[str, Any]) -> str:
    """Of an entry of DATABASES. Raises KeyUnreadable."""
    host, port = known["HOST"] or "localhost", known["PORT"] or "5432"
    parameters = {"connectTimeout": "10", "tcpKeepAlive": "true", **tls(known.get("OPTIONS") or {})}
    database, asked = quote(str(known["NAME"]), safe=""), urlencode(parameters, quote_via=quote)
    return f"jdbc:postgresql://{host}:{port}/{database}?{asked}"


def tls(options: Mapping[str, Any]) -> dict[str, str]:
    found = {name: str(options[name]) for name in ("sslmode", "sslrootcert", "sslcert") if options.get(name)}
    if found.get("sslmode") == "require" and "sslrootcert" in found:
        found["sslmode"] = "verify-ca"
    if key := options.get("sslkey"):
        found["sslkey"] = _readable_key(Path(str(key)))
    return found


def _readable_key(key: Path) -> str:
    """The key itself, or the one in DER beside it."""
    if key.suffix in PKCS12 or not key.read_bytes().startswith(PEM):
        return str(key)
    converted = key.with_name(key.name + DER)
    if converted.exists():
        return str(converted)
    raise KeyUnreadable(KEY_UNREADABLE(key=str(key), converted=str(converted)))
