import pytest

from streams.log import config, keys, stats
from streams.log.client import Log
from tests.streams.log.conftest import MakeStream
from tests.streams.log.messages import fill

ME = {"workspace": "default", "workspace_id": 1, "archive": False}


def test_publishing_settings_again_leaves_the_counters(log: Log, stream: str, unique: str) -> None:
    fill(log, stream, 3)
    registered = config.Registered(stream_id=stream, name=unique, **ME)  # type: ignore[arg-type]
    new = log.run(
        config.stream_publish(
            registered, {"ttl": 60, "dedup_window": 60, "max_message_bytes": 9, "discard": "old"}
        )
    )
    assert not new
    assert log.run(stats.inspect(stream)).messages == 3
    settings = log.run(config.stream_settings(stream))
    assert settings is not None
    assert settings["ttl"] == 60


def test_a_setting_taken_back_is_gone(log: Log, make_stream: MakeStream, unique: str) -> None:
    stream = make_stream(ttl=60)
    registered = config.Registered(stream_id=stream, name=unique, **ME)  # type: ignore[arg-type]
    log.run(config.stream_publish(registered, {"ttl": None, "dedup_window": 60}))
    assert "ttl" not in (log.run(config.stream_settings(stream)) or {})


def test_a_deleted_stream_leaves_no_key(log: Log, make_stream: MakeStream, unique: str) -> None:
    stream = make_stream(ttl=1000)
    fill(log, stream, 3)
    log.run(config.stream_remove(stream, workspace_id=1, name=unique))
    assert log.client.execute_command("KEYS", f"okmq:{{{stream}}}:*") == []
    assert log.run(config.stream_id_of(1, unique)) is None
    assert log.client.execute_command("HEXISTS", keys.REGISTRY, stream) == 0


def test_the_last_offset_of_a_deleted_stream_is_kept_for_the_newest(
    log: Log, make_stream: MakeStream, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = [make_stream() for _ in range(3)]
    for count, stream in enumerate(streams, start=1):
        fill(log, stream, count)
    gone = [(stream, 1, f"{unique} {n}") for n, stream in enumerate(streams)]
    log.run(config.streams_remove(gone))
    told = {stream: config.Ended(name=name, last=n) for n, (stream, _, name) in enumerate(gone, start=1)}
    assert {stream: log.run(config.ended())[stream] for stream in streams} == told
    log.run(config.streams_remove(gone))
    assert {stream: log.run(config.ended())[stream] for stream in streams} == told, "twice is once"
    monkeypatch.setattr(config, "MOST_ENDED", 1)
    newest = make_stream()
    log.run(config.stream_remove(newest, workspace_id=1, name=unique))
    assert log.run(config.ended()) == {newest: config.Ended(name=unique, last=0)}


def test_removing_an_old_stream_spares_the_new_one_of_the_name(
    log: Log, make_stream: MakeStream, unique: str
) -> None:
    old, new = make_stream(), make_stream()
    log.run(config.stream_remove(old, workspace_id=1, name=unique))
    assert log.run(config.stream_id_of(1, unique)) == new


def test_a_token_is_known_until_it_is_removed(log: Log, unique: str) -> None:
    grant = config.TokenGrant(
        id=1, workspace="default", workspace_id=1, scopes=("read",), streams=("a*",), expires_ms=5
    )
    log.run(config.token_publish(unique, grant))
    assert log.run(config.token_grant(unique)) == grant
    log.run(config.token_remove(unique))
    assert log.run(config.token_grant(unique)) is None


def test_the_archived_offset_never_goes_back(log: Log, stream: str) -> None:
    log.run(config.archived_set(stream, 5))
    log.run(config.archived_set(stream, 3))
    assert log.run(config.archived_of([stream])) == {stream: 5}


def test_durability_follows_the_server(log: Log, stream: str) -> None:
    assert log.run(stats.durability(stream)) == "fsync"
    log.client.execute_command("CONFIG", "SET", "appendfsync", "everysec")
    try:
        assert log.run(stats.durability(stream)) == "window"
    finally:
        log.client.execute_command("CONFIG", "SET", "appendfsync", "always")
