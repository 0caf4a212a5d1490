"""Messages by key."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf


def messages_by_key(messages: DataFrame) -> DataFrame:
    """Messages and bytes by stream and key, the most frequent first; messages without a key count under null.

    Args:
        messages: has ``stream_id, key, offset, bytes``.

    Returns:
        ``stream_id, key, messages, bytes, last`` (the newest offset).
    """
    return (
        messages.groupBy("stream_id", "key")
        .agg(
            sf.count(sf.lit(1)).alias("messages"),
            sf.sum("bytes").alias("bytes"),
            sf.max("offset").alias("last"),
        )
        .orderBy(sf.desc("messages"), "stream_id", "key")
    )
