from django.db import migrations


class Migration(migrations.Migration):
    """The table goes to the app console, whose first migration has its model."""

    dependencies = [
        ("dlq", "0023_problem_columns"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.AlterModelTable("AuditEntry", "console_auditentry")],
            state_operations=[migrations.DeleteModel("AuditEntry")],
        ),
    ]
