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
                'permissions': [('give_back', 'Can replay dead letters'), ('can_see_masked', 'Can see masked properties of dead letters'), ('edit_letters', 'Can edit and replay dead letters'), ('redirect', 'Can redirect dead letters to another setting'), ('redirect_elsewhere', 'Can redirect dead letters to settings with another destination'), ('discard', 'Can discard dead letters'), ('approve', 'Can approve requests of other users'), ('manage_foreign', 'Can manage other dead-letter queues'), ('handle_waiting', 'Can manage waiting messages'), ('import_letters', 'Can send imported messages to a setting')],
                'verbose_name': 'dead-lettered message',
                'verbose_name_plural': 'dead letters',
            },
        ),
    ]
