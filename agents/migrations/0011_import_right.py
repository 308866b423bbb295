from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0010_letter_rights"),
    ]

    operations = [
        migrations.AddField(
            model_name="poolgrant",
            name="may_import_letters",
            field=models.BooleanField(default=False, verbose_name="import messages"),
        ),
    ]
