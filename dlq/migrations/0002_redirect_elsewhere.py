"""A permission of its own: redirecting dead letters to a setting of another destination."""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('dlq', '0001_initial'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='deadletter',
            options={
                'default_permissions': ('view',),
                'ordering': ('-id',),
                'permissions': [('give_back', 'Can give dead letters back to their setting'), ('can_see_masked', 'Can see masked properties of dead letters'), ('edit_letters', 'Can edit dead letters and give them back'), ('redirect', 'Can redirect dead letters to another setting'), ('redirect_elsewhere', 'Can redirect dead letters to a setting of another destination'), ('discard', 'Can discard dead letters'), ('approve', 'Can approve what another person asks for'), ('manage_foreign', 'Can manage foreign dead-letter queues'), ('handle_waiting', 'Can handle waiting messages'), ('import_letters', 'Can send imported messages to a setting')],
                'verbose_name': 'dead letter',
                'verbose_name_plural': 'dead letters',
            },
        ),
    ]
