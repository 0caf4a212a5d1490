"""The limits that a stream gets: what is asked for, what its policy decides, within the workspace's plan."""

from collections.abc import Mapping
from typing import Any

from streams.errors import Refusal
from streams.models import POLICY_LIMITS, Policy, Stream, Workspace
from streams.services.plans import within_plan


def settled(workspace: Workspace, settings: Mapping[str, Any]) -> dict[str, Any]:
    """A new stream's settings under its policy and the workspace's plan.

    One that is made sealed may have limits of its own: its policy may have had them when it was sealed elsewhere.
    """
    if not settings.get("policy"):
        return within_plan(workspace, settings)
    own = settings if settings.get("sealed") else {}
    asked = {name: value for name, value in settings.items() if name not in own}
    limits = _limits_of_policy(workspace, settings["policy"], asked)
    return within_plan(workspace, {**settings, **limits, **own})


def resettled(stream: Stream, changes: Mapping[str, Any], *, is_held: bool = True) -> dict[str, Any]:
    """Changes of a stream under its policy, the old or a new one, and the workspace's plan.

    Args:
        is_held: whether they are made in this transaction, which then holds the policy; not where this is only a look.
    """
    policy = changes.get("policy", stream.policy)
    if not policy or not {"policy", *POLICY_LIMITS}.intersection(changes):
        return within_plan(stream.workspace, changes, new=False)
    limits = _limits_of_policy(stream.workspace, policy, changes, is_held=is_held)
    decided = limits if "policy" in changes else {}
    return within_plan(stream.workspace, {**changes, **decided}, new=False)


def _limits_of_policy(
    workspace: Workspace, name: str, settings: Mapping[str, Any], *, is_held: bool = True
) -> dict[str, Any]:
    """What a policy decides, within the plan.

    Raises:
        Refusal: ``validation_error`` where there is no such policy, or where the settings want other limits.
    """
    found = Policy.objects.filter(workspace=workspace, name=name)
    policy = (found.select_for_update() if is_held else found).first()
    if policy is None:
        raise Refusal("validation_error", f"policy: There is no policy {name!r}.", fields=["policy"])
    limits = within_plan(workspace, policy.limits)
    others = [field for field in POLICY_LIMITS if field in settings and settings[field] != limits[field]]
    if others:
        raise Refusal(
            "validation_error",
            f"{others[0]}: Set by policy {name!r}; change the policy, or send policy: null as well.",
            fields=others,
            policy=name,
        )
    return limits
