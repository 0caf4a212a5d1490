from collections.abc import Iterator

import pytest

from tests.product import Product


@pytest.fixture(scope="package")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """A product whose processes the tests of this folder kill; each leaves it running."""
    product = Product(data_dir=tmp_path_factory.mktemp("mortal") / "data", more={"OKMQ_HISTORY": "off"})
    try:
        yield product.start()
    finally:
        product.end_all()
