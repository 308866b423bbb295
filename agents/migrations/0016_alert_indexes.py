from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0015_cleared_activations'),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='alert',
            name='alerts_open',
        ),
        migrations.AddIndex(
            model_name='alert',
            index=models.Index(fields=['state', 'severity', 'opened_at'], name='alerts_by_state'),
        ),
        migrations.AddIndex(
            model_name='alert',
            index=models.Index(fields=['kind', 'state'], name='alerts_of_kind_by_state'),
        ),
    ]
