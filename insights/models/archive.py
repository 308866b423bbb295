"""Blocks of the archive: what is to be written of which range, and how far that is."""

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from insights.models.pipeline_run import PipelineRun


class BlockState(models.TextChoices):
    PLANNED = "planned", _("planned")
    WRITTEN = "written", _("written")
    VERIFIED = "verified", _("verified")
    DAMAGED = "damaged", _("damaged")
    REPLACED = "replaced", _("replaced")


class ArchiveBlock(models.Model):
    """A half-open range of receipt of one kind, within a day (UTC) unless nothing was received in it, planned
    before it is read. Blocks that are neither `late_of` another one nor made of others follow each other
    without a gap.

    `settled_at`: verified, and looked at again when nothing could be committed any more: all that was
    received in the range is in the archive. `splits`: where partitions of the reader meet. `late_of`: number
    of the block in whose range this one holds what was committed later. `replaces`: numbers that readers read
    no longer once this one is written; `compacts`: it is made of them, `erases`: it is one of them without
    what was personal, else it is read from the database anew."""

    kind = models.CharField(_("kind"), max_length=20)
    number = models.PositiveIntegerField(_("number"))
    day = models.DateField(_("day"))
    first = models.DateTimeField(_("received since"))
    last = models.DateTimeField(_("received before"))
    splits = models.JSONField(default=list, editable=False)
    state = models.CharField(
        _("state"), max_length=10, choices=BlockState.choices, default=BlockState.PLANNED
    )
    late_of = models.PositiveIntegerField(_("extends block"), null=True)
    replaces = models.JSONField(_("replaces"), default=list)
    compacts = models.BooleanField(default=False, editable=False)
    erases = models.BooleanField(default=False, editable=False)
    rows = models.BigIntegerField(_("rows"), null=True)
    bytes = models.BigIntegerField(_("bytes"), null=True)
    problem = models.TextField(_("problem"), blank=True, default="")
    planned_at = models.DateTimeField(_("planned"), default=timezone.now)
    written_at = models.DateTimeField(_("written"), null=True)
    verified_at = models.DateTimeField(_("verified"), null=True)
    settled_at = models.DateTimeField(_("finalized"), null=True)
    computed_in = models.ForeignKey(
        PipelineRun, models.SET_NULL, null=True, related_name="blocks", verbose_name=_("pipeline run")
    )
    computed = models.BooleanField(_("computed"), default=False)
    # A person wants it compared with the database, and its files read, once more.
    check_asked = models.BooleanField(default=False, editable=False)

    class Meta:
        verbose_name = _("archive block")
        verbose_name_plural = _("archive blocks")
        ordering = ("kind", "number")
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["kind", "number"], name="archive_block_once")]
        indexes = [
            models.Index(fields=["kind", "last"], name="archive_blocks_by_end"),
            models.Index(
                fields=["kind", "first"], condition=models.Q(settled_at=None), name="archive_unsettled"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.number}"


class Recomputation(models.Model):
    """Somebody wants the next run to compute everything once more."""

    why = models.CharField(max_length=200)
    asked_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = _("recomputation request")
        verbose_name_plural = _("recomputation requests")
        default_permissions = ()

    def __str__(self) -> str:
        return self.why


# Those that follow each other without a gap.
IN_LINE = models.Q(late_of=None, compacts=False, replaces=[])
