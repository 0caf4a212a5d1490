"""A client written against the streams guide alone, in another language, on the whole product."""

import pytest

from tests.guide import guided
from tests.product import Product

pytestmark = pytest.mark.running


def test_publish_read_commit_in_a_loop_sees_every_offset_once_and_in_order(
    running: Product, unique: str
) -> None:
    guided(running, unique)
