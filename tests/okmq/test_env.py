"""Every value that cannot be used is refused in one sentence that names it, and shows no secret."""

from pathlib import Path

import pytest

from okmq import env
from streams import addresses


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OKMQ_PORT", "0"),
        ("OKMQ_PORT", "eighty"),
        ("OKMQ_WEB_WORKERS", "-1"),
        ("OKMQ_MAX_CONNECTIONS", "0"),
        ("OKMQ_ACCESS_LOG", "var/access.log"),
        ("OKMQ_FSYNC", "sometimes"),
        ("OKMQ_HISTORY", "perhaps"),
        ("OKMQ_REDIS_URL", "localhost:6379"),
        ("OKMQ_MEMORY_REDIS_URL", "localhost:6379"),
        ("OKMQ_DATABASE_URL", "mysql://x"),
        ("OKMQ_ADMIN_TOKEN", "short"),
        ("OKMQ_ADMIN_PASSWORD", "a"),
        ("OKMQ_SECRET_KEY", "x"),
        ("OKMQ_RUNS_DAYS", "0"),
        ("OKMQ_SPARK_MASTER", "nonsense"),
        ("OKMQ_SPARK_MASTER", "local[0]"),
        ("OKMQ_SPARK_MASTER", "spark://nohost"),
        ("OKMQ_SPARK_MASTER", "spark://a:7077,b"),
        ("OKMQ_SPARK_HOST", "http://a"),
        ("OKMQ_SPARK_MEMORY", "much"),
        ("OKMQ_SPARK_MEMORY", "100m"),
        ("OKMQ_SPARK_CORES", "0"),
        ("OKMQ_SQL_DISK", "10"),
        ("OKMQ_SQL_DISK", "0g"),
        ("OKMQ_FORWARDED_ALLOW_IPS", "zzz"),
        ("OKMQ_FORWARDED_ALLOW_IPS", "*"),
        ("OKMQ_FORWARDED_ALLOW_IPS", "10.0.0.1, 0.0.0.0/0"),
        ("OKMQ_FORWARDED_ALLOW_IPS", "::/0"),
        ("OKMQ_ALLOWED_HOSTS", ","),
    ],
)
def test_a_value_that_cannot_be_used_is_named(name: str, value: str) -> None:
    with pytest.raises(env.EnvError) as refusal:
        env.load({name: value}, dotenv=None)
    shown = name if name in env.SECRET else f"{name}={value!r}"
    assert str(refusal.value).startswith(f"{shown}: expected ")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OKMQ_ADMIN_PASSWORD", "canary"),
        ("OKMQ_ADMIN_TOKEN", "canary token of mine"),
        ("OKMQ_SECRET_KEY", "canary"),
        ("OKMQ_MAIL_URL", "smtp://okmq:canary@mail.example.org:587/"),
        ("OKMQ_MAIL_URL", "smtp://okmq:canary\u2100@mail.example.org:587"),
        ("OKMQ_REDIS_URL", "valkey://:canary@db:6379"),
        ("OKMQ_REDIS_URL", "redis://:canary/2@db:6379"),
        ("OKMQ_REDIS_URL", "redis://:canary\u2100@db:6379"),
        ("OKMQ_REDIS_URL", "redis+cluster://user:canary@one:x"),
        ("OKMQ_REDIS_URL", "redis+cluster://user:canary\u2100@one:7001"),
        ("OKMQ_MEMORY_REDIS_URL", "redis+cluster://:canary@one:7001"),
        ("OKMQ_DATABASE_URL", "psql://okmq:canary@db/okmq"),
        ("OKMQ_DATABASE_URL", "postgresql://okmq:canary/2@db/okmq"),
        ("OKMQ_DATABASE_URL", "postgresql://okmq:canary@db:port/okmq"),
    ],
)
def test_a_secret_that_cannot_be_used_is_not_shown(name: str, value: str) -> None:
    with pytest.raises(env.EnvError) as refusal:
        env.load({name: value}, dotenv=None)
    assert str(refusal.value).startswith(f"{name}: expected ")
    assert "canary" not in str(refusal.value)


