"""What a workspace's plan lets its streams keep."""

from collections.abc import Mapping
from typing import Any

from streams import selectors
from streams.errors import Refusal
from streams.models import CAPS, Cap, Plan, Stream, Workspace


def within_plan(workspace: Workspace, settings: Mapping[str, Any], *, new: bool = True) -> dict[str, Any]:
    """The settings with the plan's limits applied: its default where nothing is said, its most for null.

    Args:
        new: whether the stream is being made, so that what is not said gets its default.

    Raises:
        Refusal: ``quota_exceeded`` above a cap, which it names.
    """
    bounded = dict(settings)
    for field, bound in workspace.cap.bounds.items():
        if field not in bounded:
            if new:
                bounded[field] = bound.default
        elif bound.most is not None:
            if bounded[field] is None:
                bounded[field] = bound.most
            elif bounded[field] > bound.most:
                raise Refusal(
                    "quota_exceeded",
                    f"Plan {workspace.plan!r} allows {bound.unit} at most.",
                    fields=[field],
                    cap=field,
                    allowed=bound.most,
                )
    return bounded


def plan_effects(workspace: Workspace, *, plan: str) -> list[selectors.Effect]:
    """The streams that another plan would bound tighter, and what would go of each."""
    streams = Stream.objects.filter(workspace=workspace, internal=False).select_related("workspace")
    return selectors.effects_of([(stream, clamped(stream, CAPS[Plan(plan)])) for stream in streams])


def clamped(stream: Stream, cap: Cap) -> dict[str, Any]:
    """The stream's limits as they are under a cap."""
    limits = {}
    for field, bound in cap.bounds.items():
        held = getattr(stream, field)
        limits[field] = held if bound.most is None else bound.most if held is None else min(held, bound.most)
    return limits
