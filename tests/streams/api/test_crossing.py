"""A call whose ground is taken away while it runs."""

import pytest

from streams.access import SYSTEM
from streams.models import Workspace
from streams.services import streams as services
from streams.services.workspaces import workspace_delete
from tests.streams.api.conftest import Api, code


def test_a_workspace_deleted_meanwhile_is_no_fault_of_ours(
    owner: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = services._streams_create

    def late(workspace: Workspace, **more: object) -> object:
        monkeypatch.setattr(services, "_streams_create", create)
        workspace_delete(Workspace.objects.get(pk=workspace.pk), actor=SYSTEM)
        return create(workspace, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(services, "_streams_create", late)
    answer = owner.client.post(
        "/api/v1/streams/", {"name": "orders"}, "application/json", headers={"authorization": owner.secret}
    )
    assert (answer.status_code, code(answer)) == (404, "workspace_not_found")
    assert code(owner.post("streams/", {"name": "orders"})) == "unauthorized"
