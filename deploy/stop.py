"""Ends everything in order: first those who take messages, the broker last."""

from concurrent.futures import ThreadPoolExecutor

from deploy import leftovers
from deploy.installation import Say
from deploy.layout import Layout
from deploy.runner import Runner

# The KMAs give back what they hold and report it: for that site and broker must still be there.
ORDER = ("kma", "demo", "feed", "beat", "worker", "web", "redis", "artemis")


def stop_everything(layout: Layout, say: Say) -> bool:
    """Whether anything ran."""
    runner = Runner(layout)
    ran = runner.alive()
    if ran:
        for names in in_order([state.name for state in runner.states() if state.state != "STOPPED"]):
            with ThreadPoolExecutor(max_workers=len(names)) as pool:
                list(pool.map(runner.stop, names))
            say(f"{', '.join(names)} stopped")
        runner.end()
    left = leftovers.end(layout)
    if left and not ran:
        say(f"{left} processes were left behind by a runner that was killed: ended")
    return ran or left > 0


def in_order(names: list[str]) -> list[list[str]]:
    """Groups to stop one after the other, each at once."""
    groups = [[name for name in names if name == kind or name.startswith(f"{kind}-")] for kind in ORDER]
    unknown = [name for name in names if not any(name in group for group in groups)]
    return [group for group in (unknown, *groups) if group]
