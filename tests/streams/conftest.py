"""Servers of a test's own: the durable one, and that of the streams in memory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import servers


@pytest.fixture
def durable(tmp_path: Path) -> Iterator[servers.Store]:
    with servers.store(tmp_path / "durable") as running:
        yield running


@pytest.fixture
def volatile(tmp_path: Path) -> Iterator[servers.Store]:
    with servers.store(tmp_path / "volatile", fsync=None) as running:
        yield running
