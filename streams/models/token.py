"""Tokens: who may call the API, for what. Only a digest of the secret is kept."""

from typing import ClassVar

from django.db import models
from django.utils import timezone

from streams.models.workspace import Workspace


class Scope(models.TextChoices):
    """``admin`` implies the rest, ``read`` implies ``observe`` (see the API's tokens)."""

    OBSERVE = "observe"
    READ = "read"
    PUBLISH = "publish"
    CONSUME = "consume"
    MANAGE = "manage"
    ERASE = "erase"
    ADMIN = "admin"


class Token(models.Model):
    """A bearer token. ``streams`` narrows it to name patterns with ``*``; empty is every stream."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=12)
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    streams = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["id"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @property
    def is_expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= timezone.now()
