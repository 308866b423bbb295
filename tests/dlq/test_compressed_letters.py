"""Dead letters of messages that a Core client compressed, on a real broker and with a real feed."""

from pathlib import Path

from broker.port import Settle
from tests.broker.jms import jms_producer
from tests.dlq.processes import Processes
from tests.dlq.stage import Stage

FIELDS = "list(DeadLetter.objects.filter(setting_key='{key}').values_list('size', 'truncated'))"


def test_a_compressed_body_is_kept_as_its_sender_wrote_it(stage: Stage, tmp_path: Path) -> None:
    processes, key = Processes(tmp_path, stage), stage.key()
    content = ("--message-size", "700000")
    jms_producer.send_by_command(stage.service, "CORE", f"t.{key}", *content, query=jms_producer.COMPRESSING)
    [head] = stage.consume(key, 1, Settle.REJECT)
    assert len(head) < 700_000
    stage.until_dead(f"DLQ.{key}", 1)
    processes.follow_feed()
    found = processes.python(f"from dlq.models import DeadLetter; print({FIELDS.format(key=key)})")
    assert found.splitlines()[-1] == "[(700000, False)]"
