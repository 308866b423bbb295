"""How often somebody failed to sign in, by address and by address and account; nobody else reads it."""

from django.db import models
from django.utils import timezone


class SignInCounter(models.Model):
    """`key` is `address:A`, `account:H` or `pair:A:H`, where H is a hash: what a stranger types is not
    kept."""

    key = models.CharField(max_length=100, unique=True)
    failures = models.PositiveIntegerField(default=0)
    last_at = models.DateTimeField(default=timezone.now, db_index=True)
    blocked_until = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.key
