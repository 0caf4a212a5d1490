"""What one minute, hour or day of a stream's messages comes to, exactly, from the messages themselves.

Unlike sums these figures do not add up from smaller windows, so each window is looked at as a whole.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from spark.transforms.rollups import STEPS

TOP_KEYS = {"minute": 3, "hour": 10, "day": 20}
"""How many of the most frequent keys are kept of a window."""

SIZES = {"size_p50": 0.5, "size_p90": 0.9, "size_p99": 0.99}
"""Percentiles of the bytes of a body: the smallest size that this share of the messages does not exceed."""


def in_windows(messages: DataFrame, *, windows: DataFrame) -> DataFrame:
    """The messages of each window that is to be looked at; a message may be in three.

    Args:
        messages: has ``stream_id, offset, timestamp, id, key, bytes``.
        windows: ``window`` (its number), ``stream_id, step, start, counted`` (messages above that offset are left out).

    Returns:
        ``window, step, offset, id_hash, key, bytes``.
    """
    steps = sf.explode(sf.array(*[sf.lit(step) for step in STEPS])).alias("step")
    named = messages.select(
        "stream_id", "offset", "timestamp", sf.xxhash64("id").alias("id_hash"), "key", "bytes", steps
    ).withColumn("start", sf.expr("date_trunc(step, timestamp)"))
    return (
        named.join(sf.broadcast(windows), on=["stream_id", "step", "start"], how="inner")
        .where(sf.col("offset") <= sf.col("counted"))
        .select("window", "step", "offset", "id_hash", "key", "bytes")
    )


def figures(messages: DataFrame) -> DataFrame:
    """The figures of each window.

    Args:
        messages: what ``in_windows`` gives.

    Returns:
        ``window, found`` (messages), ``first, last`` (offsets), ``ids`` (distinct, by a hash of 64 bits),
        ``size_p50, size_p90, size_p99, size_max``.
    """
    return messages.groupBy("window").agg(
        sf.count(sf.lit(1)).alias("found"),
        sf.min("offset").alias("first"),
        sf.max("offset").alias("last"),
        sf.count_distinct("id_hash").alias("ids"),
        *[_percentile(share).alias(name) for name, share in SIZES.items()],
        sf.max("bytes").alias("size_max"),
    )


def keys(messages: DataFrame) -> DataFrame:
    """The keys of each window.

    Args:
        messages: what ``in_windows`` gives.

    Returns:
        ``window, keys`` (distinct ones), ``top`` (the most frequent: structs of ``messages, key``, by number and then
        by key; messages without a key are none).
    """
    most = sf.coalesce(*[sf.when(sf.col("step") == step, most) for step, most in TOP_KEYS.items()])
    by_rank = Window.partitionBy("window").orderBy(sf.desc("messages"), "key")
    return (
        messages.where("key IS NOT NULL")
        .groupBy("window", "step", "key")
        .agg(sf.count(sf.lit(1)).alias("messages"))
        .withColumn("rank", sf.row_number().over(by_rank))
        .groupBy("window")
        .agg(
            sf.count(sf.lit(1)).alias("keys"),
            sf.sort_array(
                sf.collect_list(sf.when(sf.col("rank") <= most, sf.struct("rank", "messages", "key")))
            ).alias("top"),
        )
    )


def _percentile(share: float) -> Column:
    return sf.expr(f"percentile_disc({share}D) WITHIN GROUP (ORDER BY bytes)")
