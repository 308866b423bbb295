"""Saved filters are of every list now, in the app `console`, which has taken the rows."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("failures", "0020_returned_by_version"),
        ("console", "0005_saved_filters_of_protocols"),
    ]

    operations = [migrations.DeleteModel("SavedView")]
