"""No function makes a text larger than its class says: what grows when it is done again and again is refused."""

import pytest
from pyspark.sql import SparkSession

from spark import growth, plans, results
from spark.walk import QueryRefused
from tests.spark.test_growth import chain, nested

pytestmark = pytest.mark.spark

LETTER, UPPER = "\u0390", "\u0399\u0308\u0301"
"""A letter of two bytes, whose upper case are three of two."""

TEXTS = [LETTER * 8, "\u0130\u00df\ufb03\u023a\u0149 " * 2, '"\\' * 8, "\x01\x02" * 8, "aA zZ" * 2, "€𝄞" * 4]

ONE_CLASS = (
    "lower lcase upper ucase initcap reverse trim ltrim rtrim btrim coalesce try_url_decode max first mode"
)


@pytest.mark.parametrize(
    "again",
    [
        "cast(split({}, '') AS string)",
        "string(split({}, ''))",
        f"translate(upper({{}}), '{UPPER}', '{LETTER * 3}')",
        f"replace(replace(replace(upper({{}}), '{UPPER[0]}', '{LETTER}'), '{UPPER[1]}', '{LETTER}'), "
        f"'{UPPER[2]}', '{LETTER}')",
        "translate({}, 'a', key)",
        "translate({}, 'abc', '€€€')",
        "cast(to_variant_object(array({})) AS string)",
        "cast(cast(array({}) AS variant) AS string)",
    ],
)
def test_what_makes_a_text_longer_again_and_again_is_refused(spark: SparkSession, again: str) -> None:
    for sql in (
        f"SELECT length({nested('body', again, times=6)}) FROM messages",
        chain("body", again.format("a").replace("key", "a")),
    ):
        with pytest.raises(QueryRefused, match="more than 500 times as large as a body"):
            plans.parse(spark, sql, tables=("messages",))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT cast(split(body, ',') AS string), cast(to_variant_object(struct(*)) AS string) FROM messages",
        "SELECT " + ", ".join(f"body:f{n}::string" for n in range(300)) + " FROM messages",
        "SELECT array_join(transform(split(body, ' '), w -> concat(upper(left(w, 1)), substr(w, 2))), ' '), "
        "cast(offset AS string), cast(timestamp AS string) FROM messages",
        "SELECT transform(from_json(body, 'ARRAY<STRUCT<a: INT, b: INT>>'), g -> struct("
        + ", ".join(f"g.a + g.b * {n} AS c{n}" for n in range(10))
        + ")) FROM messages",
        chain("body", "translate(lower(a), 'abc\u00e9', 'ABCe')"),
        chain("body", "initcap(replace(upper(a), 'AE', '\u00c4'))"),
    ],
)
def test_what_keeps_its_length_may_be_asked(spark: SparkSession, sql: str) -> None:
    plans.parse(spark, sql, tables=("messages",))


def test_no_change_of_case_makes_a_letter_larger_than_it_counts() -> None:
    letters = [chr(n) for n in range(0x110000) if not 0xD800 <= n < 0xE000]
    for each in letters:
        for other in (each.upper(), each.lower(), each.title()):
            assert len(other.encode()) <= growth.most_of(other) <= growth.most_of(each)
    assert max(map(growth.most_of, letters)) == results.LARGEST_LETTER


def test_functions_make_no_more_of_a_text_than_their_class_says(spark: SparkSession) -> None:
    written = {name: (f"{name}(x)", 1) for name in ONE_CLASS.split()}
    assert written.keys() <= results.LARGEST
    of_bytes = "cast(encode(x, 'UTF-16') AS string)"
    calls = {
        "hex": "hex(x)",
        "base64": "base64(x)",
        "url_encode": "url_encode(x)",
        "encode": "hex(encode(x, 'UTF-32'))",
        "to_json": "to_json(array(x))",
        "to_variant_object": "cast(to_variant_object(array(x)) AS string)",
        "make_valid_utf8": f"make_valid_utf8({of_bytes})",
    }
    more = {"encode": 2, "make_valid_utf8": 4}  # for the digits, and for the bytes it is given
    written |= {name: (call, results.GROWING[name] * more.get(name, 1)) for name, call in calls.items()}
    written["array"] = ("cast(split(x, '') AS string)", results.OF_A_VALUE)
    written["translate"] = (f"translate(x, 'aA z\u0130{LETTER}', '𝄞€{LETTER}𝄞€𝄞')", results.LARGEST_LETTER)
    columns = ", ".join(f"{call} AS `{name}`" for name, (call, _) in written.items())
    rows = spark.createDataFrame([(n, each) for n, each in enumerate(TEXTS)], "n INT, x STRING")
    rows.createOrReplaceTempView("texts")
    for n, text in enumerate(TEXTS):
        (row,) = spark.sql(f"SELECT {columns} FROM (SELECT * FROM texts WHERE n = {n}) GROUP BY x").collect()
        for name, (_, times) in written.items():
            assert len(str(row[name]).encode()) <= times * growth.most_of(text) + 4, (name, text)
