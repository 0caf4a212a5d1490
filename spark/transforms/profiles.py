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


def profiles(session: SparkSession, found: DataFrame) -> DataFrame:
    """The objects of each day and their fields, those of nested ones not among them.

    Each body is taken apart once: one without fields, and one that cannot be taken apart, is a row without a name.

    Args:
        found: what ``bodies`` gives.

    Returns:
        ``window, objects, unreadable`` (objects that could not be taken apart), ``fields``: structs of ``rank, name,
        present`` and ``types`` (type → how often), of the ``MOST_FIELDS`` most frequent.
    """
    values = found.where("is_object").select("window", "value", sf.isnull("value").alias("is_unreadable"))
    each = values.lateralJoin(
        session.tvf.variant_explode_outer(sf.col("value").outer()).toDF("pos", "name", "held")
    )
    begins = sf.expr(f"substring(schema_of_variant(held), 1, {len(next(iter(TYPES)))})").alias("begins")
    json_type = sf.coalesce(
        *[sf.when(sf.col("begins") == each, name) for each, name in TYPES.items()], sf.lit("number")
    )
    is_kept = sf.col("name").isNotNull() & (sf.col("rank") <= MOST_FIELDS)
    by_rank = Window.partitionBy("window").orderBy(sf.isnull("name"), sf.desc("present"), "name")
    sums = [sf.sum(name).alias(name) for name in ("objects", "unreadable")]
    return (
        each.groupBy("window", "name", begins)
        .agg(
            sf.count(sf.lit(1)).alias("times"),
            sf.count_if(sf.coalesce("pos", sf.lit(0)) == 0).alias("objects"),
            sf.count_if("is_unreadable").alias("unreadable"),
        )
        .groupBy("window", "name", json_type.alias("type"))
        .agg(sf.sum("times").alias("times"), *sums)
        .groupBy("window", "name")
        .agg(
            sf.sum("times").alias("present"),
            sf.map_from_entries(sf.collect_list(sf.struct("type", "times"))).alias("types"),
            *sums,
        )
        .withColumn("rank", sf.row_number().over(by_rank))
        .groupBy("window")
        .agg(
            *sums,
            sf.collect_list(sf.when(is_kept, sf.struct("rank", "name", "present", "types"))).alias("fields"),
        )
    )
