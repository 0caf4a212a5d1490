"""Patterns that narrow a token, as conditions of the database: what they find, and what they cost."""

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import dj_database_url
import pytest
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.fields.json import KT
from django.db.utils import ConnectionHandler
from pytest_django.plugin import DjangoDbBlocker

from streams.models import Event, Stream
from streams.selectors.narrowing import inside
from tests.postgres import postgres_folder
from tests.waiting import Stopwatch

EXPENSIVE = (
    "*a*a*a*a*a*a*a*b",
    "*a" * 24 + "*b",
    "a*" * 24 + "b",
    "*" + "a" * 23 + "b*" + "a" * 24,
    "*" * 49 + "b",
)


def naive(pattern: str, name: str) -> bool:
    """What a pattern covers, by its definition."""
    if not pattern or pattern[0] != "*":
        return pattern[:1] == name[:1] and (not pattern or naive(pattern[1:], name[1:]))
    return any(naive(pattern[1:], name[at:]) for at in range(len(name) + 1))


def holding(database: BaseDatabaseWrapper, names: Sequence[str]) -> None:
    with database.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("CREATE TABLE streams_stream (id integer, name varchar(50))")
        cursor.executemany("INSERT INTO streams_stream VALUES (%s, %s)", list(enumerate(names)))
        cursor.execute("COMMIT")


def found(database: BaseDatabaseWrapper, *patterns: str) -> list[str]:
    wanted = Stream.objects.filter(inside(patterns, "name")).values_list("name")
    with database.cursor() as cursor:
        cursor.execute(*wanted.query.get_compiler(connection=database).as_sql())
        return sorted(name for (name,) in cursor.fetchall())


@pytest.fixture(params=["sqlite", "postgresql"])
def database(
    request: pytest.FixtureRequest, tmp_path: Path, django_db_blocker: DjangoDbBlocker
) -> Iterator[BaseDatabaseWrapper]:
    with django_db_blocker.unblock():
        if request.param == "sqlite":
            yield from opened(f"sqlite:///{tmp_path}/names.sqlite3")
        else:
            with postgres_folder() as server, server.running():
                yield from opened(server.url)


def opened(url: str) -> Iterator[BaseDatabaseWrapper]:
    database = ConnectionHandler({"default": dj_database_url.parse(url)})["default"]
    yield database
    database.close()


def test_it_finds_what_a_star_that_is_anything_covers(database: BaseDatabaseWrapper) -> None:
    draw = random.Random(8)
    names = sorted({"".join(draw.choices(r"aAb._-%?[]\^", k=draw.randint(1, 6))) for _ in range(300)})
    holding(database, names)
    for _ in range(400):
        patterns = ["".join(draw.choices(r"aAb._-%?[]\^***", k=draw.randint(1, 7))) for _ in range(2)]
        wanted = [name for name in names if any(naive(pattern, name) for pattern in patterns)]
        assert found(database, *patterns) == wanted, patterns


def test_it_finds_a_name_in_a_column_of_json(database: BaseDatabaseWrapper) -> None:
    kind = "jsonb" if database.vendor == "postgresql" else "text"
    held = [{"source": "orders"}, {"source": "shop-eu"}, {"stored": "orders"}, None]
    with database.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(f"CREATE TABLE streams_event (id integer, after {kind})")
        rows = [(pk, None if after is None else json.dumps(after)) for pk, after in enumerate(held)]
        cursor.executemany("INSERT INTO streams_event VALUES (%s, %s)", rows)
        cursor.execute("COMMIT")
        for patterns, wanted in (
            (["ord*"], {0}),
            (["shop-*", "orders"], {0, 1}),
            (['"*'], set()),
            (["*"], {0, 1}),
        ):
            inside_of = (
                Event.objects.order_by().filter(inside(patterns, KT("after__source"))).values_list("id")
            )
            cursor.execute(*inside_of.query.get_compiler(connection=database).as_sql())
            assert {pk for (pk,) in cursor.fetchall()} == wanted, patterns


def test_no_pattern_takes_long(database: BaseDatabaseWrapper) -> None:
    holding(database, ["a" * 50] * 10_000)
    for pattern in EXPENSIVE:
        watch = Stopwatch()
        assert found(database, pattern) == []
        assert watch.elapsed_s < 1, pattern
