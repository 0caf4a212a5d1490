"""Keeps the classes of Spark for its next starts, which take a third less then: ``python -m spark.prepare``.

Does nothing where they are kept already for the Java and the PySpark that are installed, or where there is no Java.
"""

import contextlib
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, cast

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark.class_data import ClassData, installed
from spark.session import NotStarted, SessionSettings, build, end, process

ENDING_S = 180.0
"""How long Java may take to write them; a busy machine needs half a minute."""


def main() -> int:
    """0 where they are kept, or there is no Java; 1 after a sentence where they could not be."""
    kept, maker = ClassData(), installed()
    if maker is None or kept.is_of(maker):
        return 0
    print("Keeping the classes of Spark for its next starts (once for each Java) ...", flush=True)
    try:
        prepare(kept, maker)
    except (OSError, NotStarted, Unwritten) as error:
        print(f"They are not kept, and Spark starts slower for it: {error}", flush=True)
        return 1
    return 0


class Unwritten(Exception):
    """Java ended, or did not end, without having written what it was to."""


def prepare(kept: ClassData, maker: str) -> None:
    """Start Spark, have it do a little of what the jobs do, and have Java write down what it loaded for that.

    Raises:
        OSError: the file cannot be put in its place.
        Unwritten: Java did not write it.
    """
    kept.file.parent.mkdir(parents=True, exist_ok=True)
    written = kept.file.with_name(f"{kept.file.name}-{secrets.token_hex(4)}")
    with tempfile.TemporaryDirectory(prefix="okmq-prepare-") as name:
        try:
            session = build(SessionSettings(folder=Path(name)), classes_to=written)
            load(session, Path(name))
            _leave(session)
            if not written.exists():
                raise Unwritten("Java has written no file.")
            kept.take(written, maker)
        finally:
            end()
            written.unlink(missing_ok=True)


def load(session: SparkSession, folder: Path) -> None:
    """Write, read, count, ask in SQL and stream a few rows: between them they load what each start loads."""
    rows, source = str(folder / "rows"), folder / "source"
    made = session.range(1000).selectExpr(
        "id AS offset",
        "timestamp_millis(id * 3600000) AS timestamp",
        "concat('k', id % 7) AS key",
        """concat('{"n":', id, '}') AS body""",
    )
    made.withColumn("day", sf.to_date("timestamp")).coalesce(1).write.partitionBy("day").parquet(rows)
    held = session.read.parquet(rows)
    held.createOrReplaceTempView("held")
    session.sql(
        "SELECT key, count(*), avg(get_json_object(body, '$.n')), approx_percentile(offset, 0.9) FROM held "
        "WHERE timestamp > TIMESTAMP '1970-01-02' GROUP BY key ORDER BY key"
    ).toArrow()
    held.coalesce(1).drop("day").write.parquet(str(source))
    (
        session.readStream.schema("offset bigint, timestamp timestamp, key string, body string")
        .parquet(str(source))
        .writeStream.option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .foreachBatch(_counted)
        .start()
        .awaitTermination()
    )


def _counted(batch: DataFrame, _: int) -> None:
    batch.groupBy("key").count().collect()


def _leave(session: SparkSession) -> None:
    """Have Java end as it does when it is done, and wait for what it writes then."""
    java, jvm = process(), cast("Any", session._jvm)
    with contextlib.suppress(Py4JError, OSError):  # it does not answer any more
        jvm.java.lang.System.exit(0)
    try:
        if java is not None:
            java.wait(ENDING_S)
    except subprocess.TimeoutExpired:
        raise Unwritten(f"Java did not write it within {ENDING_S:g} s.") from None


if __name__ == "__main__":
    sys.exit(main())
