"""From dead letters to a file and back as new messages, on the real broker; and an import that is really
killed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from broker.amqp.codec import decode
from broker.amqp.publisher import AmqpPublisher
from broker.port import BodyKind, Message, Settle
from console.operations.operation import perform
from contract.typed import Typed
from dlq import exports
from dlq.dead_letters.masks import masks_for
from dlq.imports.operations import ImportMessages, plan
from dlq.imports.rules import parcel_of
from dlq.models import DeadLetter
from kma.delivery.message_identity import identify
from tests.dlq.processes import Processes
from tests.dlq.stage import Stage
from tests.dlq.test_edit_copies import ORDER
from tests.web import reports

pytestmark = pytest.mark.django_db

BYTES = Message(
    body=Typed("binary", b"\0\xff"), body_kind=BodyKind.DATA, message_id=Typed("string", "M-bytes")
)
IMPORT = """
from django.contrib.auth.models import User
from django.core.management import call_command
from agents.models import Destination, LaunchSetting, Pool
if not LaunchSetting.objects.exists():
    User.objects.create_superuser("chief")
    pool, destination = Pool.objects.create(name="p"), Destination.objects.create(name="t.{key}")
    LaunchSetting.objects.create(key="{key}", agent="a", pool=pool, destination=destination)
call_command("dlq", "import", "{file}", "--setting", "{key}", "--as", "chief", "--send")
"""


def test_letters_come_back_from_their_file_as_new_messages_of_one_setting(stage: Stage) -> None:
    key, other = stage.key("i"), stage.key("o")
    stage.add(f"{other}-x", f"t.{key}")
    person = reports.person(
        f"tester-{key}", "dlq.view_deadletter", "dlq.can_see_masked", "dlq.import_letters"
    )
    order = replace(ORDER, message_id=Typed("string", "M-order"))
    stage.publish(f"t.{key}", order, BYTES)
    stage.management.call(f"queue.{other}-x", "removeAllMessages")
    rows = DeadLetter.objects.filter(queue=f"DLQ.{key}")
    stage.consume(key, 2, Settle.REJECT)
    stage.follow(lambda: rows.count() == 2)
    lines = exports.lines(exports.rows(exports.of_rows(rows), masks_for(person), bodies=True), "jsonl")
    parcel = parcel_of("".join(lines).encode())
    publisher = AmqpPublisher(stage.account("ops", "amqp"))
    try:
        setting = reports.setting(key)
        how: dict[str, Any] = {"wanted": plan(setting, parcel), "publisher": publisher}
        perform(ImportMessages, setting, person, **how)
        # The same file once more, as after a kill that left no trace: the broker has these already.
        perform(ImportMessages, setting, person, **how)
    finally:
        publisher.close()
    assert (stage.count(key), stage.count(f"{other}-x"), stage.count(f"DLQ.{key}")) == (2, 0, 2)
    encoded = stage.consume(key, 2, Settle.ACCEPT)
    made = {decode(each).body.type: decode(each) for each in encoded}
    back = made["string"]
    kept = {name: item for name, item in back.properties.items() if not name.startswith("_AMQ_")}
    assert (kept, back.body) == (ORDER.properties, ORDER.body)
    assert (back.correlation_id, back.reply_to, back.priority, back.subject, back.content_type) == (
        ORDER.correlation_id, ORDER.reply_to, ORDER.priority, ORDER.subject, ORDER.content_type,
    )  # fmt: skip
    assert (made["binary"].body, made["binary"].body_kind) == (BYTES.body, BYTES.body_kind)
    cases = {identify(each).key.text for each in encoded}
    assert len(cases) == 2 and not cases & {"M-order", "M-bytes"}, "they are no messages of the old cases"
    assert not any(identify(each).replayed for each in encoded)


@pytest.mark.kill
def test_an_import_that_was_killed_is_ended_by_the_same_one(stage: Stage, tmp_path: Path) -> None:
    processes, key = Processes(tmp_path, stage), stage.key("i")
    file = tmp_path / "messages.jsonl"
    file.write_text("".join(f'{{"body": {{"text": "{n}"}}}}\n' for n in range(150)), "utf-8")
    code = IMPORT.format(key=key, file=file)
    processes.crashes("import-portion", "shell", "-c", code)
    assert stage.count(key) == 100
    assert "messages: 150" in processes.python(code)
    assert stage.count(key) == 150
    bodies = sorted(int(decode(each).body.value) for each in stage.consume(key, 150, Settle.ACCEPT))
    assert bodies == list(range(150))
