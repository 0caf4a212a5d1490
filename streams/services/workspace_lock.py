"""Holding a workspace, so that who counts what it has decides alone."""

from streams.errors import Refusal
from streams.models import Workspace


def workspace_held(workspace: Workspace) -> Workspace:
    """The workspace as it is now, its plan held until the transaction ends.

    Raises:
        Refusal: ``workspace_not_found``.
    """
    held = Workspace.objects.select_for_update(no_key=True).filter(pk=workspace.pk).first()
    if held is None:
        raise Refusal("workspace_not_found", "The workspace has been deleted.", workspace=workspace.name)
    return held
