"""Processes that change the same parts of one table at once, on a directory, PostgreSQL and S3.

Each has rows of its own, and knows what must be left of them.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.changing import change_together
from testbed.nursery import Nursery, Place
from testbed.servers import PostgresServer, S3Server

if TYPE_CHECKING:
    from collections.abc import Iterable

    from soak.turns import Turn

__all__ = ["run_changes"]


def run_changes(place: Path, turns: Iterable[Turn]) -> Counter[str]:
    """Let processes change rows, and return what they did, by kind."""
    data = Path(tempfile.mkdtemp(prefix="instar-postgres-"))  # which its own user may enter
    nursery, server, bucket = Nursery("testbed.changing"), PostgresServer(data), S3Server()
    done: Counter[str] = Counter()
    try:
        for turn in turns:
            folder = str(place / turn.name.replace(":", "-"))
            where = turn.random.choice(
                [
                    Place("directory", folder),
                    Place("postgres", folder, server.url()),
                    Place("s3", bucket.url(), None, bucket.options),
                ]
            )
            count = turn.random.randint(5, 40)
            done.update(change_together(nursery, where, turn.name, count, compact=turn.random.randint(0, 2)))
            done[where.kind] += 1
    finally:
        nursery.close()
        bucket.stop()
        server.crash()
        shutil.rmtree(data, ignore_errors=True)
    return done
