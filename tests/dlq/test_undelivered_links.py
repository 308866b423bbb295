"""A message that the broker cannot deliver is one dead letter, whatever ends and begins again: on real processes."""

from pathlib import Path

from broker.wanted import UNREADABLE
from tests.dlq.processes import Processes
from tests.dlq.stage import Stage
from tests.dlq.undeliverable import attach, feed_process, in_queue, send_undeliverable, until, walk

IMPORT = "from dlq.models import DeadLetter"


def test_one_letter_stays_however_often_links_walks_and_the_feed_begin_again(stage: Stage, tmp_path: Path) -> None:
    processes, key = Processes(tmp_path, stage), stage.key()
    unreadable = int(stage.management.attribute(f"queue.{UNREADABLE}", "MessagesAdded"))
    send_undeliverable(stage, key)
    for copies in (1, 2, 2):
        consumer = attach(stage, key)
        until(stage, f"DLQ.{key}", copies)
        walk(stage, key)
        processes.follow_feed()
        assert processes.letters(key) == 1
        assert len(in_queue(stage, f"DLQ.{key}")) == 1
        walk(stage, key)
        consumer.stop()
        until(stage, key, 1)  # the broker gives it back
    with feed_process(processes):
        until(stage, key, 0)  # for good: nobody was there to take it
    attach(stage, key).stop()
    assert (in_queue(stage, key), len(in_queue(stage, f"DLQ.{key}"))) == ([], 1)
    assert int(stage.management.attribute(f"queue.{UNREADABLE}", "MessagesAdded")) == unreadable
    assert "AP8=" in processes.python(f"{IMPORT}; print(DeadLetter.objects.get(setting_key='{key}').body_text)")
