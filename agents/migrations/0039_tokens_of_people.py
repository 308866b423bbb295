"""Tokens of people go to the console, whose migration of the same rows goes on from here."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("agents", "0038_reports_as_codes")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.AlterModelTable("apitoken", "console_apitoken")],
            state_operations=[migrations.DeleteModel("ApiToken")],
        ),
    ]
