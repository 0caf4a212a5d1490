"""Jobs and scripts as processes of their own, as a person starts them."""

import os
import subprocess
import sys
from pathlib import Path

from spark.jobs.settings import JobSettings

PROJECT = Path(__file__).resolve().parent.parent.parent


def environment(**more: str) -> dict[str, str]:
    """This process's environment without what the shared session set in it."""
    dropped = {"PYSPARK_PYTHON", "SPARK_LOCAL_IP", "PYTHONPATH"}
    return {**{name: value for name, value in os.environ.items() if name not in dropped}, **more}


def job_process(
    job: str, settings: JobSettings, log: Path, *, patch: str = "pass", master: str = "local[2]"
) -> "subprocess.Popen[bytes]":
    """Start ``python -m spark.jobs.<job>`` with these settings; ``patch`` may make it take smaller steps."""
    code = f"from spark.jobs import {job} as job; {patch}; job.main()"
    command = [sys.executable, "-c", code]
    environ = environment(
        OKMQ_REDIS_URL=settings.redis_url,
        OKMQ_HISTORY_URL=settings.history_url,
        OKMQ_DATA_DIR=str(settings.spark_dir.parent),
        OKMQ_SPARK_MASTER=master,
        OKMQ_SPARK_MEMORY=settings.memory,
    )
    with log.open("ab") as out:
        return subprocess.Popen(command, cwd=PROJECT, env=environ, stdout=out, stderr=out)
