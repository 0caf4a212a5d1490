"""The same from many sides at once: one is first, the others are told so."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connection

from streams import store
from streams.log import config
from streams.models import Event, Stream, Workspace
from tests.streams.api.conftest import Api

SIDES = 8


def from_all_sides(api: Api, act: Callable[[Api], Any]) -> Counter[int]:
    """How often each status was answered."""

    def one(_: int) -> int:
        try:
            return int(act(Api(api.secret, api.workspace)).status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(SIDES) as pool:
        return Counter(pool.map(one, range(SIDES)))


def test_a_stream_is_made_once(owner: Api) -> None:
    assert from_all_sides(owner, lambda api: api.post("streams/", {"name": "orders"})) == {
        201: 1,
        200: SIDES - 1,
    }
    assert Stream.objects.filter(workspace=owner.workspace).count() == 1
    assert Event.objects.filter(workspace=owner.workspace, kind="stream.created").count() == 1


def test_a_workspace_is_made_once(ruler: Api, unique: str) -> None:
    name = f"{unique}-once"
    assert from_all_sides(ruler, lambda api: api.post("workspaces/", {"name": name})) == {
        201: 1,
        409: SIDES - 1,
    }
    assert Workspace.objects.filter(name=name).count() == 1


def test_a_stream_that_is_changed_while_it_is_deleted_is_gone_from_the_log_too(owner: Api) -> None:
    owner.post("streams/", {"name": "orders"})
    stream = Stream.objects.get(workspace=owner.workspace)

    def act(api: Api) -> Any:
        api.patch("streams/orders", {"description": "x"})
        return api.delete("streams/orders")

    assert set(from_all_sides(owner, act)) <= {204, 404}
    assert not Stream.objects.filter(workspace=owner.workspace).exists()
    assert store.log().run(config.stream_settings(stream.stream_id)) is None
    assert store.log().run(config.names_in(owner.workspace.pk)) == {}
