"""Workspaces, and who may do what in them."""

from dataclasses import dataclass
from typing import ClassVar

from django.conf import settings
from django.db import models

DEFAULT_WORKSPACE = "default"
DAY_S = 86_400
GIB = 2**30


class Plan(models.TextChoices):
    """What a workspace's streams may keep (npayload's tiers; ``unlimited`` is the self-hosted default)."""

    FREE = "free"
    PRO = "pro"
    ENTERPRISE = "enterprise"
    UNLIMITED = "unlimited"


@dataclass(frozen=True, slots=True)
class Bound:
    """What a limit of a stream is when nothing is said, and at most; None is no bound. ``unit``: the most in words."""

    default: int | None
    most: int | None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Cap:
    """What a plan's streams may keep: each one's messages for so many seconds, each one at most so many bytes.

    Bytes are bounded stream by stream, by the ``max_bytes`` that retention holds exactly, so that a publish costs
    nothing more; ``default_ttl`` is what a stream gets that names no ``ttl``.
    """

    default_ttl: int | None
    longest_ttl: int | None
    largest_bytes: int | None

    @property
    def bounds(self) -> dict[str, Bound]:
        """The bound of each limit that a plan bounds, by the stream's field."""
        return {
            "ttl": Bound(self.default_ttl, self.longest_ttl, f"messages for {self.longest_ttl} seconds"),
            "max_bytes": Bound(
                self.largest_bytes, self.largest_bytes, f"{self.largest_bytes} bytes a stream"
            ),
        }


CAPS: dict[str, Cap] = {
    Plan.FREE: Cap(1 * DAY_S, 7 * DAY_S, 1 * GIB),
    Plan.PRO: Cap(7 * DAY_S, 30 * DAY_S, 100 * GIB),
    Plan.ENTERPRISE: Cap(30 * DAY_S, 365 * DAY_S, 10_240 * GIB),
    Plan.UNLIMITED: Cap(None, None, None),
}


class Workspace(models.Model):
    """A closed room of streams: nothing in it is seen from another.

    Attributes:
        rate_limit: requests a second that each of its tokens may make; None is no bound.
        rate_burst: requests that may come at once after a rest; None is those of one second.
    """

    name = models.CharField(max_length=50, unique=True)
    plan = models.CharField(max_length=20, choices=Plan.choices, default=Plan.UNLIMITED)
    rate_limit = models.PositiveIntegerField(null=True)
    rate_burst = models.PositiveIntegerField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def cap(self) -> Cap:
        return CAPS[self.plan]


class Role(models.TextChoices):
    """What a person may do in a workspace; each includes the ones before."""

    OBSERVER = "observer"
    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


class Membership(models.Model):
    """A person in a workspace. ``streams`` narrows them to name patterns with ``*``; empty is every stream."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=20, choices=Role.choices, default=Role.VIEWER)
    streams = models.JSONField(default=list, db_default=[])

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "workspace"], name="one_role_a_person_and_workspace")
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.workspace}: {self.role}"
