"""Saved filters are of every list now, in the app `console`: the rows stay, their table gets another name."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("dlq", "0024_audit_to_console"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.AlterModelTable("SavedFilter", "console_savedfilter")],
            state_operations=[migrations.DeleteModel("SavedFilter")],
        ),
    ]
