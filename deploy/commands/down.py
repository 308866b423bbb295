"""./ma down: everything ends, in order."""

from deploy import stop
from deploy.config import Config
from deploy.console import say_if_heard as say
from deploy.layout import Layout


def run(config: Config) -> int:
    say("down" if stop.stop_everything(Layout(config.data), say) else "nothing is running")
    return 0
