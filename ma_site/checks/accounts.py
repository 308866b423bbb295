"""The accounts of KMAs and publishers sign in, and may not manage the broker."""

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from django.conf import settings

from broker.errors import AccessRefused, BrokerError
from broker.port import Account
from broker.stomp_adapter import StompManagement
from ma_site.checks.finding import Finding, bad, good, register

# Where ./ma keeps the passwords of this machine's installation.
FILES = {"kma": "broker_kma", "publisher": "broker_publisher"}
NOT_SIGNED_IN = "AMQ229031"


@register("broker accounts", 50)
def check(now: datetime) -> Iterator[Finding]:
    for user, name in FILES.items():
        path = Path(settings.MA_DATA) / "secrets" / name
        if path.is_file():
            yield _check(
                Account(settings.MA_BROKER_STOMP.url, user, path.read_text(encoding="utf-8").strip())
            )
        else:
            yield good(f"{user}: its password is not on this machine, so it is not tried")


def _check(account: Account) -> Finding:
    trying = StompManagement(account, f"MA.reply.doctor-{os.getpid()}", timeout=5.0)
    try:
        trying.attribute("broker", "Version")
    except AccessRefused as error:
        if NOT_SIGNED_IN in str(error):
            return bad(
                f"{account.user}: cannot sign in", "./ma down; ./ma up writes the broker's accounts anew."
            )
        return good(f"{account.user}: signs in and may not manage")
    except BrokerError as error:
        return bad(f"{account.user}: {error}", "./ma logs artemis")
    finally:
        trying.close()
    return bad(
        f"{account.user}: may manage the broker, which only the operations account should",
        "docs/operations.md",
    )
