from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ConsoleConfig(AppConfig):
    name = "console"
    verbose_name = _("Console")

    def ready(self) -> None:
        from django.db.models import Field

        from console.database.bulk import Among
        from console.database.texts import register_has_part

        Field.register_lookup(Among)
        register_has_part()
