"""./ma demo: makes the demo's settings and publishes its orders; --stop ends the publishing."""

from deploy import installation, start
from deploy.config import Config
from deploy.console import say
from deploy.layout import Layout
from deploy.problem import Problem
from deploy.runner import Runner
from deploy.start import Start


def run(config: Config, *, stop: bool) -> int:
    layout = Layout(config.data)
    runner = Runner(layout)
    if not runner.alive():
        raise Problem("nothing is running: ./ma up")
    if stop:
        runner.stop("demo")
        say("demo stopped")
        return 0
    start.prepare_demo(config, layout, say)
    Start(config, layout, installation.processes(config), say).publish_demo()
    return 0
