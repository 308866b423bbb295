"""The last lines of `./ma up`: where to go, as whom, and what to do next."""

import re
from dataclasses import dataclass, field

from deploy.config import Config

ADMINISTRATOR = re.compile(r"administrator: (?P<user>\S+)  password: (?P<password>\S+)")


@dataclass(frozen=True)
class Account:
    """`password` empty: it is not the one that was made here any more, or nobody here ever knew it."""

    user: str
    password: str = field(default="", repr=False)


def account_in(said: str) -> Account:
    """What `create_demo` printed."""
    found = ADMINISTRATOR.search(said)
    return Account(found["user"], found["password"]) if found else Account("admin")


def block(config: Config, administrator: Account | None) -> str:
    """Without a demo there is no administrator that anybody here knows of."""
    return "\n".join(
        (
            "",
            "MA is ready.",
            "",
            *(f"  {name + ':':<9} {text}" for name, text in _lines(config, administrator)),
        )
    )


def _lines(config: Config, administrator: Account | None) -> list[tuple[str, str]]:
    lines = [("address", config.address)]
    if administrator is None:
        lines.append(("user", "yours; ./ma manage createsuperuser makes an administrator"))
        following = "write an agent (docs/agents.md) and name its module in KMA_AGENTS"
    else:
        lines.append(("user", administrator.user))
        change = f"./ma manage changepassword {administrator.user}"
        if administrator.password:
            lines.append(("password", f"{administrator.password}  (made here; change it: {change})"))
        else:
            lines.append(("password", f"the one that you chose; forgotten: {change}"))
        following = "open Dead letters: the demo fails on purpose; read why, then replay"
    lines.append(("next", following))
    lines.append(("check", "./ma doctor; ./ma status; ./ma logs NAME; ./ma down stops everything"))
    lines.append(("docs", "README.md; docs/operations.md; docs/agents.md"))
    return lines
