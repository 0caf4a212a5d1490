"""A client written against the streams guide alone, in another language, on the whole product."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.product import Product

pytestmark = pytest.mark.running

PROGRAM = Path(__file__).with_name("guide.mjs")
MESSAGES = 1000


def test_publish_read_commit_in_a_loop_sees_every_offset_once_and_in_order(
    running: Product, unique: str
) -> None:
    node = shutil.which("node")
    assert node, "Node is missing: run scripts/system-packages"
    ended = subprocess.run(
        [node, str(PROGRAM), running.url, running.token, unique, str(MESSAGES)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    answer = json.loads(ended.stdout)
    assert answer["seen"] == [[n + 1, f"event-{n}", n] for n in range(MESSAGES)]
    assert answer["left"] == []
