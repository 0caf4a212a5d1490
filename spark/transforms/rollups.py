"""Messages and bytes by minute, hour and day."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

STEPS = ("minute", "hour", "day")


def per_minute(messages: DataFrame) -> DataFrame:
    """Messages by stream and UTC minute.

    Args:
        messages: has ``stream_id, offset, timestamp, bytes``.

    Returns:
        ``stream_id, start`` (of the minute), ``messages, bytes, first, last`` (offsets).
    """
    return messages.groupBy("stream_id", sf.date_trunc("minute", "timestamp").alias("start")).agg(
        sf.count(sf.lit(1)).alias("messages"),
        sf.sum("bytes").alias("bytes"),
        sf.min("offset").alias("first"),
        sf.max("offset").alias("last"),
    )


def per_step(minutes: DataFrame) -> DataFrame:
    """Minutes, and what they add up to by hour and day; hours and days are sums of minutes by construction.

    Args:
        minutes: what ``per_minute`` gives.

    Returns:
        ``stream_id, step`` (minute, hour or day), ``start, messages, bytes, first, last``.
    """
    steps = sf.explode(sf.array(*[sf.lit(step) for step in STEPS])).alias("step")
    return (
        minutes.select("*", steps)
        .groupBy("stream_id", "step", sf.expr("date_trunc(step, start)").alias("start"))
        .agg(
            sf.sum("messages").alias("messages"),
            sf.sum("bytes").alias("bytes"),
            sf.min("first").alias("first"),
            sf.max("last").alias("last"),
        )
    )


def not_yet_counted(messages: DataFrame, *, counted: DataFrame) -> DataFrame:
    """The messages above the offset up to which their stream is counted.

    Args:
        messages: has ``stream_id, offset``.
        counted: ``stream_id, counted``; a stream that is missing is not wanted at all.
    """
    return (
        messages.join(sf.broadcast(counted), on="stream_id", how="inner")
        .where(sf.col("offset") > sf.col("counted"))
        .drop("counted")
    )
