"""How groups stood in each minute, hour and day, from the worker's samples."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from spark.transforms.rollups import STEPS
from streams.log import keys
from streams.log.counts import HIGHEST, MEASURES, OF_GROUPS, OF_STREAMS

KINDS = ("counted", "ack_ms")
"""What only grows while a stream or a group lives: its counters, and how long acknowledgements took."""

EXACT_BITS = 7
"""Numbers below 128 are counted as they are, larger ones by their first seven binary digits: 1/64 too low at most."""

_RECORD = f"""
    at bigint,
    streams map<string, struct<lag: bigint, {", ".join(f"{name}: bigint" for name in OF_STREAMS)}>>,
    groups map<string, map<string, struct<lag: bigint, lag_seconds: double, made: bigint, ack_ms: map<string, bigint>,
        status: string, dead: bigint, edge: double, quiet: double,
        {", ".join(f"{name}: bigint" for name in OF_GROUPS)}>>>
"""

_COUNTS = "struct<made_ms: bigint, of: map<string, bigint>>"

_OF_GROUPS_ONLY = {
    "lag_ms": "bigint",
    "dead": "bigint",
    "status": "string",
    "edge_ms": "bigint",
    "quiet": "struct<at: bigint, ms: bigint>",
}
"""What a sample of a stream's own position does not say."""


def samples(records: DataFrame) -> DataFrame:
    """One row for each stream (whose own position counts as the group without a name) and group of each sample.

    Args:
        records: has ``offset``, and ``body`` as the worker writes it.

    Returns:
        ``stream_id, group, offset, at`` (unix ms), each of ``HIGHEST``, ``status``, ``edge_ms`` (in how many ms a limit
        removes the oldest message not acknowledged), ``quiet`` (``at``, and the ``ms`` that nobody had fetched or
        acknowledged by then), and each of ``KINDS`` as a ``made_ms`` (which life this is of) and a map ``of`` what was
        counted in it, ever: ``counted`` by name, ``ack_ms`` by the ms from publish to acknowledgement, as text; null
        where there is no such thing.
    """
    parsed = records.select("offset", sf.from_json("body", _RECORD).alias("record")).select(
        "offset", "record.*"
    )
    of_streams = parsed.select("offset", "at", sf.explode("streams").alias("stream_id", "is")).withColumn(
        "group", sf.lit("")
    )
    of_groups = parsed.select("offset", "at", sf.explode("groups").alias("stream_id", "groups")).select(
        "offset", "at", "stream_id", sf.explode("groups").alias("group", "is")
    )
    named = ("stream_id", "group", "offset", "at")
    # A stream made again has another id; one in memory is begun again under the same when its server has lost it.
    of_one_life = sf.when(~sf.col("stream_id").startswith(keys.MEMORY_MARK), sf.lit(0).cast("bigint"))
    return of_streams.select(
        *named,
        "is.lag",
        *[sf.lit(None).cast(kind).alias(name) for name, kind in _OF_GROUPS_ONLY.items()],
        _counts(of_one_life, _by_name(OF_STREAMS)).alias("counted"),
        sf.lit(None).cast(_COUNTS).alias("ack_ms"),
    ).union(
        of_groups.select(
            *named,
            "is.lag",
            _ms("lag_seconds").alias("lag_ms"),
            "is.dead",
            "is.status",
            _ms("edge").alias("edge_ms"),
            sf.when(sf.col("is.quiet").isNotNull(), sf.struct("at", _ms("quiet").alias("ms"))).alias("quiet"),
            _counts(sf.col("is.made"), _by_name(OF_GROUPS)).alias("counted"),
            _counts(sf.col("is.made"), sf.col("is.ack_ms")).alias("ack_ms"),
        )
    )


def standing(sampled: DataFrame) -> DataFrame:
    """What the samples of each window come to.

    Args:
        sampled: what ``samples`` gives.

    Returns:
        ``stream_id, group, step, start_s`` (unix seconds), ``samples, last_ms``, the highest of each of ``HIGHEST``
        (``lag_max``), the lowest edge (``edge_ms_min``), a map of how often each value of ``MEASURES`` and each status
        was seen (``lag_seen``), and of ``quiet`` what ``streams.log.counts.quiet_kept`` keeps, an array. Of each of
        ``KINDS`` what the last sample has (``counted_last``), by how much it grew from sample to sample (a map
        ``counted_grown``), and, in the windows that the first sample lies in which says it, what that has
        (``counted_first``): by how much it grew there only who knows what was counted before can tell. Samples follow
        each other by offset, whatever their clock.
    """
    steps = sf.explode(sf.array(*[sf.lit(step) for step in STEPS])).alias("step")
    tagged = (
        _grown(sampled)
        .select("*", steps)
        .withColumn("start_s", sf.unix_seconds(sf.expr("date_trunc(step, timestamp_millis(at))")))
    )
    window = ("stream_id", "group", "step", "start_s")
    totals = tagged.groupBy(*window).agg(
        sf.count(sf.lit(1)).alias("samples"),
        sf.max("at").alias("last_ms"),
        *[sf.max(name).alias(f"{name}_max") for name in HIGHEST],
        sf.min("edge_ms").alias("edge_ms_min"),
        _quiet_kept().alias("quiet"),
        *[_last(name).alias(f"{name}_last") for name in KINDS],
        *[sf.first(f"{name}_first", ignorenulls=True).alias(f"{name}_first") for name in KINDS],
    )
    return totals.join(_added_up(tagged, window), on=list(window), how="left")


