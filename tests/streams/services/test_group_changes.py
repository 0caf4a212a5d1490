"""What the worker is told when a group changes."""

import pytest

from streams import store
from streams.access import SYSTEM
from streams.log import stats
from streams.models import Group, Workspace
from streams.services.groups import group_change, group_create, group_delete
from streams.services.streams import stream_create

pytestmark = pytest.mark.django_db(transaction=True)


def touched() -> set[str]:
    return set(store.log().run(stats.take_touched(100_000)))


@pytest.fixture
def group(unique: str) -> Group:
    workspace = Workspace.objects.create(name=unique)
    stream, _ = stream_create(workspace, name="orders", settings={"retention": "interest"}, actor=SYSTEM)
    made, _ = group_create(stream, name="g", settings={"filter_keys": ["a", "b"]}, actor=SYSTEM)
    touched()
    return made


def test_what_a_new_filter_lets_go_is_looked_for_at_once(group: Group) -> None:
    group_change(group, changes={"filter_keys": ["a"]}, actor=SYSTEM)
    assert group.stream.stream_id in touched()


def test_what_only_a_deleted_group_wanted_is_looked_for_at_once(group: Group) -> None:
    stream_id = group.stream.stream_id
    group_delete(group, actor=SYSTEM)
    assert stream_id in touched()
