"""How groups stood in each minute, hour and day, from the worker's samples."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark.transforms.rollups import STEPS

COUNTERS = ("deliveries", "acked", "redelivered", "dead_lettered", "lost", "duplicates")
"""What only grows, unless a stream or a group is made again."""

MEASURES = ("lag", "lag_ms")
"""What goes up and down: messages that were not delivered yet, and the age of the oldest not acknowledged."""

EXACT_BITS = 7
"""Numbers below 128 are counted as they are, larger ones by their first seven binary digits: 1/64 too low at most."""

_RECORD = """
    at bigint,
    streams map<string, struct<lag: bigint, duplicates: bigint>>,
    groups map<string, map<string, struct<lag: bigint, lag_seconds: double, deliveries: bigint, acked: bigint,
        redelivered: bigint, dead_lettered: bigint, lost: bigint, ack_ms: map<string, bigint>>>>
"""


def samples(records: DataFrame) -> DataFrame:
    """One row for each stream (whose own position counts as the group without a name) and group of each sample.

    Args:
        records: has ``body``, as the worker writes it.

    Returns:
        ``stream_id, group, at`` (unix ms), ``COUNTERS``, ``MEASURES`` and ``ack_ms`` (ms from publish to
        acknowledgement, as text → how many messages, ever); null where there is no such thing.
    """
    parsed = records.select(sf.from_json("body", _RECORD).alias("record")).select("record.*")
    of_streams = parsed.select("at", sf.explode("streams").alias("stream_id", "is")).withColumn(
        "group", sf.lit("")
    )
    of_groups = parsed.select("at", sf.explode("groups").alias("stream_id", "groups")).select(
        "at", "stream_id", sf.explode("groups").alias("group", "is")
    )
    named = ("stream_id", "group", "at")
    counted = ("deliveries", "acked", "redelivered", "dead_lettered", "lost")
    return of_streams.select(
        *named,
        *[sf.lit(None).cast("bigint").alias(name) for name in counted],
        "is.duplicates",
        "is.lag",
        sf.lit(None).cast("bigint").alias("lag_ms"),
        sf.lit(None).cast("map<string, bigint>").alias("ack_ms"),
    ).union(
        of_groups.select(
            *named,
            *[f"is.{name}" for name in counted],
            sf.lit(None).cast("bigint").alias("duplicates"),
            "is.lag",
            sf.round(sf.col("is.lag_seconds") * 1000).cast("bigint").alias("lag_ms"),
            "is.ack_ms",
        )
    )


def standing(sampled: DataFrame) -> DataFrame:
    """What the samples of each window come to.

    Args:
        sampled: what ``samples`` gives.

    Returns:
        ``stream_id, group, step, start_s`` (unix seconds), ``samples, last_ms``, the ``COUNTERS`` as the last sample
        has them, ``ack_ms`` as the last one that says it, and for each of ``MEASURES`` its highest value (``lag_max``)
        and a map of how often each was seen (``lag_seen``).
    """
    steps = sf.explode(sf.array(*[sf.lit(step) for step in STEPS])).alias("step")
    tagged = sampled.select("*", steps).withColumn(
        "start_s", sf.unix_seconds(sf.expr("date_trunc(step, timestamp_millis(at))"))
    )
    window = ("stream_id", "group", "step", "start_s")
    totals = tagged.groupBy(*window).agg(
        sf.count(sf.lit(1)).alias("samples"),
        sf.max("at").alias("last_ms"),
        *[sf.max_by(name, "at").alias(name) for name in COUNTERS],
        sf.max_by("ack_ms", sf.when(sf.col("ack_ms").isNotNull(), sf.col("at"))).alias("ack_ms"),
        *[sf.max(name).alias(f"{name}_max") for name in MEASURES],
    )
    for name in MEASURES:
        totals = totals.join(_seen(tagged, name, window), on=list(window), how="left")
    return totals


def bucket(value: Column) -> Column:
    """The number under which a whole number is counted: the lowest with the same first ``EXACT_BITS`` binary digits."""
    shift = sf.greatest(sf.lit(0), sf.length(sf.bin(value)) - EXACT_BITS)
    return sf.floor(value / sf.pow(sf.lit(2), shift)).cast("bigint") * sf.pow(sf.lit(2), shift).cast("bigint")


def _seen(tagged: DataFrame, name: str, window: tuple[str, ...]) -> DataFrame:
    return (
        tagged.where(sf.col(name).isNotNull())
        .groupBy(*window, bucket(sf.col(name)).alias("value"))
        .agg(sf.count(sf.lit(1)).alias("times"))
        .groupBy(*window)
        .agg(sf.map_from_entries(sf.collect_list(sf.struct("value", "times"))).alias(f"{name}_seen"))
    )
