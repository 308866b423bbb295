from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class InsightsConfig(AppConfig):
    name = "insights"
    verbose_name = _("Insights")

    def ready(self) -> None:
        from failures import erasing
        from failures.retention import keepers
        from insights import (
            audit_codes,  # noqa: F401 - words of what entries hold
        )
        from insights.archive import erasing as in_archive
        from insights.archive import kinds, statements

        statements.register_kinds()
        erasing.register_archive(in_archive.erase)
        erasing.register_remembering(in_archive.remember)
        keepers.register("archive", kinds.not_archived, kinds.protocols_archived_before)
        keepers.register_safe(kinds.archived_before)