@pytest.mark.parametrize(
    "master",
    [
        *("local", "local[*]", "local[2]", "local[4,2]", "yarn", "k8s://https://cluster:6443"),
        *("spark://127.0.0.1:7077", "spark://a-1.example.com:7077,[::1]:7078"),
    ],
)
def test_the_forms_of_a_spark_master_are_taken(master: str) -> None:
    assert env.load({"OKMQ_SPARK_MASTER": master}, dotenv=None).spark_master == master


@pytest.mark.parametrize(
    ("text", "size"), [("512m", 512 * 2**20), ("10g", 10 * 2**30), ("1t", 2**40), ("", 10 * 2**30)]
)
def test_a_size_is_told_in_bytes(text: str, size: int) -> None:
    assert env.load({"OKMQ_SQL_DISK": text}, dotenv=None).sql_disk == size


@pytest.mark.parametrize("content", [b"OKMQ_HOST=\xff\n", b"OKMQ_HOST\n", b"=x\n", b"OKMQ_PROT=8000\n"])
def test_a_broken_env_file_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / ".env"
    path.write_bytes(content)
    with pytest.raises(env.EnvError) as refusal:
        env.load({}, dotenv=path)
    assert str(path) in str(refusal.value)


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text("# a comment\n\nOKMQ_PORT='8001'\nOKMQ_HOST=::1\n")
    found = env.load({"OKMQ_PORT": "8002"}, dotenv=path)
    assert (found.port, found.host) == (8002, "::1")


def test_streams_in_memory_need_a_server_of_their_own() -> None:
    url = "redis://:canary@127.0.0.1:6379"
    with pytest.raises(env.EnvError, match="expected another server") as refusal:
        env.load({"OKMQ_REDIS_URL": url, "OKMQ_MEMORY_REDIS_URL": url}, dotenv=None)
    assert "canary" not in str(refusal.value)


def test_beside_a_server_of_ones_own_there_is_no_private_one_in_memory() -> None:
    found = env.load({"OKMQ_REDIS_URL": "redis://127.0.0.1:6379"}, dotenv=None)
    assert (found.memory_redis_url, found.private_memory) == (None, False)
    private = env.load({}, dotenv=None)
    assert private.private_memory
    assert private.memory_redis_url not in (None, private.redis_url)


def test_a_cluster_is_named_by_some_of_its_nodes() -> None:
    url = "rediss+cluster://user:p%40ss@one:7001,two:7002?ssl_cert_reqs=none"
    assert env.load({"OKMQ_REDIS_URL": url}, dotenv=None).redis_url == url
    assert addresses.nodes(url) == [
        "rediss://user:p%40ss@one:7001?ssl_cert_reqs=none",
        "rediss://user:p%40ss@two:7002?ssl_cert_reqs=none",
    ]
    assert addresses.node(url, "fe80::1", 7) == "rediss://user:p%40ss@[fe80::1]:7?ssl_cert_reqs=none"
    assert addresses.nodes("unix:///tmp/s") == ["unix:///tmp/s"]


@pytest.mark.parametrize("hosts", ["", "one", "one:7001,", "one:7001,two", "one:x"])
def test_a_cluster_without_nodes_is_refused(hosts: str) -> None:
    with pytest.raises(env.EnvError, match="with one or more nodes"):
        env.load({"OKMQ_REDIS_URL": f"redis+cluster://{hosts}"}, dotenv=None)


def test_streams_in_memory_take_no_cluster() -> None:
    with pytest.raises(env.EnvError, match="starts with redis://"):
        env.load({"OKMQ_MEMORY_REDIS_URL": "redis+cluster://one:7001"}, dotenv=None)
