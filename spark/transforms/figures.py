"""What one minute, hour or day of a stream's messages comes to, exactly, from the messages themselves.

Unlike sums these figures do not add up from smaller windows, so each window is looked at as a whole.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from spark.transforms.rollups import STEPS

TOP_KEYS = {"minute": 20, "hour": 50, "day": 100}
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
    """How many messages each window has, from where to where, and how many ids.

    An offset that the history has twice has its id twice: where all messages of an id have one offset, all but one of
    them are ``twice``.

    Args:
        messages: what ``in_windows`` gives.

    Returns:
        ``window, found`` (messages), ``first, last`` (offsets), ``ids`` (distinct, by a hash of 64 bits), ``twice``.
    """
    return (
        messages.groupBy("window", "id_hash")
        .agg(
            sf.count(sf.lit(1)).alias("found"),
            sf.min("offset").alias("first"),
            sf.max("offset").alias("last"),
        )
        .groupBy("window")
        .agg(
            sf.sum("found").alias("found"),
            sf.min("first").alias("first"),
            sf.max("last").alias("last"),
            sf.count(sf.lit(1)).alias("ids"),
            sf.sum(sf.when(sf.col("first") == sf.col("last"), sf.col("found") - 1).otherwise(0)).alias(
                "twice"
            ),
        )
    )


def sizes(messages: DataFrame) -> DataFrame:
    """How large the messages of each window are.

    Counted size by size: Spark's own percentiles carry a table of values for every group, and beside a count of
    distinct ids one for every id.

    Args:
        messages: what ``in_windows`` gives.

    Returns:
        ``window, size_p50, size_p90, size_p99, size_max``.
    """
    of_window = Window.partitionBy("window")
    up_to = sf.sum("messages").over(of_window.orderBy("bytes")) / sf.sum("messages").over(of_window)
    return (
        messages.groupBy("window", "bytes")
        .agg(sf.count(sf.lit(1)).alias("messages"))
        .select("window", "bytes", up_to.alias("share"))
        .groupBy("window")
        .agg(
            *[
                sf.min(sf.when(sf.col("share") >= share, sf.col("bytes"))).alias(name)
                for name, share in SIZES.items()
            ],
            sf.max("bytes").alias("size_max"),
        )
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
