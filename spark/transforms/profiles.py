"""What the bodies of a day look like: their fields, the types of these, and how often they are null."""

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

MOST_FIELDS = 200
"""Fields kept of a day, the most frequent ones."""

TYPES = {"OBJ": "object", "ARR": "array", "STR": "string", "BOO": "boolean", "VOI": "null"}
"""The three letters that a variant's type begins with → what JSON calls it; all others are numbers."""


def bodies(messages: DataFrame, *, windows: DataFrame) -> DataFrame:
    """The bodies of each day that is to be looked at.

    Args:
        messages: has ``stream_id, offset, timestamp, body``.
        windows: as ``spark.transforms.figures.in_windows`` takes them; only days are meant.

    Returns:
        ``window, is_object, value`` (a variant; null where the body cannot be taken apart).
    """
    days = windows.where("step = 'day'")
    return (
        messages.withColumn("start", sf.expr("date_trunc('day', timestamp)"))
        .join(sf.broadcast(days), on=["stream_id", "start"], how="inner")
        .where(sf.col("offset") <= sf.col("counted"))
        .select(
            "window",
            sf.expr(r"startswith(trim(LEADING ' \t\n\r' FROM body), '{')").alias("is_object"),
            sf.expr("try_parse_json(body)").alias("value"),
        )
    )


def objects(found: DataFrame) -> DataFrame:
    """How many bodies of each day are objects, and how many of them could not be taken apart.

    Returns:
        ``window, objects, unreadable``.
    """
    return (
        found.where("is_object")
        .groupBy("window")
        .agg(sf.count(sf.lit(1)).alias("objects"), sf.count_if(sf.col("value").isNull()).alias("unreadable"))
    )


def fields(session: SparkSession, found: DataFrame) -> DataFrame:
    """The fields of the objects of each day, those of nested ones not among them.

    Args:
        found: what ``bodies`` gives.

    Returns:
        ``window, fields``: structs of ``name, present`` and ``types`` (type → how often), the most frequent first.
    """
    values = found.where("is_object").select("window", "value")
    each = values.lateralJoin(
        session.tvf.variant_explode(sf.col("value").outer()).toDF("pos", "name", "held")
    )
    begins = sf.expr(f"substring(schema_of_variant(held), 1, {len(next(iter(TYPES)))})").alias("begins")
    json_type = sf.coalesce(
        *[sf.when(sf.col("begins") == each, name) for each, name in TYPES.items()], sf.lit("number")
    )
    by_rank = Window.partitionBy("window").orderBy(sf.desc("present"), "name")
    return (
        each.groupBy("window", "name", begins)
        .agg(sf.count(sf.lit(1)).alias("times"))
        .groupBy("window", "name", json_type.alias("type"))
        .agg(sf.sum("times").alias("times"))
        .groupBy("window", "name")
        .agg(
            sf.sum("times").alias("present"),
            sf.map_from_entries(sf.collect_list(sf.struct("type", "times"))).alias("types"),
        )
        .withColumn("rank", sf.row_number().over(by_rank))
        .where(sf.col("rank") <= MOST_FIELDS)
        .groupBy("window")
        .agg(sf.collect_list(sf.struct("rank", "name", "present", "types")).alias("fields"))
    )
