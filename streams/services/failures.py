"""Why replays and queries failed, in words that may tell a value, and so a body."""

from collections.abc import Collection

from streams.models import Query, QueryState, Replay, ReplayState

NOT_KEPT = "The reason is not kept: it may have told what was erased since."


def failures_untold(workspace_ids: Collection[int]) -> None:
    """Let go of why anything failed in some workspaces, as something was erased there.

    Whose words a reason is, and of which messages they are, is not known any more: so all of them go.
    """
    Replay.objects.filter(workspace_id__in=workspace_ids, state=ReplayState.FAILED).update(error=NOT_KEPT)
    Query.objects.filter(workspace_id__in=workspace_ids, state=QueryState.FAILED).update(error=NOT_KEPT)
