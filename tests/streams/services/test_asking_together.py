"""How many of a workspace may wait, also where several ask at the same moment. SQLite has one write at a time."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from okmq.env import PROJECT
from tests.postgres import postgres_folder
from tests.spark.jobs import environment


@pytest.mark.running
def test_who_asks_together_does_not_exceed_together(valkey: str, tmp_path: Path) -> None:
    with postgres_folder() as server, server.running():
        asked = subprocess.run(
            [sys.executable, "-m", "tests.streams.services.asking_together"],
            cwd=PROJECT,
            env=environment(
                DJANGO_SETTINGS_MODULE="okmq.settings",
                OKMQ_DATA_DIR=str(tmp_path),
                OKMQ_DATABASE_URL=server.url,
                OKMQ_REDIS_URL=valkey,
            ),
            capture_output=True,
            text=True,
            check=False,
        )
    assert asked.returncode == 0, asked.stderr
    assert json.loads(asked.stdout) == {"queries": ["", "rate_limited"], "erasures": ["", "rate_limited"]}
