"""A store whose clock is set under load: nothing comes early, nothing twice, and time never runs backwards."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from okmq.prove.checking import check
from okmq.prove.history import Publish
from okmq.prove.jumps import JUMPS_S, faked_clock, on_a_clock_that_is_set

pytestmark = pytest.mark.running


@pytest.mark.timeout(600)
def test_a_clock_that_is_set_brings_nothing_early_and_doubles_nothing(tmp_path: Path) -> None:
    library = faked_clock()
    assert library, "libfaketime is missing: run scripts/system-packages"
    apart = on_a_clock_that_is_set(tmp_path, library=library)
    verdict = check(apart.history)
    assert verdict.holds, verdict.found
    assert (apart.load.scene.late, apart.load.scene.surprises, apart.wrong) == ([], {}, [])
    assert len(apart.struck) == len(JUMPS_S)
    tomorrow = datetime.now(UTC) + timedelta(hours=20)
    last = apart.history.remains["one"].messages[-1]
    assert datetime.fromisoformat(last.content[0]) > tomorrow  # it did see it
    assert sum(isinstance(each, Publish) for each in apart.history.operations) > 200
