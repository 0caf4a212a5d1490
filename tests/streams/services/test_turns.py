"""What answers queries and carries out replays is shared among workspaces: none has all of it."""

import pytest

from streams.models import Query, QueryState, Replay, ReplayState, Workspace
from streams.services.queries import MOST_AT_ONCE, query_take
from streams.services.replays import MOST_UNFINISHED, replay_next
from streams.services.turns import next_turn


@pytest.fixture
def workspace(db: None) -> Workspace:
    return Workspace.objects.create(name="turns-one")


@pytest.fixture
def other(db: None) -> Workspace:
    return Workspace.objects.create(name="turns-other")


def test_who_has_less_under_way_comes_first_and_then_who_has_waited_longest() -> None:
    waiting = [(1, 7), (2, 7), (3, 8), (4, 9), (5, 8)]
    assert next_turn(waiting, [], most=2) == 1
    assert next_turn(waiting, [7], most=2) == 3
    assert next_turn(waiting, [7, 8], most=2) == 4
    assert next_turn(waiting, [7, 8, 9], most=2) == 1
    assert next_turn(waiting, [7, 7, 8, 8, 9, 9], most=2) is None
    assert next_turn([], [], most=2) is None


def test_a_workspace_with_two_queries_under_way_holds_up_no_other(
    workspace: Workspace, other: Workspace
) -> None:
    for place in [workspace] * 4 + [other]:
        Query.objects.create(workspace=place, sql="SELECT 1", limit=1, streams=[], asked_by="somebody")
    taken: list[Workspace] = []
    while query := query_take(under_way=[each.pk for each in taken]):
        taken.append(query.workspace)
    assert taken == [workspace, other, workspace]
    assert Query.objects.filter(state=QueryState.QUEUED, workspace=workspace).count() == 4 - MOST_AT_ONCE


def test_a_workspace_with_many_slow_replays_holds_up_no_other(workspace: Workspace, other: Workspace) -> None:
    asked = [
        Replay.objects.create(
            workspace=place, source="a", source_id="a", target="b", target_id="b", state=ReplayState.COUNTING
        )
        for place in [workspace] * (MOST_UNFINISHED + 1) + [other]
    ]
    under_way: list[int] = []
    while replay := replay_next(under_way=under_way):
        under_way.append(replay.pk)
    assert under_way[:2] == [asked[0].pk, asked[-1].pk]
    assert len(under_way) == MOST_UNFINISHED + 1
