"""The one door from a caller to an object: who is calling, what they may, and whether they may see it at all."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import QuerySet

from streams import bearer, naming
from streams.errors import Refusal, alert_rule_not_found, group_not_found, policy_not_found, stream_not_found
from streams.exchange import note_caller
from streams.models import (
    DEFAULT_WORKSPACE,
    AlertRule,
    Erasure,
    Group,
    Membership,
    Policy,
    Query,
    Replay,
    Role,
    SavedFilter,
    Stream,
    Token,
    Workspace,
)

ROLE_SCOPES: dict[str, frozenset[str]] = {
    Role.OBSERVER: frozenset({"observe"}),
    Role.VIEWER: frozenset({"read"}),
    Role.OPERATOR: frozenset({"read", "publish", "consume", "manage"}),
    Role.ADMIN: frozenset(bearer.SCOPES),
}


@dataclass(frozen=True, slots=True)
class Actor:
    """Who did something, for the record: a name such as ``admin`` or ``token shop-api``, and an address."""

    name: str
    address: str = ""


SYSTEM = Actor("system")

IN_WORKSPACE = "workspace"
"""In a session: the workspace that the person has chosen."""

MUST_CHANGE = "must_change_password"
"""In a session: it was opened with a one-time password, and does nothing but change it."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A person or a token, in a workspace.

    Attributes:
        scopes: what they may (``admin`` implies the rest).
        streams: name patterns that narrow it; empty is every stream.
        role: a person's role in the workspace; empty for a token.
    """

    workspace: Workspace
    scopes: frozenset[str]
    actor: Actor
    streams: tuple[str, ...] = field(default=())
    role: str = ""

    @property
    def is_authenticated(self) -> bool:
        return True

    def may(self, scope: str) -> bool:
        return bearer.scopes_cover(self.scopes, scope)

    def demand(self, scope: str) -> None:
        """Raises Refusal ``forbidden`` without the scope."""
        if not self.may(scope):
            needs = f"the role {role_for(scope)!r}" if self.role else f"the scope {scope!r}"
            raise Refusal("forbidden", f"This needs {needs}.", scope=scope)

    def demand_stream(self, name: str) -> None:
        """Raises Refusal ``forbidden`` outside the patterns that narrow this caller."""
        if not bearer.streams_cover(self.streams, name):
            raise Refusal("forbidden", f"{self._who} is not for stream {name!r}.", stream=name)

    def demand_patterns(self, patterns: Iterable[str]) -> None:
        """Raises Refusal ``forbidden`` unless name patterns reach no further than those that narrow this caller."""
        if not self.reaches(patterns):
            said = f"{self._who} is restricted to streams, and this reaches further."
            raise Refusal("forbidden", said, streams=list(self.streams))

    def reaches(self, patterns: Iterable[str]) -> bool:
        """Whether name patterns reach no further than those that narrow this caller; no pattern is every stream.

        A pattern lies inside another one exactly when the other matches it read as a name: ``*`` stands only for
        what the other's ``*`` takes.
        """
        wanted = list(patterns)
        inside = all(bearer.streams_cover(self.streams, pattern) for pattern in wanted)
        return not self.streams or (bool(wanted) and inside)

    def demand_every_stream(self) -> None:
        """Raises Refusal ``forbidden`` for a caller that is narrowed to some streams."""
        if self.streams:
            said = f"{self._who} is restricted to streams; this applies to all."
            raise Refusal("forbidden", said, streams=list(self.streams))

    @property
    def _who(self) -> str:
        return "Your access" if self.role else "This token"

    @property
    def may_change_rules(self) -> bool:
        """Whether alert rules can be made and changed, which those who are narrowed to some streams cannot."""
        return self.may("manage") and not self.streams

    @property
    def rules_all(self) -> bool:
        """Whether this is an admin of the default workspace, who rules the others too."""
        return self.workspace.name == DEFAULT_WORKSPACE and self.may("admin") and not self.streams

    @property
    def sees_inside_runs(self) -> bool:
        """A run is the whole installation's: what it met is no other workspace's to see, nor a narrowed caller's."""
        return self.workspace.name == DEFAULT_WORKSPACE and not self.streams

    def demand_rule(self) -> None:
        """Raises Refusal ``forbidden`` unless the caller rules all workspaces."""
        if not self.rules_all:
            raise Refusal(
                "forbidden", "This needs the scope 'admin' in the workspace 'default'.", scope="admin"
            )


def role_for(scope: str) -> str:
    """The least role that has a scope."""
    return next(role for role in Role.values if bearer.scopes_cover(ROLE_SCOPES[role], scope))


