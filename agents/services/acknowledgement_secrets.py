"""The secret of a run, with which its server makes acknowledgement ids.

Derived from the site's key, so it stands in no row: whoever reads the database cannot make an id.
"""

from django.utils.crypto import salted_hmac

from agents.models import Run, Server


def secret_of(run: Run, server: Server) -> str:
    """Hexadecimal, 32 bytes."""
    named = f"{run.activation_id.hex} {run.epoch} {server.name}"
    return salted_hmac("agents.acknowledgement", named, algorithm="sha256").hexdigest()
