"""A text, an array or a map of a query does not become larger than the heap that everybody shares."""

import pytest
from pyspark.sql import SparkSession

from spark import functions, plans, results
from spark.walk import QueryRefused

pytestmark = pytest.mark.spark

MANY = f"array({', '.join('1' * 33)})"
LONG = "split(body, '')"
WIDE = f"ARRAY<STRUCT<{', '.join(f'c{n}: INT' for n in range(900))}>>"
EVEN = "concat(" + ", ".join(["body"] * 499) + ")"


def chain(first: str, again: str, *, times: int = 33) -> str:
    """A query over a query over … whose column ``a`` goes into the next."""
    inner = f"(SELECT {first} AS a FROM messages)"
    for _ in range(times):
        inner = f"(SELECT {again} AS a FROM {inner})"
    return f"SELECT length(a) FROM {inner}"


def nested(first: str, again: str, *, times: int) -> str:
    for _ in range(times):
        first = again.format(first)
    return first


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT aggregate({MANY}, 'xxxxxxxxxxxxxxxx', (a, x) -> concat(a, a))",
        f"SELECT aggregate({MANY}, 'x', (a, x) -> a || a)",
        f"SELECT reduce({MANY}, 'x', (a, x) -> concat_ws('', a, x, a), a -> length(a))",
        f"SELECT aggregate({MANY}, 'x', (a, x) -> if(x = 1, concat(lower(a), upper(a)), a))",
        f"SELECT aggregate({MANY}, 'x', (a, x) -> replace(a, 'x', 'xx'))",
        f"SELECT aggregate(transform({MANY}, x -> 'xx'), 'x', (a, x) -> replace(a, 'x', x))",
        f"SELECT aggregate({MANY}, 'x', (a, x) -> regexp_replace(a, '(.+)', '$1$1'))",
        f"SELECT aggregate({MANY}, 'x', (a, x) -> hex(a))",
        f"SELECT aggregate({MANY}, '\"', (a, x) -> to_json(array(a)))",
        f"SELECT aggregate({MANY}, array(1), (a, x) -> array_union(a, transform(a, y -> y + x + size(a))))",
        f"SELECT aggregate({MANY}, array(1), (a, x) -> flatten(array(a, a)))",
        f"SELECT aggregate({MANY}, array(1), (a, x) -> flatten(transform(a, y -> array(y, y))))",
        f"SELECT aggregate({MANY}, array(1, 2), (a, x) -> flatten(transform(a, y -> a)))",
        f"SELECT aggregate({MANY}, named_struct('t', 'x'), (a, x) -> named_struct('t', concat(a.t, a.t)))",
        f"SELECT aggregate({MANY}, 'x', (a, x) -> aggregate(array(1, 2, 3), a, (b, y) -> concat(b, a)))",
        f"SELECT exists({MANY}, z -> aggregate({MANY}, 'x', (a, x) -> concat(a, a)) = 'y')",
        f"SELECT 1 WHERE aggregate({MANY}, 'x', (a, x) -> concat(a, a)) = 'y'",
        f"SELECT * FROM messages LATERAL VIEW explode(array(aggregate({MANY}, 'x', (a, x) -> a || a))) t AS c",
        f"SELECT size(transform({LONG}, x -> body)) FROM messages",
        f"SELECT transform({LONG}, x -> transform({LONG}, y -> 1)) FROM messages",
        f"SELECT zip_with({LONG}, {LONG}, (x, y) -> concat(x, body)) FROM messages",
        f"SELECT aggregate({LONG}, '', (a, x) -> concat(a, body)) FROM messages",
        "SELECT replace(body, ',', body) FROM messages",
        "SELECT regexp_replace(body, '', body) FROM messages",
        f"SELECT array_join({LONG}, body) FROM messages",
        f"SELECT concat_ws(body, {LONG}) FROM messages",
        "SELECT regexp_extract_all(body, '(?=(.*))', 1) FROM messages",
        "SELECT regexp_extract_all(body, '(?<=(.{0,9999}))', 1) FROM messages",
        "SELECT regexp_extract_all(body, key, 1) FROM messages",
        "SELECT size(regexp_extract_all(body, concat('(?', '=(.*))'))) FROM messages",
        "SELECT regexp_extract_all(s.*) FROM (SELECT body, key FROM messages) s",
        "SELECT regexp_replace(body, '(?=(.*))', '$1') FROM messages",
        "SELECT regexp_replace(body, '(?x)( ?=(.*))', '$1') FROM messages",
        "SELECT regexp_replace(body, key, '$1') FROM messages",
        f"SELECT array_join(transform({LONG}, x -> cast(NULL AS string)), '', body) FROM messages",
        f"SELECT transform({LONG}, x -> from_json('[{{}}]', '{WIDE}')) FROM messages",
        f"SELECT from_json(body, '{WIDE}') FROM messages",
        f"SELECT size(from_json('[{'{},' * 900}{{}}]', '{WIDE}'))",
        f"SELECT parse_json(body)::{WIDE} FROM messages",
        f"SELECT variant_get(parse_json(body), '$.a', '{WIDE}') FROM messages",
        f"SELECT to_json(from_json(body, 'ARRAY<STRUCT<{'a' * 5_000}: INT>>')) FROM messages",
        f"SELECT to_json(transform({LONG}, x -> struct(1 AS {'a' * 5_000}))) FROM messages",
        f"SELECT * FROM messages LATERAL VIEW json_tuple(body, {', '.join(['key'] * 600)}) t",
        "SELECT replace(s.*) FROM (SELECT body, ',', body FROM messages) s",
        "SELECT concat_ws(s.*) FROM (SELECT body, split(body, '') FROM messages) s",
        chain("body", "concat(a, a)"),
        chain("body", "a || upper(a)"),
        chain("'x'", "concat_ws('-', a, a)"),
        chain("'x'", "replace(a, 'x', 'xx')"),
        chain("'x'", "hex(a)"),
        "SELECT length(a33) FROM (SELECT 'x' AS a0, "
        + ", ".join(f"concat(a{n}, a{n}) AS a{n + 1}" for n in range(33))
        + ")",
        "WITH a0 AS (SELECT body AS a FROM messages), "
        + ", ".join(f"a{n + 1} AS (SELECT concat(a, a) AS a FROM a{n})" for n in range(33))
        + " SELECT length(a) FROM a33",
        f"SELECT {nested('array(1, 2)', 'flatten(transform({}, x -> array(x, x)))', times=33)}",
    ],
)
def test_what_doubles_or_multiplies_a_value_is_refused(spark: SparkSession, sql: str) -> None:
    with pytest.raises(QueryRefused, match="more than 500 times as large as a body"):
        plans.parse(spark, sql, tables=("messages",))


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT aggregate({MANY}, 0, (a, x) -> a + x * a, a -> a * a)",
        f"SELECT aggregate({LONG}, '', (a, x) -> concat(a, x, ', ')) FROM messages",
        f"SELECT aggregate({LONG}, '', (a, x) -> concat(x, a, key)) FROM messages",
        f"SELECT aggregate({LONG}, '', (a, x) -> if(length(x) > length(a), x, a)) FROM messages",
        f"SELECT aggregate({LONG}, '', (a, x) -> greatest(a, x, key)) FROM messages",
        f"SELECT aggregate({LONG}, struct(0 AS s, 0 AS n), (a, x) -> struct(a.s + x, a.n + 1), a -> a.s / a.n) "
        "FROM messages",
        "SELECT aggregate(array('<b>', '<i>'), body, (a, x) -> replace(a, x, '')) FROM messages",
        f"SELECT aggregate({MANY}, array(0), (a, x) -> array_append(a, element_at(a, -1) + x))",
        f"SELECT transform({LONG}, (x, i) -> struct(offset + i, x, concat(stream, key, x))) FROM messages",
        f"SELECT filter({LONG}, x -> contains(body, x) AND length(concat(body, x)) > 3) FROM messages",
        "SELECT transform(from_json(body, 'ARRAY<STRUCT<a: ARRAY<INT>, b: INT>>'), "
        "g -> struct(g.b, transform(g.a, i -> struct(i + 1, i * 2)))) FROM messages",
        "SELECT map_filter(headers, (k, v) -> k = v), transform_values(headers, (k, v) -> upper(v)) FROM messages",
        "SELECT to_json(struct(*)), hex(sha2(body, 256)), base64(encode(body, 'UTF-8')) FROM messages",
        "SELECT concat_ws(', ', stream, key, body, offset, id), concat(body, body, body) FROM messages",
        "SELECT regexp_replace(body, '[0-9]+', '<$0>'), replace(body, 'a', 'bc'), array_join(array(key, id), ', ') "
        "FROM messages",
        "SELECT stream, collect_list(body), listagg(key, ', '), array_agg(struct(key, body)) FROM messages GROUP BY 1",
        r"SELECT regexp_extract_all(body, '(?i)(?:a)(?<name>\\d+)(?!b)', 1), regexp_replace(body, '(a)(b)', '$2$1') "
        "FROM messages",
        f"SELECT from_json(body, '{WIDE[6:-1]}'), from_json(body, 'ARRAY<STRUCT<a: INT, b: ARRAY<STRING>>>') "
        "FROM messages",
        "SELECT parse_json(body)::array<int>, array_join(from_json(body, 'ARRAY<STRING>'), ',', 'null') FROM messages",
        "SELECT json_tuple(body, 'a', 'b', 'c') FROM messages",
        chain("body", "concat(a, ', ')"),
        chain("body", "coalesce(lower(a), upper(a), substr(a, 1, length(a)))"),
    ],
)
def test_what_grows_with_what_is_there_may_be_asked(spark: SparkSession, sql: str) -> None:
    plans.parse(spark, sql, tables=("messages",))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT collect_list(id) FROM range(1000000000)",
        "SELECT median(a.id) FROM range(0, 2000, 1) a, range(0, 3000, 2) b",
        "SELECT listagg(cast(id AS string), ',') FROM (SELECT id FROM range(9, 1000000000, 3, 8) UNION SELECT 1)",
        "SELECT mode(id) FROM range(length('x'))",
    ],
)
def test_rows_that_are_made_are_not_kept_at_once(spark: SparkSession, sql: str) -> None:
    with pytest.raises(QueryRefused, match="keeps the rows of a group at once"):
        plans.parse(spark, sql, tables=("messages",))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*), sum(id) FROM range(1000000000)",
        "SELECT median(id), collect_set(id % 10) FROM range(10, 900000)",
        "SELECT stream, percentile(bytes, 0.9) FROM messages GROUP BY stream",
    ],
)
def test_rows_that_are_there_or_few_may_be_kept(spark: SparkSession, sql: str) -> None:
    plans.parse(spark, sql, tables=("messages",))