def caller_for_token(token: Token, *, address: str) -> Caller:
    """The caller behind a token that is known and has not expired."""
    note_caller(workspace=token.workspace.name, token=token.pk)
    return Caller(
        workspace=token.workspace,
        scopes=frozenset(token.scopes),
        actor=Actor(f"token {token.name}", address),
        streams=tuple(token.streams),
    )


def caller_for_user(
    user: AbstractBaseUser | AnonymousUser, *, workspace: str = "", address: str = ""
) -> Caller:
    """The caller that a logged-in person is, in a workspace they belong to (their first one by default).

    Raises:
        Refusal: ``workspace_not_found`` when they belong to no such workspace.
    """
    memberships = (
        Membership.objects.select_related("workspace")
        .filter(user__username=user.get_username())
        .order_by("workspace__name")
    )
    if workspace:
        memberships = memberships.filter(workspace__name=workspace)
    found = list(memberships)
    chosen = next(
        (m for m in found if m.workspace.name == DEFAULT_WORKSPACE),
        found[0] if found else None,
    )
    if chosen is None:
        raise Refusal(
            "workspace_not_found",
            "You are not a member of that workspace.",
            workspace=workspace,
        )
    note_caller(workspace=chosen.workspace.name, user=user.get_username())
    return Caller(
        workspace=chosen.workspace,
        scopes=ROLE_SCOPES[chosen.role],
        actor=Actor(user.get_username(), address),
        streams=tuple(chosen.streams),
        role=chosen.role,
    )


def caller_for_session(
    user: AbstractBaseUser | AnonymousUser, session: Mapping[str, Any], *, address: str = ""
) -> Caller:
    """The caller that a logged-in person is in this session: in the workspace that they chose, if it still is theirs.

    Raises:
        Refusal: ``forbidden`` while a one-time password waits to be changed; ``workspace_not_found`` when they
            belong to none.
    """
    if session.get(MUST_CHANGE):
        raise Refusal("forbidden", "Change your one-time password first.")
    try:
        return caller_for_user(user, workspace=session.get(IN_WORKSPACE, ""), address=address)
    except Refusal:
        return caller_for_user(user, address=address)


def stream_for(caller: Caller, name: str, *, may: str) -> Stream:
    """The stream of that name in the caller's workspace.

    Raises:
        Refusal: ``forbidden`` without the scope or outside the caller's patterns; ``stream_not_found`` when there
            is none in this workspace, also when another workspace has one.
    """
    caller.demand(may)
    caller.demand_stream(name)
    found = Stream.objects.select_related("workspace").filter(workspace=caller.workspace, internal=False)
    stream = found.filter(name=name).first() if naming.is_name(name) else None
    if stream is None:
        raise stream_not_found(name)
    return stream


def workspace_for(caller: Caller, name: str | None) -> Workspace:
    """The caller's workspace, or the one that an admin of the default workspace names.

    Raises:
        Refusal: ``workspace_not_found`` for one that is not there or not theirs to see.
    """
    if name is None or name == caller.workspace.name:
        return caller.workspace
    found = Workspace.objects.filter(name=name).first() if caller.rules_all and naming.is_name(name) else None
    if found is None:
        raise Refusal("workspace_not_found", "There is no such workspace.", workspace=name)
    return found


def policy_for(caller: Caller, name: str, *, may: str) -> Policy:
    """The retention policy of that name in the caller's workspace.

    Raises:
        Refusal: ``forbidden`` without the scope, or for a narrowed caller where more than reading is wanted;
            ``policy_not_found``, also where no stream inside the patterns that narrow the caller uses it.
    """
    caller.demand(may)
    if may != "read":
        caller.demand_every_stream()
    found = Policy.objects.select_related("workspace").filter(workspace=caller.workspace)
    policy = found.filter(name=name).first() if naming.is_name(name) else None
    if policy is None or (caller.streams and not _is_used_inside(caller, policy)):
        raise policy_not_found(name)
    return policy


def _is_used_inside(caller: Caller, policy: Policy) -> bool:
    users = Stream.objects.filter(workspace=policy.workspace, policy=policy.name, internal=False)
    names = users.values_list("name", flat=True).iterator()
    return any(bearer.streams_cover(caller.streams, name) for name in names)


def rule_for(caller: Caller, name: str, *, may: str) -> AlertRule:
    """The alert rule of that name in the caller's workspace.

    Raises:
        Refusal: ``forbidden`` without the scope, or for a narrowed caller where more than reading is wanted;
            ``alert_rule_not_found``, also where it reaches beyond the patterns that narrow the caller.
    """
    caller.demand(may)
    if may != "read":
        caller.demand_every_stream()
    found = AlertRule.objects.select_related("workspace").filter(workspace=caller.workspace)
    rule = found.filter(name=name).first() if naming.is_name(name) else None
    if rule is None or not caller.reaches((rule.stream,)):
        raise alert_rule_not_found(name)
    return rule


