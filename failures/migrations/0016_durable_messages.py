from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('failures', '0015_disposition'),
    ]

    operations = [
        migrations.AddField(
            model_name='failureprotocol',
            name='durable',
            field=models.BooleanField(db_default=True, default=True, verbose_name='durable'),
        ),
    ]
