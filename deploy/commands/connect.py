"""./ma env: what a script needs to connect. It is made from files that only their owner can read."""

import json
import shlex
from typing import Any

from deploy import environment, secret_files
from deploy.config import LOOPBACK, Config
from deploy.console import say
from deploy.layout import Layout


def run(config: Config, *, as_json: bool) -> int:
    layout = Layout(config.data)
    facts = gather(config, layout)
    if as_json:
        say(json.dumps(facts, indent=2))
    else:
        # For `eval "$(./ma env)"`: the site's environment, secrets as names of files.
        for name, value in facts["environ"].items():
            say(f"export {name}={shlex.quote(value)}")
    return 0


def gather(config: Config, layout: Layout) -> dict[str, Any]:
    passwords = secret_files.broker_passwords(layout)
    return {
        "url": config.address,
        "api": f"{config.address}api/v1/",
        "data": str(layout.data),
        "logs": str(layout.logs),
        "broker": {
            "amqp": f"amqp://{LOOPBACK}:{config.amqp_port}",
            "stomp": f"{LOOPBACK}:{config.stomp_port}",
            "core": f"tcp://{LOOPBACK}:{config.core_port}",
            "accounts": {user: {"user": user, "password": password} for user, password in passwords.items()},
        },
        "redis": secret_files.read(layout.secrets / "redis_url"),
        "database": environment.database_url(config, layout),
        "servers": {
            server: {"token_file": str(secret_files.token_file(layout, server))} for server in config.servers
        },
        "environ": environment.site(config, layout) | environment.publisher(layout),
    }
