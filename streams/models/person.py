"""What is kept of people beside Django's own user: logins that are open, one-time passwords, failed attempts."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone


class Login(models.Model):
    """A browser that a person has logged in with; ``session_key`` is that of Django's session."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="logins")
    session_key = models.CharField(max_length=40, unique=True)
    address = models.CharField(max_length=64, blank=True, default="")
    agent = models.CharField(max_length=200, blank=True, default="")
    opened_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering: ClassVar = ["-opened_at", "-id"]

    def __str__(self) -> str:
        return f"{self.user} from {self.address}"


class OneTimePassword(models.Model):
    """Stands while a person's password is one that somebody else has seen: it opens nothing but its own change."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"one-time password of {self.user}"

    @property
    def is_expired(self) -> bool:
        return self.expires_at <= timezone.now()


class FailedLogins(models.Model):
    """Attempts to log in that were not followed by a success.

    Attributes:
        subject: what they are counted for: a digest of an account and an address, or of an address.
        blocked_until: until when no further attempt is looked at.
    """

    subject = models.CharField(max_length=64, primary_key=True)
    failures = models.PositiveIntegerField(default=0)
    last_at = models.DateTimeField(db_index=True)
    blocked_until = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.failures} failed logins"
