"""Where Spark runs, and on how many cores."""

from pathlib import Path

import pytest

from spark.jobs.settings import JobSettings


@pytest.mark.parametrize(
    ("master", "cores", "told"),
    [
        ("local[*]", "", {"spark.master": "local[*]"}),
        ("local[*]", "3", {"spark.master": "local[3]"}),
        ("local", "3", {"spark.master": "local[3]"}),
        ("local[8,2]", "3", {"spark.master": "local[3,2]"}),
        ("spark://h:7077", "", {"spark.master": "spark://h:7077"}),
        ("spark://h:7077", "3", {"spark.master": "spark://h:7077", "spark.cores.max": "3"}),
    ],
)
def test_the_cores_are_those_of_the_master_unless_they_are_set(
    tmp_path: Path, master: str, cores: str, told: dict[str, str]
) -> None:
    environ = {
        "OKMQ_REDIS_URL": "redis://localhost",
        "OKMQ_DATA_DIR": str(tmp_path),
        "OKMQ_SPARK_MASTER": master,
        "OKMQ_SPARK_CORES": cores,
    }
    assert JobSettings.from_environ(environ).session.places == told