def query_for(caller: Caller, query_id: int | None) -> Query:
    """A query of the caller's workspace, with or without its answer.

    Raises:
        Refusal: ``forbidden`` without the scope ``read``; ``query_not_found``, also where a caller that is narrowed
            to streams did not ask with just these.
    """
    caller.demand("read")
    found = Query.objects.select_related("workspace").filter(workspace=caller.workspace)
    query = None if query_id is None else found.filter(pk=query_id).first()
    if query is None or (caller.streams and sorted(query.streams) != sorted(caller.streams)):
        raise Refusal("query_not_found", "There is no such query, or its result is no longer kept.")
    return query


def replay_for(caller: Caller, replay_id: int | None, *, may: str) -> Replay:
    """A replay of the caller's workspace.

    Raises:
        Refusal: ``forbidden`` without the scope; ``replay_not_found``, also where one of its streams lies outside
            the patterns that narrow the caller.
    """
    caller.demand(may)
    found = Replay.objects.select_related("workspace").filter(workspace=caller.workspace)
    replay = None if replay_id is None else found.filter(pk=replay_id).first()
    if replay is None or not may_see(caller, replay):
        raise Refusal("replay_not_found", "There is no such replay.")
    return replay


def erasure_for(caller: Caller, erasure_id: int | None, *, may: str) -> Erasure:
    """An erasure in the caller's workspace.

    Raises:
        Refusal: ``forbidden`` without the scope; ``erasure_not_found``, also where its stream lies outside the patterns
            that narrow the caller.
    """
    caller.demand(may)
    found = Erasure.objects.filter(workspace=caller.workspace)
    erasure = None if erasure_id is None else found.filter(pk=erasure_id).first()
    if erasure is None or not bearer.streams_cover(caller.streams, erasure.stream):
        raise Refusal("erasure_not_found", "There is no such erasure.")
    return erasure


def may_see(caller: Caller, replay: Replay) -> bool:
    """Whether both streams of a replay lie inside the patterns that narrow a caller."""
    return all(bearer.streams_cover(caller.streams, name) for name in (replay.source, replay.target))


def group_for(caller: Caller, stream_name: str, name: str, *, may: str) -> Group:
    """The group of that name of a stream in the caller's workspace.

    Raises:
        Refusal: as ``stream_for``, and ``group_not_found``.
    """
    stream = stream_for(caller, stream_name, may=may)
    if not naming.is_name(name):
        raise group_not_found(name)
    group = Group.objects.select_related("stream__workspace").filter(stream=stream, name=name).first()
    if group is None:
        raise group_not_found(name)
    return group


def filters_of(caller: Caller) -> "QuerySet[SavedFilter]":
    """The saved filters that a caller may use: those of the workspace, and a person's own; by name.

    Raises:
        Refusal: ``forbidden`` without the scope ``read`` or for a caller that is narrowed to streams.
    """
    caller.demand("read")
    caller.demand_every_stream()
    owners = ["", caller.actor.name] if caller.role else [""]
    return SavedFilter.objects.select_related("workspace").filter(
        workspace=caller.workspace, owner__in=owners
    )


def filter_for(caller: Caller, filter_id: int | None) -> SavedFilter:
    """One of the saved filters that a caller may use.

    Raises:
        Refusal: as ``filters_of``; ``filter_not_found`` when there is none, also when it is another person's own.
    """
    found = None if filter_id is None else filters_of(caller).filter(pk=filter_id).first()
    if found is None:
        raise Refusal("filter_not_found", "There is no such filter, or it belongs to someone else.")
    return found


def membership_for(caller: Caller, name: str, *, workspace: Workspace) -> Membership:
    """A person of a workspace that the caller administers.

    Raises:
        Refusal: ``forbidden`` without the scope ``admin`` or for a caller that is narrowed to streams;
            ``user_not_found`` when nobody of that name belongs to the workspace.
    """
    caller.demand("admin")
    caller.demand_every_stream()
    found = Membership.objects.select_related("user", "workspace").filter(workspace=workspace)
    membership = found.filter(user__username=name).first() if naming.is_user(name) else None
    if membership is None:
        raise Refusal("user_not_found", "There is no such person in this workspace.", user=name[:150])
    return membership


def demand_account(caller: Caller, membership: Membership) -> None:
    """Raises Refusal ``forbidden`` unless the caller administers every workspace that the person belongs to.

    Whoever sets a password or ends an account acts for all of them.
    """
    if caller.rules_all:
        return
    if Membership.objects.filter(user=membership.user).exclude(workspace=caller.workspace).exists():
        raise Refusal(
            "forbidden",
            "This person also belongs to other workspaces: this needs the scope 'admin' in the workspace 'default'.",
            scope="admin",
        )
