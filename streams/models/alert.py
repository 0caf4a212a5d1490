"""Alerts: the rules that people made, what fired, and what is on its way to whom."""

from datetime import timedelta
from typing import ClassVar

from django.db import models
from django.utils import timezone

from streams.alarms import EVERY_S
from streams.findings import Finding, found
from streams.models.workspace import Workspace

OLD_AFTER = timedelta(seconds=3 * EVERY_S)
"""A figure that was not evaluated for so long says as of when it is."""


class AlertRule(models.Model):
    """What shall be told to whom.

    Attributes:
        stream, group: names, or patterns with ``*``; an empty group is any.
        watch: as ``streams.alarms.Watch``.
        statuses: for ``status``, the verdicts that are bad.
        limit, clear: as ``streams.alarms.Limit``; for ``status`` they are not used.
        muted_until: until then nobody is told; ``mute_reason`` says why.
        webhook_secret: signs what is sent; shown once.
        webhook_format: as ``streams.services.webhook_formats``.
        most_messages, most_minutes: so many messages to each receiver in so many minutes, the rest together; None: no
            bound.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="alert_rules")
    name = models.CharField(max_length=50)
    stream = models.CharField(max_length=200)
    group = models.CharField(max_length=200, blank=True, default="")
    watch = models.CharField(max_length=20)
    statuses = models.JSONField(default=list)
    limit = models.FloatField(null=True)
    clear = models.FloatField(null=True)
    for_seconds = models.PositiveIntegerField(default=60)
    muted_until = models.DateTimeField(null=True)
    mute_reason = models.CharField(max_length=200, blank=True, default="")
    webhook_url = models.CharField(max_length=2000, blank=True, default="")
    webhook_secret = models.CharField(max_length=100, blank=True, default="")
    webhook_format = models.CharField(max_length=10, default="okmq", db_default="okmq")
    email = models.EmailField(blank=True, default="")
    most_messages = models.PositiveIntegerField(null=True)
    most_minutes = models.PositiveIntegerField(default=10, db_default=10)
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "name"], name="alert_rule_name_once_a_workspace"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_muted(self) -> bool:
        """Whether nobody is told at this moment."""
        return self.muted_until is not None and self.muted_until > timezone.now()

    @property
    def channels(self) -> list[str]:
        """Through what it tells, as ``Notification.channel``."""
        return [name for name, to in (("webhook", self.webhook_url), ("email", self.email)) if to]


class Alert(models.Model):
    """One time that a rule fired for one stream or group; it fires while it has no end.

    Attributes:
        value, sentence: when it began, the sentence in the language of the worker.
        began_with: the same as ``streams.findings.kept``; empty where a worker of the version before began it.
        newest, newest_at: the newest evaluated figures that were known, and when.
    """

    rule = models.ForeignKey(AlertRule, on_delete=models.CASCADE, related_name="alerts")
    stream = models.CharField(max_length=50)
    group = models.CharField(max_length=50, blank=True, default="")
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    value = models.FloatField()
    sentence = models.TextField()
    began_with = models.TextField(default="", db_default="")
    newest = models.TextField(default="", db_default="")
    newest_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["-began_at", "-id"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["rule", "stream", "group"],
                condition=models.Q(ended_at__isnull=True),
                name="alert_fires_once_a_subject",
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["rule", "-began_at"], name="alert_by_rule")]

    def __str__(self) -> str:
        return self.sentence

    @property
    def first(self) -> Finding | None:
        """What was found when it began; None where only the sentence is known."""
        return found(self.began_with)

    @property
    def last(self) -> Finding | None:
        """What was found last; None where it was not evaluated since a worker of the version before began it."""
        return found(self.newest)

    @property
    def began_words(self) -> str:
        """What it said when it began, in the language that is active."""
        return self.first.words() if self.first else self.sentence

    @property
    def newest_words(self) -> str:
        """What it says by the newest figures, or by those of its beginning where there are no others."""
        return self.last.words() if self.last else self.began_words

    @property
    def began_figure(self) -> str:
        """The figure of its beginning where the newest is another: ``lag 4,100``."""
        if self.first is None or self.last is None or self.first.figure() == self.last.figure():
            return ""
        return self.first.figure()

    @property
    def is_newest_old(self) -> bool:
        """Whether the newest figures are of a time that has to be said."""
        return self.newest_at is not None and timezone.now() - self.newest_at > OLD_AFTER


class Notification(models.Model):
    """One message to one receiver, kept until it was taken or given up.

    Attributes:
        channel: ``webhook`` or ``email``.
        body: what is sent, as JSON text.
        tried_at: when it was tried last, ``error`` says what went wrong then.
        due_at: when it is tried next; None when it is done, ``delivered_at`` says whether well.
        told_with: the first of those that are told in one message; how it is tried is how all of them are.
    """

    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="notifications")
    channel = models.CharField(max_length=10)
    body = models.TextField()
    attempts = models.PositiveIntegerField(default=0)
    tried_at = models.DateTimeField(null=True)
    due_at = models.DateTimeField(null=True, db_index=True)
    delivered_at = models.DateTimeField(null=True)
    error = models.CharField(max_length=500, blank=True, default="")
    told_with = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, related_name="others")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["id"]

    def __str__(self) -> str:
        return f"{self.channel} {self.pk}"