def test_a_condition_that_doubles_a_text_is_refused(spark: SparkSession) -> None:
    with pytest.raises(QueryRefused, match="500 times"):
        plans.condition(spark, f"length(aggregate({MANY}, body, (a, x) -> concat(a, a))) > 3")


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT {EVEN} AS a, {EVEN} AS b FROM messages",
        f"SELECT * FROM (SELECT {EVEN} AS a FROM messages), (SELECT {EVEN} AS b FROM messages)",
        f"SELECT {EVEN} AS a, * FROM messages",
        f"SELECT json_tuple(body, {', '.join(['key'] * 600)}) FROM messages LIMIT 1",
        f"SELECT t.* FROM messages, LATERAL json_tuple(body, {', '.join(['key'] * 600)}) t",
        "SELECT * FROM (SELECT stream, body FROM messages) PIVOT ("
        + ", ".join(f"max(body) AS c{n}" for n in range(30))
        + f" FOR stream IN ({', '.join(map(repr, map(str, range(30))))}))",
    ],
)
def test_a_row_is_bounded_with_all_its_columns(spark: SparkSession, sql: str) -> None:
    with pytest.raises(QueryRefused, match=r"500 times as large as a body"):
        plans.parse(spark, sql, tables=("messages",))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT m.*, r.*, n.body FROM messages m JOIN messages r USING (key) JOIN messages n USING (key)",
        " UNION ALL ".join(["SELECT * FROM messages"] * 150),
        f"SELECT {', '.join(f'body:f{n}' for n in range(300))} FROM messages",
    ],
)
def test_a_row_may_be_wide(spark: SparkSession, sql: str) -> None:
    plans.parse(spark, sql, tables=("messages",))


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT count(*) FROM messages m JOIN (SELECT id, concat('{'x' * 9_000}', id) AS t FROM range(150000)) r "
        "ON m.offset = r.id",
        f"SELECT count(*) FROM messages, LATERAL (SELECT concat(id, '{'x' * 900}') AS t FROM range(150000))",
        f"WITH r AS (SELECT concat('{'x' * 900}', id) AS t FROM range(150000)) "
        "SELECT 1 FROM messages JOIN r ON t = key",
        f"SELECT 1 FROM messages WHERE key IN (SELECT concat('{'x' * 900}', id) FROM range(150000))",
        "SELECT count(*) FROM messages, range(2000) a, range(20000) b, range(1000) c",
        "SELECT n FROM messages, (SELECT count(*) OVER () AS n FROM range(1000000000))",
    ],
)
def test_what_is_made_for_one_side_of_a_join_is_not_too_much(spark: SparkSession, sql: str) -> None:
    with pytest.raises(QueryRefused, match="One side of a join"):
        plans.parse(spark, sql, tables=("messages",))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM range(1000000) r LEFT JOIN messages m ON m.offset = r.id",
        "SELECT n FROM messages, (SELECT count(*) AS n FROM range(1000000000))",
        f"SELECT * FROM messages, (SELECT concat('{'x' * 900}', id) AS t FROM range(150000) LIMIT 10)",
    ],
)
def test_rows_may_be_made_for_a_join(spark: SparkSession, sql: str) -> None:
    plans.parse(spark, sql, tables=("messages",))


def test_every_function_is_in_one_class_of_how_large_its_result_is() -> None:
    for name in sorted(functions.ALLOWED | functions.TABLES):
        assert sum(name in each for each in results.CLASSES) == 1, name
    assert frozenset().union(*results.CLASSES) <= functions.ALLOWED | functions.TABLES
    assert not results.FIXED & results.LARGEST
    assert functions.ALLOWED >= results.KEEPING
