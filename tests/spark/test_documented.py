"""What docs/history.md tells a person to type, typed: a plain PySpark process, elsewhere, with documented options."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark import plans, tables
from spark.options import KNOWN
from streams.log.entries import NewMessage
from tests.spark.jobs import PROJECT, environment
from tests.spark.published import Published

PAGE = (PROJECT / "docs" / "history.md").read_text("utf-8")


def test_the_table_of_options_is_complete() -> None:
    table = PAGE.split("| option |")[1].split("\n\n")[0]
    documented = set(re.findall(r"`(\w+)`", " ".join(line.split("|")[1] for line in table.splitlines()[2:])))
    assert documented == set(KNOWN)


@pytest.mark.spark
def test_the_queries_can_be_asked_and_the_table_of_tables_is_true(spark: SparkSession) -> None:
    own = spark.newSession()
    for name, columns in tables.COLUMNS.items():
        written = ", ".join(f"{column} {kind}" for column, kind in columns)
        assert f"| `{name}` | `{written}` |" in PAGE
        own.createDataFrame(
            [], ", ".join(f"`{column}` {kind}" for column, kind in columns)
        ).createOrReplaceTempView(name)
    examples = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    asked = json.loads(re.findall(r"-d '(\{.*?\})'\n", PAGE, re.DOTALL)[0])
    for sql in [*examples, asked["sql"]]:
        assert plans.analyzed(own, plans.parse(own, sql, tables=tables.COLUMNS)).collect() is not None
    assert len(examples) == 4


@pytest.mark.spark
def test_the_example_runs_as_it_stands(published: Published, tmp_path: Path) -> None:
    here = Published(log=published.log, url=published.url, workspace="default", workspace_id=1)
    stream = here.stream("flights")
    here.publish(
        stream,
        (
            NewMessage(id=f"{n}", body=json.dumps({"dep_delay": n}).encode(), key=f"flights.JFK.{n % 2}")
            for n in range(100)
        ),
    )
    script = tmp_path / "example.py"
    example = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert example is not None
    script.write_text(example[1])
    ended = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env=environment(OKMQ_REDIS_URL=published.url, PYTHONPATH=str(PROJECT)),
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "39 departures more than an hour late" in ended.stdout
    assert ended.stdout.count("flights.JFK.1") == 2
    assert sorted(path.name for path in tmp_path.iterdir()) in (
        ["example.py"],
        ["example.py", "spark-warehouse"],
    )
