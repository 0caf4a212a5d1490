"""Streams: create, get, list, delete."""

from tests.streams.api.conftest import Api, code


def test_a_stream_is_made_seen_and_deleted(owner: Api) -> None:
    made = owner.post("streams/", {"name": "orders", "ttl": 60})
    assert made.status_code == 201, made.content
    seen = owner.get("streams/orders")
    assert seen.json() == made.json()
    assert [row["name"] for row in owner.get("streams").json()] == ["orders"]
    assert owner.delete("streams/orders/").status_code == 204
    assert code(owner.get("streams/orders")) == "stream_not_found"
