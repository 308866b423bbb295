from django.db import migrations, models
from django.db.models import OuterRef, Subquery, Value
from django.db.models.functions import Coalesce, Substr


def copy_texts(apps, schema_editor):
    """Of what is dead now, as far as its protocol is still there."""
    letters = apps.get_model("dlq", "DeadLetter").objects
    protocols = apps.get_model("failures", "FailureProtocol").objects
    last = protocols.filter(
        message_key=OuterRef("message_key"), setting_key=OuterRef("setting_key"), occurred_at=OuterRef("protocol_at")
    )
    text = Subquery(last.order_by().values(head=Substr("exception_text", 1, 2000))[:1])
    explained = letters.filter(state="dead", protocol_at__isnull=False).exclude(message_key="")
    explained.update(exception_text=Coalesce(text, Value(""), output_field=models.TextField()))


class Migration(migrations.Migration):
    dependencies = [("dlq", "0012_right_to_erase"), ("failures", "0006_retention")]

    operations = [
        migrations.AddField(
            "deadletter", "exception_text", models.TextField(blank=True, default="", verbose_name="text")
        ),
        migrations.RunPython(copy_texts, migrations.RunPython.noop),
    ]
