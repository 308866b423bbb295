from django.db import migrations, models

from dlq.search.matching import create, drop


class Migration(migrations.Migration):
    dependencies = [("agents", "0010_letter_rights"), ("dlq", "0003_console")]

    operations = [
        migrations.AddField(
            model_name="deadletter",
            name="words_without",
            field=models.CharField(blank=True, default="", editable=False, max_length=16),
        ),
        migrations.AddIndex(
            model_name="deadletter",
            index=models.Index(fields=["queue", "state", "delivery_count"], name="letters_by_attempts"),
        ),
        migrations.AddIndex(
            model_name="deadletter",
            index=models.Index(fields=["queue", "state", "chapter"], name="letters_by_chapter"),
        ),
        migrations.AddIndex(
            model_name="deadletter",
            index=models.Index(condition=models.Q(words_without=""), fields=["id"], name="letters_without_words"),
        ),
        # Letters that are there get their words from beat, in bounded pieces (dlq.search.storing.catch_up).
        migrations.RunPython(create, drop),
    ]
