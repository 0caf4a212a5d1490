"""Only reading, and only the tables that are there: decided on what Spark makes of the text."""

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, Row, SparkSession

from spark import plans
from spark.functions import ALLOWED
from spark.walk import QueryRefused

pytestmark = pytest.mark.spark

TABLES = ("messages", "metrics", "rollups")
T = TypeVar("T")


@pytest.fixture(scope="module")
def asking(spark: SparkSession) -> SparkSession:
    """A session as a query has it, with small tables."""
    own = spark.newSession()
    for table in TABLES:
        rows = own.createDataFrame(
            [], "stream string, offset bigint, key string, body string, headers map<string, string>"
        )
        rows.createOrReplaceTempView(table)
    return own


def elsewhere(ask: Callable[[], T]) -> T:
    """What a function gives in a new thread, as each query has one; Spark knows no session of that."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(ask).result()


def asked(session: SparkSession, sql: str) -> DataFrame:
    return elsewhere(lambda: plans.analyzed(session, plans.parse(session, sql, tables=TABLES)))


def only_row(session: SparkSession, sql: str) -> Row:
    (row,) = asked(session, sql).collect()
    return row


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM messages WHERE offset > 3 AND key LIKE 'a%' OR offset BETWEEN 1 AND 2 ORDER BY offset LIMIT 3",
        "WITH a AS (SELECT stream, count(*) AS n FROM messages GROUP BY ALL HAVING count(*) > 1) SELECT * FROM a",
        "SELECT m.stream, r.offset FROM messages m LEFT JOIN rollups r USING (stream) WHERE NOT m.offset <=> r.offset",
        "SELECT (SELECT max(offset) FROM metrics) AS m, EXISTS (SELECT 1 FROM messages) AS e",
        "SELECT rank() OVER (PARTITION BY stream ORDER BY offset), sum(offset) OVER (ORDER BY offset ROWS 2 PRECEDING) "
        "FROM messages",
        "SELECT k, v FROM messages LATERAL VIEW explode(headers) h AS k, v",
        "SELECT * FROM messages m, LATERAL (SELECT m.offset + 1 AS next)",
        "SELECT * FROM messages PIVOT (count(offset) FOR stream IN ('a', 'b'))",
        "SELECT * FROM (SELECT stream, offset FROM messages) UNPIVOT (v FOR k IN (offset))",
        "SELECT stream FROM messages UNION SELECT stream FROM rollups EXCEPT SELECT 'a' INTERSECT SELECT 'b'",
        "SELECT CASE WHEN cast(body AS int) > 1 THEN 'a' ELSE trim(body) END, extract(hour FROM now()) FROM messages",
        "SELECT filter(array(1, 2), x -> x > 1), parse_json(body):a.b::int, struct(1 AS a).a FROM messages",
        "SELECT count(DISTINCT key) FILTER (WHERE offset > 1), percentile_cont(0.5) WITHIN GROUP (ORDER BY offset) "
        "FROM messages GROUP BY GROUPING SETS ((stream), ())",
        "SELECT approx_percentile(offset, 0.5), percentile_approx(offset, array(0.5, 0.9), 10000) FROM messages",
        "SELECT * EXCEPT (body) FROM messages TABLESAMPLE (10 PERCENT)",
        "SELECT a FROM VALUES (1), (2) t(a)",
        "TABLE messages",
        "SELECT now(), current_date, current_timestamp, localtimestamp() FROM messages WHERE timestamp(body) < now()",
        "SELECT user, m.user FROM (SELECT key AS user FROM messages) m WHERE user IN (SELECT 'a' WHERE now() IS NULL)",
    ],
)
def test_reading_is_possible(asking: SparkSession, sql: str) -> None:
    asked(asking, sql)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("", "empty"),
        ("SELEC 1", "Syntax error"),
        ("SELECT 1; SELECT 2", r"^Only one statement is allowed\.$"),
        ("SELECT 1;\n\nDROP TABLE messages", r"^Only one statement is allowed\.$"),
        (f"SELECT {'9' * 41}", r"^Decimal precision 41 exceeds max precision 38\.$"),
        ("SELECT INTERVAL '99999999999999' YEAR", "^Error parsing ' 99999999999999 YEAR' to interval"),
        ("SELECT nope FROM messages", "`nope`"),
        ("INSERT INTO messages VALUES (1)", "; INSERT is"),
        ("CREATE TABLE x AS SELECT 1", "; CREATE is"),
        ("CREATE TEMPORARY VIEW messages AS SELECT 1", "; CREATE is"),
        ("DROP TABLE messages", "; DROP is"),
        ("SET spark.sql.runSQLOnFiles=true", "; SET is"),
        ("ADD JAR '/tmp/x.jar'", "; ADD is"),
        ("CACHE TABLE messages", "; CACHE is"),
        ("EXPLAIN SELECT 1", "; EXPLAIN is"),
        ("SHOW TABLES", "; SHOW is"),
        ("DESCRIBE messages", "; DESCRIBE is"),
        ("BEGIN SELECT 1; END", "; BEGIN … END is"),
        ("EXECUTE IMMEDIATE 'SELECT 1'", "; EXECUTE IMMEDIATE is"),
        ("DECLARE VARIABLE x INT", "; DECLARE is"),
        ("USE elsewhere", "; USE is"),
        ("DESCRIBE QUERY SELECT 1", "; DESCRIBE is"),
        ("ALTER TABLE messages ADD COLUMNS (x INT)", "; ALTER is"),
        ("DELETE FROM messages", "; DELETE is"),
        ("UPDATE messages SET body = 1", "; UPDATE is"),
        ("RESET", "; RESET is"),
        ("REFRESH TABLE messages", "; REFRESH is"),
        ("SELECT * FROM parquet.`/etc`", "no files"),
        ("SELECT * FROM json.`file:///etc/passwd`", "no files"),
        ("SELECT * FROM IDENTIFIER('parquet.`/etc`')", "no files"),
        ("WITH a AS (SELECT * FROM text.`/etc/passwd`) SELECT * FROM a", "no files"),
        ("SELECT (SELECT max(value) FROM text.`/etc/passwd`)", "no files"),
        ("SELECT 1 WHERE 1 IN (SELECT value FROM text.`/etc/passwd`)", "no files"),
        ("SELECT * FROM spark_catalog.default.messages", "no other catalogs"),
        ("SELECT * FROM global_temp.x", "no other catalogs"),
        ("SELECT * FROM elsewhere", "There is no table 'elsewhere'"),
        ("SELECT * FROM messages WITH (path = '/etc')", "options"),
        ("SELECT * FROM messages VERSION AS OF 1", "; VERSION AS OF"),
        ("SELECT * FROM STREAM(messages)", "; STREAM is"),
        ("SELECT * FROM read_files('/etc')", "'read_files'"),
        ("SELECT _metadata.file_path FROM messages", "_metadata"),
        ("SELECT messages._metadata FROM messages", "_metadata"),
        ("SELECT exists(array(1), x -> _metadata.file_path IS NULL) FROM messages", "_metadata"),
        (
            "SELECT filter(array(1), x -> exists(array(2), y -> messages._METADATA IS NULL)) FROM messages",
            "_metadata",
        ),
        ("SELECT input_file_name() FROM messages", "'input_file_name'"),
        ("SELECT java_method('java.lang.System', 'getenv', 'HOME')", "'java_method'"),
        ("SELECT reflect('java.lang.Runtime', 'getRuntime')", "'reflect'"),
        ("SELECT system.builtin.java_method('a', 'b')", "java_method"),
        ("SELECT max(try_reflect('a', 'b')) OVER () FROM messages", "'try_reflect'"),
        ("SELECT filter(array(1), x -> java_method('a', 'b')) FROM messages", "'java_method'"),
        ("SELECT * FROM messages ORDER BY reflect('a', 'b')", "'reflect'"),
        ("SELECT current_user()", "current_user|CurrentUser"),
        ("SELECT current_user", "current_user"),
        ("SELECT max(session_user) FROM messages", "current_user"),
        (
            "SELECT 1 WHERE EXISTS (SELECT 1 FROM messages WHERE lower(user) = 'a' AND now() IS NULL)",
            "current_user",
        ),
        ("SELECT filter(array('a'), x -> x = current_user)", "current_user"),
        ("SELECT current_timezone()", "'current_timezone'"),
        ("SELECT ${env:PATH}", "Syntax error"),
        ("SELECT repeat('x', 1000000000)", "'repeat'"),
        ("SELECT stack(2000000000, 1)", "'stack'"),
        ("SELECT * FROM messages LATERAL VIEW stack(2000000000, 1) s AS a", "'stack'"),
        ("SELECT array_insert(array(1), 500000000, 1)", "'array_insert'"),
        ("SELECT * FROM range(0, 10, 1, 1000000000)", "no more than 10,000 partitions"),
        ("SELECT * FROM range(0, 10, 1, 9 * 9999)", "no more than 10,000 partitions"),
        ("SELECT * FROM range(0, 10, 1, '9999')", "no more than 10,000 partitions"),
        ("SELECT * FROM range(0, 10, 1, 0)", "no more than 10,000 partitions"),
        (
            "SELECT approx_percentile(offset, 0.5, 2147483647) FROM messages",
            "no more than 10,000 as its accuracy",
        ),
        ("SELECT percentile_approx(offset, 0.5, 10001) FROM messages", "no more than 10,000 as its accuracy"),
        (
            "SELECT approx_percentile(offset, 0.5, 9 * 9999) FROM messages",
            "no more than 10,000 as its accuracy",
        ),
        (
            "SELECT approx_percentile(offset, 0.5, '9999') FROM messages",
            "no more than 10,000 as its accuracy",
        ),
        (
            "SELECT approx_percentile(s.*) FROM (SELECT offset, 0.5, 2147483647) s",
            "no more than 10,000 as its accuracy",
        ),
        ("SELECT * FROM range(s.*)", "'range' takes no more"),
        (
            "SELECT approx_count_distinct(offset, 0.00001) FROM messages",
            "'approx_count_distinct' takes no more",
        ),
        (
            "SELECT count(*) FROM messages GROUP BY window(now(), '9 years', '1 microsecond')",
            "'window' takes no more",
        ),
        ("SELECT from_json(s.*) FROM (SELECT '{}', 'a INT') s", "one by one"),
        ("SELECT from_json(j => '{}', schema => 'a INT')", "in SQL's words"),
        ("SELECT IDENTIFIER('from_json')('{}', 'a INT')", r"; IDENTIFIER\(…\) is"),
        ("FROM messages |> AGGREGATE count(*)", r"; \|> is not"),
        ("FROM messages |> WHERE offset > 1", r"; \|> is not"),
        ("SELECT TRANSFORM (body) USING 'cat' FROM messages", "; TRANSFORM"),
        ("SELECT /*+ REPARTITION(100000) */ * FROM messages", r"A hint \(/\*\+ … \*/\) is not"),
        ("WITH RECURSIVE a AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM a) SELECT * FROM a", "RECURSIVE"),
        ("SELECT :parameter", "; a parameter"),
        ("SELECT * EXCEPT (a) FROM (SELECT 1 AS a)", "no column"),
        ("SELECT " + "(" * 3000 + "1" + ")" * 3000, "nested|complex"),
        ("SELECT " + " + ".join(["1"] * 400) + ", 1" * 3000, "large"),
        (" UNION ".join(["SELECT 1"] * 400), "nested"),
    ],
)
def test_anything_else_is_refused(asking: SparkSession, sql: str, said: str) -> None:
    with pytest.raises(QueryRefused, match=said) as refused:
        asked(asking, sql)
    assert "\n" not in str(refused.value)


OF_THE_JVM = {"class": "org.apache.spark.ml.linalg.VectorUDT", "pyClass": "this.x", "sqlType": "integer"}
OF_PYTHON = {"pyClass": "this.x", "serializedClass": "", "sqlType": "integer"}


def naming(code: dict[str, str]) -> str:
    """The text of a type, as JSON, for which Spark makes a class or imports a module."""
    field = {"name": "a", "type": {"type": "udt", **code}, "nullable": True, "metadata": {}}
    return json.dumps({"type": "struct", "fields": [field]})


@pytest.mark.parametrize(
    "wanted",
    ["a", "a.again.n", "count(*)", "1", "hash(a)", "xxhash64(a, 1)", "md5(to_json(a))", "try_to_binary(a)"],
)
def test_a_column_that_is_put_into_the_next_again_and_again_is_refused(
    asking: SparkSession, wanted: str
) -> None:
    inner = "SELECT array(offset) AS a FROM messages"
    for _ in range(40):
        inner = f"SELECT struct(a, 1 AS n, a AS again) AS a FROM ({inner})"
    with pytest.raises(QueryRefused, match="more than 5,000 fields"):
        asked(asking, f"SELECT {wanted} FROM ({inner})")


def doubled(first: str, again: str, *, times: int = 40) -> str:
    """An expression put into another one again and again; ``{}`` is where."""
    for _ in range(times):
        first = again.format(first)
    return first


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT hash({lambdas}) FROM messages",
        "SELECT hash(b40) FROM (SELECT offset AS b0, {aliases} FROM messages)",
        "WITH b0 AS (SELECT offset AS b FROM messages), {tables} SELECT hash(b) FROM b40",
        "SELECT hash(s.c) FROM {renamed}",
        "SELECT hash(*) FROM {stars}",
        "SELECT (SELECT hash(a) FROM {inner}) FROM messages",
        "SELECT hash(v) FROM messages, LATERAL (SELECT a AS v FROM {inner})",
        "SELECT hash(map_from_arrays(array({lambdas}), array({lambdas}))) FROM messages",
        "SELECT hash(from_json(body, '{wide}')) FROM messages",
    ],
)
def test_what_is_put_into_the_next_again_and_again_by_any_name_is_refused(
    asking: SparkSession, sql: str
) -> None:
    written = sql.format(
        lambdas=doubled("array(offset)", "transform({}, x -> struct(x, x AS y))"),
        aliases=", ".join(f"struct(b{n}, b{n} AS again) AS b{n + 1}" for n in range(40)),
        tables=", ".join(f"b{n + 1} AS (SELECT struct(b, b AS c) AS b FROM b{n})" for n in range(40)),
        renamed=doubled("VALUES (1) AS s (c)", "(SELECT struct(s.c, s.c AS d) FROM {}) AS s (c)"),
        stars=doubled("messages", "(SELECT struct(*) AS a, struct(*) AS b FROM {})"),
        inner=doubled("(SELECT 1 AS a)", "(SELECT struct(a, a AS b) AS a FROM {})"),
        wide=doubled("a INT", "a STRUCT<{}, b INT>", times=4) + "".join(f", c{n} INT" for n in range(60_000)),
    )
    with pytest.raises(QueryRefused, match="more than 5,000 fields"):
        asked(asking, written)


def test_a_condition_that_puts_a_value_into_the_next_again_and_again_is_refused(asking: SparkSession) -> None:
    lambdas = doubled("array(offset)", "transform({}, x -> struct(x, x AS y))")
    with pytest.raises(QueryRefused, match="more than 5,000 fields"):
        elsewhere(lambda: plans.condition(asking, f"hash({lambdas}) = 1"))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("from_json(body, 'n INT').n > 3 AND", "AND"),
        ("offset > 3 OR", "OR"),
        ("offset > 3 AS late", "late"),
        ("(offset > 3) late", "late"),
        ("offset > 3 AS (a, b)", "a, b"),
    ],
)
def test_a_condition_that_ends_in_a_word_that_would_be_dropped_is_refused(
    asking: SparkSession, text: str, name: str
) -> None:
    with pytest.raises(QueryRefused, match=rf"^A condition takes no name: {name} at its end is read as one"):
        elsewhere(lambda: plans.condition(asking, text))


def test_a_name_within_a_condition_is_none_of_the_condition(asking: SparkSession) -> None:
    frame = asking.createDataFrame([(3,), (4,)], "n int")
    wanted = elsewhere(lambda: plans.condition(asking, "struct(n AS m).m > 3 AND `n` < 9"))
    assert plans.chosen(frame, wanted).count() == 1


def test_values_that_are_put_together_some_times_may_be_asked(asking: SparkSession) -> None:
    wide = ", ".join(f"struct(stream, key, offset + {n} AS n) AS s{n}" for n in range(100))
    inner = f"SELECT hash(s1, s2), s3, to_json(struct(*)) AS whole FROM (SELECT *, {wide} FROM messages)"
    asked(
        asking, f"SELECT count(DISTINCT whole), collect_list(struct(s3, s3 AS t)) FROM ({inner}) GROUP BY s3"
    )
    chain = "SELECT offset AS n FROM messages"
    for _ in range(30):
        chain = f"SELECT CASE WHEN n > 3 THEN n + n * n ELSE coalesce(n, n + 1) END AS n FROM ({chain})"
    asked(asking, f"SELECT sum(n), hash(n, n) FROM ({chain}) GROUP BY n")


@pytest.mark.parametrize("code", [OF_THE_JVM, OF_PYTHON], ids=["jvm", "python"])
@pytest.mark.parametrize(
    "call",
    [
        "from_json(body, {})",
        "from_csv(body, {})",
        "variant_get(parse_json(body), '$', {})",
        "try_variant_get(parse_json(body), '$', {})",
        "FROM_JSON(body, {}, map('mode', 'FAILFAST'))",
        "from_json(body, concat({}, ''))",
        "from_json(body, cast({} AS string))",
        "from_json(body, {} COLLATE UTF8_BINARY)",
        "from_json(body, if(true, {}, ''))",
        "from_json(body, array({})[0])",
        "from_json(body, get_json_object(to_json(struct({} AS s)), '$.s'))",
        "filter(array(body), x -> from_json(x, {}) IS NOT NULL)",
    ],
)
def test_a_type_names_no_code(asking: SparkSession, call: str, code: dict[str, str]) -> None:
    written = call.format(f"'{naming(code)}'")
    with pytest.raises(QueryRefused, match="in SQL's words"):
        elsewhere(lambda: plans.parse(asking, f"SELECT {written} FROM messages", tables=TABLES))
    with pytest.raises(QueryRefused, match="in SQL's words"):
        elsewhere(lambda: plans.condition(asking, f"{written} IS NOT NULL"))


@pytest.mark.parametrize(
    "call",
    [
        "from_json(body, 'a int', {})",
        "to_json(struct(body), {})",
        "schema_of_json('1', {})",
        "from_json(body, schema_of_json('1', {}))",
        "from_csv(body, 'a int', {})",
    ],
)
@pytest.mark.parametrize(
    "options",
    [
        "map('compression', 'java.util.Timer')",
        "map('mode', 'FAILFAST', 'Codec', 'java.util.Timer')",
        "map(concat('com', 'pression'), 'java.util.Timer')",
        "map(s.*)",
        "map('mode', s.*)",
        "map_concat(map('compression', 'java.util.Timer'))",
    ],
)
def test_an_option_names_no_code(asking: SparkSession, call: str, options: str) -> None:
    written = call.format(options)
    with pytest.raises(QueryRefused, match="ption"):
        elsewhere(
            lambda: plans.parse(asking, f"SELECT {written} FROM messages, (SELECT 'a', 'b') s", tables=TABLES)
        )
    with pytest.raises(QueryRefused, match="ption"):
        elsewhere(lambda: plans.condition(asking, f"{written} IS NOT NULL"))


def test_types_are_written_in_sql_or_seen_in_an_example(asking: SparkSession) -> None:
    assert only_row(
        asking,
        """SELECT from_json('{"a": [1]}', 'a ARRAY<INT>').a, from_json('[2]', 'array<int>'),
        from_json('{"A": 3}', schema_of_json('{"A": 1}')).A, variant_get(parse_json('4'), '$', 'int'),
        from_csv('5|x', 'a INT, b STRING', map('SEP', '|', 'mode', 'FAILFAST')).a,
        to_json(struct(6 AS a, NULL AS b), map('ignoreNullFields', 'false')),
        try_variant_get(parse_json('7'), '$')::int""",
    ) == ([1], [2], 3, 4, 5, '{"a":6,"b":null}', 7)


def test_a_regular_expression_that_runs_out_of_stack_leaves_spark_to_the_others(asking: SparkSession) -> None:
    text = "a" * 15_000
    with pytest.raises(Py4JJavaError, match="StackOverflowError"):
        asked(asking, f"SELECT regexp_like(concat(id, '{text}'), '1?(a|b)*c') FROM range(2)").collect()
    assert only_row(asking, "SELECT count(*) FROM range(2)") == (2,)


PUT_IN = ["${env:PATH}", "${system:user.dir}", "${spark.app.id}", "${hiveconf:x}", "${x}", "$${env:PATH}"]


@pytest.mark.parametrize("text", PUT_IN)
def test_nothing_of_the_process_is_put_into_the_text_of_a_query(asking: SparkSession, text: str) -> None:
    assert os.environ["PATH"]
    assert only_row(asking, f"SELECT '{text}', concat('-- {text}', '')") == (text, f"-- {text}")


@pytest.mark.parametrize("text", PUT_IN)
def test_nothing_of_the_process_is_put_into_a_condition(asking: SparkSession, text: str) -> None:
    one = asking.createDataFrame([(text,)], "body string")
    chosen = elsewhere(lambda: plans.chosen(one, plans.condition(asking, f"body = '{text}'")))
    assert chosen.count() == 1


def test_a_condition_asks_nothing_of_the_files(asking: SparkSession) -> None:
    with pytest.raises(QueryRefused, match="_metadata"):
        plans.condition(asking, "exists(array(1), x -> _metadata.file_path LIKE '%/history/%')")


def test_a_name_in_a_lambda_function_that_is_none_is_told_without_a_place(asking: SparkSession) -> None:
    with pytest.raises(QueryRefused) as refused:
        asked(asking, "SELECT\n  filter(array(1), x -> x > nope) FROM messages")
    assert ("`nope`" in str(refused.value), "position" in str(refused.value)) == (True, False)
    with pytest.raises(QueryRefused, match=r"`nope`.*\(line 2 position 2\)"):
        asked(asking, "SELECT\n  nope FROM messages")


def test_a_condition_tells_nothing_of_the_machine(asking: SparkSession) -> None:
    one = asking.createDataFrame([("a",)], "body string")
    with pytest.raises(QueryRefused, match="current_user"):
        elsewhere(lambda: plans.chosen(one, plans.condition(asking, "body <> current_user")))


@pytest.mark.parametrize(
    "text",
    [
        "at > TIMESTAMP 'now'",
        "at > DATE ' today'",
        'at > timestamp_ntz"tomorrow UTC"',
        r"at > TIMESTAMP '\156ow'",
        "at > r'now'",
        "at IN ('2026-01-01', 'yesterday')",
        "cast(at AS date) = cast('today' AS date)",
        "at > to_timestamp(concat('n', 'ow'))",
    ],
)
def test_a_condition_takes_no_time_from_a_word(asking: SparkSession, text: str) -> None:
    frame = asking.createDataFrame([], "at timestamp, body string")
    with pytest.raises(QueryRefused, match="the same messages each time"):
        elsewhere(lambda: plans.chosen(frame, plans.condition(asking, text)))


@pytest.mark.parametrize(
    "text",
    [
        "at < TIMESTAMP '2026-01-01 00:00:00' AND at > DATE'-0044-03-15'",
        "at < '2026-01-01' AND body <> 'now' AND body IN ('today')",
        "timestamp(body) IS NULL AND at > timestamp('1999-01-01') - INTERVAL 1 DAY",
    ],
)
def test_a_condition_may_name_a_time(asking: SparkSession, text: str) -> None:
    frame = asking.createDataFrame([], "at timestamp, body string")
    assert elsewhere(lambda: plans.chosen(frame, plans.condition(asking, text)).count()) == 0


def test_times_in_a_text_are_in_the_time_zone_of_the_session(spark: SparkSession) -> None:
    own = spark.newSession()
    own.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    assert only_row(own, "SELECT unix_seconds(TIMESTAMP '1970-01-01 09:00:00')") == (0,)


def test_every_function_on_the_list_is_one_of_sparks_own(spark: SparkSession) -> None:
    known = {row.function for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    assert ALLOWED - known == set()
