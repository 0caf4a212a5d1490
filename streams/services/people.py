"""People: taken into a workspace, given a role, removed, deactivated; and their passwords."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from streams import selectors
from streams.access import Actor
from streams.errors import Refusal
from streams.models import DEFAULT_WORKSPACE, Membership, OneTimePassword, Role, Workspace
from streams.services.events import event_record
from streams.services.logins import logins_end
from streams.services.open_pages import person_group, tell

RESERVED = frozenset({"system", "token"})
ONE_TIME_FOR = timedelta(days=7)


@transaction.atomic
def person_add(
    workspace: Workspace,
    *,
    name: str,
    role: str,
    actor: Actor,
    may_share: bool,
    streams: Sequence[str] = (),
) -> tuple[Membership, str | None]:
    """Take a person into a workspace.

    A name that belongs to no workspace any more is given out again with a new password: it was deactivated, not
    deleted, so that the events name nobody else.

    Args:
        may_share: whether people of other workspaces may be taken in, too.
        streams: name patterns that narrow them; none is every stream.

    Returns:
        The membership, and the one-time password; None for a person who has a password already.

    Raises:
        Refusal: ``user_exists``.
    """
    if name.casefold() in RESERVED:
        raise Refusal("user_exists", f"The name {name!r} is reserved for the system.", user=name)
    user = User.objects.select_for_update().filter(username__iexact=name).first()
    if user is not None and user.memberships.exists():
        is_member = Membership.objects.filter(user=user, workspace=workspace).exists()
        if is_member or not may_share or user.username != name:
            raise Refusal("user_exists", f"The name {name!r} is taken.", user=name)
        password = None
    elif user is not None and user.username != name:
        raise Refusal("user_exists", f"The name {name!r} is taken.", user=name)
    else:
        user = user or get_user_model().objects.create_user(username=name)
        user.is_active = True
        user.save(update_fields=["is_active"])
        password = _one_time(user)
    membership = Membership.objects.create(user=user, workspace=workspace, role=role, streams=list(streams))
    event_record(
        workspace,
        kind="user.added",
        actor=actor,
        after=_told(membership),
        summary=f"{name} was added as {role}{f', restricted to {_listed(streams)}' if streams else ''}.",
    )
    return membership, password


@transaction.atomic
def person_change(
    membership: Membership, *, changes: Mapping[str, Any], actor: Actor, rules_all: bool
) -> Membership:
    """Change a person's ``role`` in a workspace, or the ``streams`` that narrow them; it holds from their next request.

    Raises:
        Refusal: ``operation_denied`` as ``admin_demand`` says.
    """
    membership = _locked(membership)
    before = {name: getattr(membership, name) for name in changes}
    changes = {name: value for name, value in changes.items() if value != before[name]}
    if not changes:
        return membership
    if changes.get("role", Role.ADMIN) != Role.ADMIN or changes.get("streams"):
        admin_demand(membership, rules_all=rules_all)
    for field, value in changes.items():
        setattr(membership, field, value)
    membership.save(update_fields=list(changes))
    name = membership.user.get_username()
    event_record(
        membership.workspace,
        kind="user.changed",
        actor=actor,
        before={"name": name, **{field: before[field] for field in changes}},
        after={"name": name, **changes},
        summary=" ".join(_SAID[field](name, value, before[field]) for field, value in changes.items()),
    )
    tell({person_group(membership.user_id): "live.again"})
    return membership


@transaction.atomic
def person_set_active(membership: Membership, *, active: bool, actor: Actor, rules_all: bool) -> Membership:
    """Let an account log in, or end all its logins and let it not.

    Raises:
        Refusal: ``operation_denied`` as ``admin_demand`` says.
    """
    membership = _locked(membership)
    user = membership.user
    if user.is_active == active:
        return membership
    if not active:
        for held in Membership.objects.select_related("workspace", "user").filter(user=user):
            admin_demand(held, rules_all=rules_all)
    user.is_active = active
    user.save(update_fields=["is_active"])
    if not active:
        logins_end(user)
        tell({person_group(user.pk): "live.end"})
    name = user.get_username()
    event_record(
        membership.workspace,
        kind="user.changed",
        actor=actor,
        before={"name": name, "active": not active},
        after={"name": name, "active": active},
        summary=f"{name} was {'activated' if active else 'deactivated'}.",
    )
    return membership


@transaction.atomic
def person_remove(membership: Membership, *, actor: Actor, rules_all: bool) -> None:
    """Remove a person from a workspace; whoever belongs to none any more is deactivated.

    Raises:
        Refusal: ``operation_denied`` as ``admin_demand`` says.
    """
    membership = _locked(membership)
    admin_demand(membership, rules_all=rules_all)
    user, workspace, before = membership.user, membership.workspace, _told(membership)
    membership.delete()
    tell({person_group(user.pk): "live.again"})
    if not Membership.objects.filter(user=user).exists():
        user.is_active = False
        user.save(update_fields=["is_active"])
        logins_end(user)
    name = user.get_username()
    event_record(
        workspace,
        kind="user.removed",
        actor=actor,
        before=before,
        summary=f"{name} was removed.",
    )


@transaction.atomic
def password_reset(membership: Membership, *, actor: Actor) -> str:
    """Give a person a one-time password, shown this once; ends all their logins. Who is deactivated stays so."""
    user = membership.user
    password = _one_time(user)
    logins_end(user)
    tell({person_group(user.pk): "live.end"})
    name = user.get_username()
    event_record(
        membership.workspace,
        kind="user.password_reset",
        actor=actor,
        after={"name": name},
        summary=f"{name} was given a one-time password.",
    )
    return password


@transaction.atomic
def password_change(user: AbstractBaseUser, *, password: str, session_key: str, actor: Actor) -> None:
    """Set a password that the person chose; ends their other logins."""
    user.set_password(password)
    user.save(update_fields=["password"])
    OneTimePassword.objects.filter(user_id=user.pk).delete()
    logins_end(user, but=session_key)
    event_record(
        None,
        kind="user.password_changed",
        actor=actor,
        after={"name": user.get_username()},
        summary=f"{actor.name} changed their password.",
    )


def _told(membership: Membership) -> dict[str, Any]:
    """A person as an event keeps them."""
    told: dict[str, Any] = {"name": membership.user.get_username(), "role": membership.role}
    return told | ({"streams": membership.streams} if membership.streams else {})


def _listed(streams: Sequence[str]) -> str:
    return ", ".join(streams)


_SAID: dict[str, Callable[[str, Any, Any], str]] = {
    "role": lambda name, now, before: f"{name} is {now} now, and was {before}.",
    "streams": lambda name, now, before: (
        f"{name} is restricted to {_listed(now)} now."
        if now
        else f"{name} is no longer restricted to streams."
    ),
}


def _one_time(user: User) -> str:
    password = secrets.token_urlsafe(12)
    user.set_password(password)
    user.save(update_fields=["password"])
    OneTimePassword.objects.update_or_create(
        user=user, defaults={"expires_at": timezone.now() + ONE_TIME_FOR}
    )
    return password


def _locked(membership: Membership) -> Membership:
    """The membership as it stands, with its workspace locked: of two who demote each other, one is refused."""
    Workspace.objects.select_for_update().get(pk=membership.workspace_id)
    found = Membership.objects.select_related("user", "workspace").filter(pk=membership.pk).first()
    if found is None:
        raise Refusal("user_not_found", "There is no such person in this workspace.")
    return found


def admin_demand(membership: Membership, *, rules_all: bool) -> None:
    """Refuse what would leave a workspace without an admin of all its streams who may log in.

    Args:
        rules_all: whether an admin of the default workspace does it, who can make somebody admin of any other; of the
            default workspace itself the last one stays for them, too.

    Raises:
        Refusal: ``operation_denied``.
    """
    workspace = membership.workspace.name
    if (rules_all and workspace != DEFAULT_WORKSPACE) or not selectors.is_last_admin(membership):
        return
    raise Refusal(
        "operation_denied",
        f"The last administrator of the workspace {workspace!r} cannot be removed, demoted, restricted or "
        "deactivated: make somebody else admin first, with a password that has not expired.",
        user="",
    )
