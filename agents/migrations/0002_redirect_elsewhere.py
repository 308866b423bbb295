"""A right in a pool of its own: redirecting dead letters to a setting of another destination."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='poolgrant',
            name='may_redirect_elsewhere',
            field=models.BooleanField(default=False, verbose_name='redirect to another destination'),
        ),
    ]
