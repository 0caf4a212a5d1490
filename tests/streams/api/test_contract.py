"""The OpenAPI document against the running product: answers are as it says, whatever is sent."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from okmq.env import PROJECT
from tests.product import Product

# The first would take away the token of the run; the other's answer has no end.
LEFT_OUT = ("token_revoke", "messages_tail")


@pytest.mark.long
@pytest.mark.running
@pytest.mark.timeout(600)
def test_schemathesis_finds_nothing(tmp_path: Path) -> None:
    product = Product(data_dir=tmp_path / "data", more={"OKMQ_HISTORY": "off"})
    try:
        product.start()
        found = subprocess.run(
            [
                str(Path(sys.executable).parent / "schemathesis"),
                "run",
                f"{product.url}/api/v1/schema",
                f"--header=Authorization: Bearer {product.token}",
                "--phases=examples,coverage,fuzzing",
                "--max-examples=5",
                "--seed=1",
                "--checks=all",
                # A schema cannot say that two fields exclude each other, or that 5.0 is no whole number here.
                "--exclude-checks=positive_data_acceptance",
                *(f"--exclude-operation-id={name}" for name in LEFT_OUT),
                "--no-color",
            ],
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": str(PROJECT),
                "SCHEMATHESIS_HOOKS": "tests.streams.api.no_waiting",
            },
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        product.end_all()
    assert found.returncode == 0, found.stdout[-20_000:] + found.stderr[-2_000:]
