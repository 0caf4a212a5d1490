"""People of a workspace."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from streams.access import SYSTEM, Caller
from streams.models import Login, Membership, OneTimePassword, Role, Workspace


@dataclass(frozen=True, slots=True)
class PersonView:
    """A person in a workspace.

    Attributes:
        one_time: whether their password is a one-time one that they have not changed yet; ``expired``: and can no more.
        streams: name patterns that narrow them; empty is every stream.
        workspaces: how many they belong to.
    """

    name: str
    role: str
    streams: Sequence[str]
    workspace: str
    active: bool
    one_time: bool
    expired: bool
    workspaces: int
    last_login: datetime | None
    created_at: datetime

    @property
    def others(self) -> int:
        """How many other workspaces they belong to."""
        return self.workspaces - 1


def is_last_admin(membership: Membership) -> bool:
    """Whether this is an admin of all streams who may log in, and nobody else of the workspace is.

    Who is deactivated may not, nor whose one-time password has expired; with one that has not they may. An admin who is
    narrowed to some streams has no say about people.
    """
    admins = Membership.objects.filter(
        workspace_id=membership.workspace_id, role=Role.ADMIN, streams=[], user__is_active=True
    )
    expired = OneTimePassword.objects.filter(expires_at__lte=timezone.now()).values("pk")
    found = set(admins.exclude(user__in=expired).values_list("pk", flat=True)[:2])
    return found == {membership.pk}


def people_page(workspace: Workspace, *, after: str = "", limit: int = 1000) -> tuple[list[PersonView], bool]:
    """A page of a workspace's people by name, and whether there are more."""
    found = Membership.objects.select_related("user", "workspace").filter(
        workspace=workspace, user__username__gt=after
    )
    rows = list(found.order_by("user__username")[: limit + 1])
    return people_of(rows[:limit]), len(rows) > limit


def people_of(memberships: Iterable[Membership]) -> list[PersonView]:
    """Memberships as they are shown."""
    rows = list(memberships)
    users = [row.user_id for row in rows]
    waiting = {held.pk: held.is_expired for held in OneTimePassword.objects.filter(user__in=users)}
    everywhere = list(Membership.objects.filter(user__in=users).values_list("user_id", flat=True))
    return [
        PersonView(
            name=row.user.get_username(),
            role=row.role,
            streams=row.streams,
            workspace=row.workspace.name,
            active=row.user.is_active,
            one_time=row.user_id in waiting,
            expired=waiting.get(row.user_id, False),
            workspaces=everywhere.count(row.user_id),
            last_login=row.user.last_login,
            created_at=row.user.date_joined,
        )
        for row in rows
    ]


def callers_narrowed() -> list[Caller]:
    """Of each way in which people are narrowed in a workspace, a caller that sees what they see."""
    held = Membership.objects.select_related("workspace").exclude(streams=[])
    found = {(each.workspace_id, frozenset(each.streams)): each.workspace for each in held}
    return [
        Caller(workspace, frozenset({"read"}), SYSTEM, streams=tuple(sorted(patterns)))
        for (_, patterns), workspace in found.items()
    ]


def workspaces_of_person(user_id: int) -> list[Membership]:
    """The workspaces that a person belongs to, by name."""
    return list(
        Membership.objects.select_related("workspace").filter(user_id=user_id).order_by("workspace__name")
    )


def logins_of(user_id: int) -> list[Login]:
    """The browsers that a person is logged in with, newest first."""
    return list(Login.objects.filter(user_id=user_id))
