"""The contracts are asked of a product of their own, or of one that runs: ``pytest tests/contracts --asked PORT``."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.product import Product


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--asked", type=int, metavar="PORT", help="of a product that runs, in place of one of the tests' own"
    )


@pytest.fixture(scope="module")
def shared(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """One without Spark: nothing that is asked here needs an answer of it."""
    port = pytestconfig.getoption("--asked", default=None)
    if port is not None:
        yield Product(data_dir=Path("of somebody else"), port=port)
        return
    product = Product(data_dir=tmp_path_factory.mktemp("contracts") / "data", more={"OKMQ_HISTORY": "off"})
    try:
        yield product.start()
    finally:
        product.end_all()
