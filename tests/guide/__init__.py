"""A user's program for the streams guide, and what it has to see."""

import json
import shutil
import subprocess
from pathlib import Path

from tests.product import Product

PROGRAM = Path(__file__).with_name("guide.mjs")
MESSAGES = 1000


def guided(product: Product, stream: str) -> None:
    """Publish, read and commit as the guide says; every offset comes once and in order.

    Raises:
        AssertionError: it is not so.
    """
    node = shutil.which("node")
    assert node, "Node is missing: run scripts/system-packages"
    ended = subprocess.run(
        [node, str(PROGRAM), product.url, product.token, stream, str(MESSAGES)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    answer = json.loads(ended.stdout)
    assert answer["seen"] == [[n + 1, f"event-{n}", n] for n in range(MESSAGES)]
    assert answer["left"] == []
