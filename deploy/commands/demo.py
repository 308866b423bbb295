"""./ma demo: offers the demo's agents, makes its settings and publishes its orders; --stop ends the
publishing."""

from deploy import closing, installation, start
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
        say("demo stopped: no more orders; its agents are offered until ./ma down, ./ma up --no-demo")
        return 0
    starting = Start(config, layout, installation.processes(config), say)
    starting.offer_demo_agents()
    administrator = start.prepare_demo(config, layout)
    starting.publish_demo()
    say(start.offered_agents(config, demo=True))
    say(closing.block(config, administrator))
    return 0
