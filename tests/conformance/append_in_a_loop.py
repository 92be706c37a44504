"""One of many processes that append to the same log: `python append_in_a_loop.py '<json>'`.

The JSON object says where (`blob_url`, `options`, `consensus_url`), which `key`, who (`writer`) and how many
(`count`). With `report`, each entry is printed once it has landed.
"""

from __future__ import annotations

import json
import sys
import time

from instar.storage import open_blob, open_consensus
from instar.storage.backoff import pauses


def main() -> None:
    """Append every number in turn, each time after whatever the others have appended."""
    task = json.loads(sys.argv[1])
    blob = open_blob(task["blob_url"], task["options"])
    consensus = open_consensus(task["consensus_url"], blob, task["options"])
    key = task["key"]
    last: int | None = None
    for number in range(task["count"]):
        waits = pauses()
        entry = f"{task['writer']}:{number}"
        while not consensus.append(key, last, entry.encode()):
            time.sleep(next(waits))
            news = consensus.scan(key, 0 if last is None else last + 1)
            last = news[-1].seqno if news else last
        last = 0 if last is None else last + 1
        if task.get("report"):
            print(entry, flush=True)  # noqa: T201 - the test reads it
    consensus.close()


if __name__ == "__main__":
    main()
