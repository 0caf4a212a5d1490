"""The plan of a query does not become larger than Spark can make it, however short its text is."""

import pytest
from pyspark.sql import SparkSession

from spark import plans
from spark.walk import QueryRefused

pytestmark = pytest.mark.spark

TABLES = ("messages", "rollups")
COLUMNS = ", ".join(f"{n} AS c{n}" for n in range(24))


def names(count: int) -> str:
    return ", ".join(f"c{n}" for n in range(count))


def tables_of_with(again: str, *, times: int) -> str:
    """A query whose tables of WITH each name the one before."""
    made = "".join(f", t{n + 1} AS ({again.format(f't{n}')})" for n in range(times))
    return f"WITH t0 AS (SELECT 1 AS x){made} SELECT count(*) FROM t{times}"


def chain(again: str, outermost: str, *, times: int, first: str = "SELECT offset AS a FROM messages") -> str:
    """A query over a query over … whose column ``a`` goes into the next."""
    for _ in range(times):
        first = f"SELECT {again} AS a FROM ({first})"
    return outermost.format(f"({first})")


@pytest.mark.parametrize(
    "grouping",
    [
        f"CUBE({names(24)})",
        f"{names(24)} WITH CUBE",
        f"c0, CUBE({names(9)})",
        f"CUBE({names(5)}), CUBE({names(5)})",
        ", ".join(["CUBE(c0, c1, c2, c3, c4, c5, c6)"] * 4),
        f"ROLLUP({names(20)}), ROLLUP({names(20)})",
        f"GROUPING SETS (CUBE({names(24)}))",
        f"GROUPING SETS (GROUPING SETS (ROLLUP({names(2)}), CUBE ( {names(20)}, (c20, c21), c22)), ())",
        f"GROUPING SETS ({', '.join(['CUBE(c0, c1, c2, c3, c4)'] * 9)})",
        f"GROUPING SETS ({', '.join(['(c0)'] * 20)}), GROUPING SETS ({', '.join(['(c1)'] * 20)})",
    ],
)
def test_grouping_sets_are_few(spark: SparkSession, grouping: str) -> None:
    with pytest.raises(QueryRefused, match=r"more than 256 grouping sets.*Name fewer columns"):
        plans.parse(spark, f"SELECT count(*) FROM (SELECT {COLUMNS}) GROUP BY {grouping}", tables=TABLES)


def test_grouping_sets_within_an_expression_of_a_message_are_few(spark: SparkSession) -> None:
    sql = f"EXISTS (SELECT 1 FROM (SELECT {COLUMNS}) GROUP BY GROUPING SETS (CUBE({names(24)})))"
    with pytest.raises(QueryRefused, match="grouping sets"):
        plans.condition(spark, sql)


@pytest.mark.parametrize(
    "sql",
    [
        tables_of_with("SELECT x FROM {0} UNION ALL SELECT x FROM {0}", times=26),
        tables_of_with("SELECT a.x FROM {0} a, {0} b", times=26),
        tables_of_with("SELECT x FROM {0} WHERE x IN (SELECT x FROM {0})", times=26),
        tables_of_with("SELECT x, (SELECT max(x) FROM {0}) FROM {0}", times=26),
        f"SELECT {', '.join(f'count(DISTINCT offset + {n})' for n in range(120))} FROM messages",
        "SELECT * FROM (SELECT stream, offset FROM messages) PIVOT ("
        + ", ".join(f"count(offset + {n}) AS c{n}" for n in range(100))
        + f" FOR stream IN ({', '.join(map(repr, map(str, range(100))))}))",
    ],
)
def test_a_plan_is_not_far_larger_than_its_text(spark: SparkSession, sql: str) -> None:
    with pytest.raises(QueryRefused, match=r"more than 10,000 parts.*Name them fewer times"):
        plans.parse(spark, sql, tables=TABLES)


