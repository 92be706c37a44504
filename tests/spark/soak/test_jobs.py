"""Jobs of a stream on Spark may be killed at any moment; whoever starts them again completes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from soak.jobs import run_jobs
from soak.turns import some_turns

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_jobs_that_are_killed_and_started_again_lose_and_double_nothing(tmp_path: Path) -> None:
    """A turn of the soak with one kill: every kind of table has the rows that were written, once."""
    done = run_jobs(tmp_path, some_turns(1), kills=1)
    assert done["killed"] == 1
    assert done["rows"] > 0
