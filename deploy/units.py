"""`ma install-units`: services of systemd for each role, with users of their own and as few rights as they
need. What they were checked for is in docs/how-to/systemd.md."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy.console import DeployError, say_if_heard

# Seconds. A silent process is started anew; a start of the site may migrate nothing, but loads all of it.
WATCHDOG, START = 120, 180
# A secret of the environment, the file under /etc/ma/secrets that holds it.
SECRETS = {
    "MA_SECRET_KEY": "secret_key",
    "MA_DATABASE_URL": "database_url",
    "MA_REDIS_URL": "redis_url",
    "MA_BROKER_PASSWORD": "broker_password",
}
KMA_SECRETS = {"KMA_TOKEN": "token", "KMA_AMQP_URL": "amqp_url"}
HARDENING = """\
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
ProtectProc=invisible
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
CapabilityBoundingSet=
AmbientCapabilities=
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources @mount
UMask=0077
"""
UNIT = """\
[Unit]
Description={description}
Documentation=file:///usr/share/doc/ma/index.html
Wants=network-online.target
After=network-online.target{after}

[Service]
Type=notify
NotifyAccess=all
User={user}
Group={user}
ExecStart={program}
EnvironmentFile={environment}
{credentials}
StateDirectory={state}
StateDirectoryMode=0700
WorkingDirectory=/var/lib/{state}
WatchdogSec={watchdog}
TimeoutStartSec={start}
TimeoutStopSec={stop}
Restart=always
RestartSec=2
LimitNOFILE=65536
{hardening}
[Install]
WantedBy=multi-user.target
"""


@dataclass(frozen=True)
class Role:
    unit: str
    description: str
    program: str
    stop: int = 60


SITE = {
    "web": Role("ma-web.service", "MA, web pages and REST", "/opt/ma/bin/ma web"),
    "worker": Role("ma-worker.service", "MA, worker", "/opt/ma/bin/ma worker"),
    "beat": Role("ma-beat.service", "MA, scheduler", "/opt/ma/bin/ma beat"),
    "feed": Role("ma-feed.service", "MA, index of dead letters", "/opt/ma/bin/ma feed"),
}
# It gives back what it holds, and its agents end what they began.
KMA = Role("kma@.service", "KMA %i", "/opt/kma/bin/kma", stop=180)
ROLES = (*SITE, "kma")


def install(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="ma install-units", description=__doc__)
    parser.add_argument("--prefix", type=Path, default=Path("/"), help="write below this folder")
    parser.add_argument("--role", choices=ROLES, action="append", help="only this one; may be repeated")
    chosen = parser.parse_args(arguments)
    for path, text in files(chosen.role or ROLES).items():
        target = chosen.prefix / path.relative_to("/")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, "utf-8")
        except OSError as error:
            raise DeployError(
                f"{target}: {error.strerror}. Run it as root, or write elsewhere with --prefix"
            ) from error
        say_if_heard(str(target))
    say_if_heard("next: systemd-sysusers, then systemctl daemon-reload (docs/how-to/systemd.md)")
    return 0


def files(roles: Sequence[str]) -> dict[Path, str]:
    """By where they belong on a host."""
    found = {
        Path("/etc/systemd/system") / role.unit: site_unit(role)
        for name, role in SITE.items()
        if name in roles
    }
    users = ['u ma - "MA" /var/lib/ma'] if found else []
    if "kma" in roles:
        found[Path("/etc/systemd/system") / KMA.unit] = kma_unit()
        users.append('u kma - "KMA" /var/lib/kma')
    found[Path("/usr/lib/sysusers.d/ma.conf")] = "\n".join(users) + "\n"
    return found


def site_unit(role: Role) -> str:
    return _unit(role, "ma", "/etc/ma/ma.env", "ma", SECRETS, "/etc/ma/secrets", "MA_DATA=/var/lib/ma")


def kma_unit() -> str:
    return _unit(
        KMA, "kma", "/etc/ma/kma-%i.env", "kma/%i", KMA_SECRETS, "/etc/ma/secrets/kma-%i", "KMA_SERVER=%i"
    )


def _unit(
    role: Role, user: str, environment: str, state: str, secrets: dict[str, str], folder: str, more: str
) -> str:
    """A secret is a credential: a file that only this service sees, and only while it runs."""
    credentials = [f"LoadCredential={name}:{folder}/{name}" for name in secrets.values()]
    credentials += [f"Environment={variable}_FILE=%d/{name}" for variable, name in secrets.items()]
    return UNIT.format(
        description=role.description,
        after=" ma-web.service" if role.unit != "ma-web.service" and user == "ma" else "",
        user=user,
        program=role.program,
        environment=f"-{environment}",
        credentials="\n".join([*credentials, f"Environment={more}"]),
        state=state,
        watchdog=WATCHDOG,
        start=START,
        stop=role.stop,
        hardening=HARDENING,
    )