@pytest.mark.parametrize(
    "sql",
    [
        chain("a + a", "SELECT a FROM {} WHERE a > 1", times=24),
        chain("if(a > 1, a, a + 1)", "SELECT a FROM {} WHERE a > 1", times=16),
        chain("a + a", "SELECT count(*) FROM {} GROUP BY a HAVING a > 1", times=24),
        chain("a + a", "SELECT 1 FROM {} x JOIN messages y ON x.a = y.offset", times=24),
        chain("a + a", "SELECT 1 FROM {} x JOIN (SELECT offset AS a FROM messages) y USING (a)", times=24),
        chain("a + a", "SELECT 1 FROM {} x NATURAL JOIN (SELECT offset AS a FROM messages) y", times=24),
        chain("a + a", "SELECT a FROM {} INTERSECT SELECT 1", times=24),
        chain("a + a", "SELECT a FROM {} WHERE a IN (SELECT offset FROM messages)", times=24),
        chain(
            "a + a",
            "SELECT 1 FROM messages m WHERE EXISTS (SELECT 1 FROM {} x WHERE x.a = m.offset)",
            times=24,
        ),
        chain("array_intersect(a, a)", "SELECT explode(a) FROM {}", times=24, first="SELECT array(1) AS a"),
        chain(
            "array_intersect(a, a)",
            "SELECT * FROM {} LATERAL VIEW explode(a) t AS b",
            times=24,
            first="SELECT array(1) AS a",
        ),
        "SELECT 1 FROM (SELECT 1 AS a0, "
        + ", ".join(f"a{n} + a{n} AS a{n + 1}" for n in range(24))
        + ") WHERE a24 > 1",
    ],
)
def test_a_condition_is_not_far_larger_once_its_columns_are_written_out(
    spark: SparkSession, sql: str
) -> None:
    with pytest.raises(QueryRefused, match=r"more than 20,000 parts once its columns are written out"):
        plans.parse(spark, sql, tables=TABLES)


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT {names(8)}, count(*) FROM (SELECT {COLUMNS}) GROUP BY CUBE({names(8)})",
        "SELECT stream, key, count(*) FROM messages GROUP BY GROUPING SETS (ROLLUP(stream, key), CUBE(key), ())",
        f"SELECT count(*) FROM (SELECT {COLUMNS}) GROUP BY ROLLUP({names(24)})",
        "SELECT count(*) FROM messages GROUP BY stream, key WITH CUBE",
        "SELECT 'cube(' AS cube, \"rollup(a, b\" AS rollup FROM messages -- CUBE(",
        tables_of_with("SELECT x FROM {0} UNION ALL SELECT x FROM {0}", times=6),
        tables_of_with("SELECT x + x AS x FROM {0}", times=26),
        chain("a + a", "SELECT a FROM {}", times=24),
        chain("a + a", "SELECT a FROM {} WHERE a > 1", times=10),
        chain("a + 1", "SELECT a FROM {} WHERE a BETWEEN 1 AND 2 OR a > 9", times=24),
        "WITH parts AS (SELECT stream, offset, key, body:kind, cast(body:price AS double) AS price FROM messages), "
        "daily AS (SELECT stream, kind, count(*) AS n, sum(price) AS total FROM parts WHERE price > 0 GROUP BY 1, 2), "
        "ranked AS (SELECT *, rank() OVER (PARTITION BY stream ORDER BY total DESC) AS place FROM daily) "
        "SELECT a.kind, a.total, b.total - a.total AS change FROM ranked a JOIN ranked b USING (kind) "
        "WHERE a.place <= 10 AND a.total > (SELECT avg(total) FROM daily)",
        f"SELECT {', '.join(f'count(DISTINCT offset + {n})' for n in range(20))} FROM messages",
    ],
)
def test_what_is_planned_soon_may_be_asked(spark: SparkSession, sql: str) -> None:
    plans.parse(spark, sql, tables=TABLES)
