"""The replays of a stream on its History tab: which stand there, and what can be done with each."""

from django.test import Client

from streams.models import Replay
from streams.services.replays import replay_counted, replay_failed
from tests.dashboard.conftest import MakeStream


def test_a_second_click_does_not_start_what_is_counted_again(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    assert owner.post("/streams/orders/history/", {"target": "orders"}).status_code == 302
    replay = Replay.objects.get()
    replay_failed(replay, error="Spark is away.")
    start = f"/streams/orders/history/replays/{replay.pk}/start/"
    assert owner.post(start).status_code == 302
    assert b"This replay is counting; it cannot be started." in owner.post(start, follow=True).content
    replay_counted(replay, messages=10, size=99, first=1, last=10)
    replay.refresh_from_db()
    assert (replay.state, replay.starts) == ("ready", False)
