"""DuckLake, in a process of its own: its extension is a package for one version of DuckDB, not the newest.

`./dev bench` installs both, and says where in `INSTAR_BENCH_DUCKLAKE`.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

__all__ = ["DuckLakeError", "Lake", "find_ducklake"]

_VARIABLE: Final = "INSTAR_BENCH_DUCKLAKE"
_CHILD: Final = """
import json, pathlib, sys, duckdb, duckdb_extension_ducklake
package = pathlib.Path(duckdb_extension_ducklake.__file__).parent
connection = duckdb.connect()
connection.execute(f"load '{next(package.rglob('*.duckdb_extension'))}'")
connection.execute("set timezone = 'UTC'")
users = connection, connection.cursor()
print(json.dumps(duckdb.__version__), flush=True)
for line in sys.stdin:
    number, statement = json.loads(line)
    try:
        answer = {"rows": users[number].execute(statement).fetchall()}
    except duckdb.Error as error:
        answer = {"error": str(error)}
    print(json.dumps(answer), flush=True)
"""


class DuckLakeError(Exception):
    """What DuckDB says of a statement that fails."""


def find_ducklake() -> str | None:
    """Return the Python that has DuckLake, if there is one."""
    return os.environ.get(_VARIABLE)


class Lake:
    """A lake in a directory, attached as `lake`; statements are run by a DuckDB of the right version."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.files = directory / "data"
        python = find_ducklake()
        assert python is not None, f"{_VARIABLE} does not say where DuckLake is"
        self._process = subprocess.Popen(
            [python, "-c", _CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.version: str = self._answer()
        self.ask(f"attach 'ducklake:{directory}/catalog.ducklake' as lake (data_path '{self.files}/')")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ask(self, statement: str, user: int = 0) -> list[list[Any]]:
        """Run a statement as one of two users, 0 or 1, and return its rows."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([user, statement]) + "\n")
        self._process.stdin.flush()
        answer = self._answer()
        if "error" in answer:
            raise DuckLakeError(answer["error"])
        rows: list[list[Any]] = answer["rows"]
        return rows

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def _answer(self) -> Any:  # noqa: ANN401 -- JSON
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the process of DuckLake has ended"
        return json.loads(line)
