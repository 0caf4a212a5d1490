"""Small files that are read while they are replaced, on whatever file system."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark.files import Files

pytestmark = pytest.mark.spark

TIMES = 300


def test_a_file_is_there_at_every_moment_while_it_is_replaced(spark: SparkSession, tmp_path: Path) -> None:
    files = Files(spark, str(tmp_path))
    files.write("file", "0")  # as versions before this one did, with a checksum

    def replaced() -> None:
        for n in range(1, TIMES + 1):
            files.replace("file", str(n))

    seen = []
    with ThreadPoolExecutor(1) as beside:
        replacing = beside.submit(replaced)
        while not replacing.done():
            seen.append(files.read("file"))
        replacing.result()
    assert None not in seen
    assert len(set(seen)) > 10
    assert files.read("file") == str(TIMES)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("scheme", ["viewfs", "older"])
def test_a_file_is_replaced_on_a_file_system_that_is_not_local(
    spark: SparkSession, tmp_path: Path, unique: str, scheme: str
) -> None:
    """Hadoop's own view of a folder, and one of a scheme for which it has no way to overwrite in one step."""
    inner: Any = spark.sparkContext
    configuration = inner._jsc.hadoopConfiguration()
    configuration.set(f"fs.viewfs.mounttable.{unique}.link./seen", tmp_path.as_uri())
    configuration.set("fs.older.impl", "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme")
    files = Files(spark, f"{scheme}://{unique}/seen")
    for n in range(3):
        files.replace("folder/file", str(n))
        assert files.read("folder/file") == str(n)
    files.delete("folder/file")
    assert [path.name for path in Path(tmp_path, "folder").iterdir()] == []