def bucket(value: Column) -> Column:
    """The number under which a whole number is counted: the lowest with the same first ``EXACT_BITS`` binary digits."""
    shift = sf.greatest(sf.lit(0), sf.length(sf.bin(value)) - EXACT_BITS)
    return sf.floor(value / sf.pow(sf.lit(2), shift)).cast("bigint") * sf.pow(sf.lit(2), shift).cast("bigint")


def _ms(seconds: str) -> Column:
    """What a sample has in seconds, in whole ms."""
    return sf.round(sf.col(f"is.{seconds}") * 1000).cast("bigint")


def _by_name(names: tuple[str, ...]) -> Column:
    """What a sample has of these counters; null where it has none."""
    pairs = [sf.struct(sf.lit(name).alias("key"), sf.col(f"is.{name}").alias("value")) for name in names]
    known = sf.filter(sf.array(*pairs), lambda pair: pair["value"].isNotNull())
    return sf.when(sf.size(known) > 0, sf.map_from_entries(known))


def _counts(made_ms: Column, of: Column) -> Column:
    return sf.when(of.isNotNull(), sf.struct(made_ms.alias("made_ms"), of.alias("of")).cast(_COUNTS))


def _grown(sampled: DataFrame) -> DataFrame:
    """With ``counted_grown`` and ``counted_first`` (and so on) as ``standing`` has them, of each sample."""
    before = (
        Window.partitionBy("stream_id", "group").orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    )
    held = sampled.select(
        "*", *[sf.last(name, ignorenulls=True).over(before).alias(f"{name}_before") for name in KINDS]
    )
    return held.select(
        "*",
        *[_between(sf.col(f"{name}_before"), sf.col(name)).alias(f"{name}_grown") for name in KINDS],
        *[sf.when(sf.col(f"{name}_before").isNull(), sf.col(name)).alias(f"{name}_first") for name in KINDS],
    )


def _between(before: Column, now: Column) -> Column:
    """What was counted between two samples, as ``streams.log.counts.grown`` tells it; null without one of them."""

    def held(name: Column) -> Column:
        return sf.coalesce(before["of"][name], sf.lit(0))

    lower = sf.map_filter(now["of"], lambda name, count: count < held(name))
    is_another_life = sf.coalesce(before["made_ms"] != now["made_ms"], sf.size(lower) > 0)
    since = sf.transform_values(
        now["of"], lambda name, count: count - sf.when(is_another_life, 0).otherwise(held(name))
    )
    return sf.when(before.isNotNull(), sf.map_filter(since, lambda _, count: count > 0))


def _last(name: str) -> Column:
    return sf.max_by(name, sf.when(sf.col(name).isNotNull(), sf.col("offset")))


def _quiet_kept() -> Column:
    """As ``streams.log.counts.quiet_kept``; an empty array where no sample says it."""
    at, ms = sf.col("quiet.at"), sf.col("quiet.ms")
    longest, shortest, last = sf.struct(ms, -at), sf.struct(-ms, -at), sf.struct(at, ms)
    is_known = sf.col("quiet").isNotNull()
    kept = [sf.max_by("quiet", sf.when(is_known, order)) for order in (longest, shortest, last)]
    return sf.array_sort(sf.array_distinct(sf.array_compact(sf.array(*kept))))


def _added_up(tagged: DataFrame, window: tuple[str, ...]) -> DataFrame:
    """Of each window how often each status and each value of ``MEASURES`` was seen, and by how much ``KINDS`` grew."""
    seen = {f"{name}_seen": _once(bucket(sf.col(name))) for name in MEASURES}
    seen |= {"status_seen": _once(sf.col("status"))}
    summed = {**seen, **{f"{name}_grown": sf.map_entries(f"{name}_grown") for name in KINDS}}
    entries = sf.array(
        *[sf.struct(sf.lit(what).alias("what"), of.alias("entries")) for what, of in summed.items()]
    )
    by_what = (
        tagged.select(*window, sf.explode(entries).alias("entry"))
        .select(*window, "entry.what", sf.explode("entry.entries").alias("entry"))
        .groupBy(*window, "what", "entry.key")
        .agg(sf.sum("entry.value").alias("value"))
    )
    pair = sf.struct("key", "value")
    return by_what.groupBy(*window).agg(
        *[
            sf.map_from_entries(sf.collect_list(sf.when(sf.col("what") == what, pair))).alias(what)
            for what in summed
        ]
    )


def _once(value: Column) -> Column:
    """The entries of a map in which a value was seen once."""
    entry = sf.struct(value.cast("string").alias("key"), sf.lit(1).cast("bigint").alias("value"))
    return sf.when(value.isNotNull(), sf.array(entry))
