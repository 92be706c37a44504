"""The pure layers compute: no clock, no randomness, no I/O, in imports (import-linter) or in calls (here)."""

from __future__ import annotations

import ast
import tomllib
from typing import TYPE_CHECKING

import pytest

from tests.meta.modules import ROOT, SOURCE

if TYPE_CHECKING:
    from pathlib import Path

PURE = ["errors", "schema", "skipping", "state", "stats"]
EXISTING = [name for name in PURE if (SOURCE / f"{name}.py").exists() or [*(SOURCE / name).glob("**/*.py")]]
FILES = [file for name in EXISTING for file in [SOURCE / f"{name}.py", *(SOURCE / name).glob("**/*.py")]]

# Values such as `datetime.date` and `pyarrow.array` are welcome; these doors out are not.
IMPURE_CALLS = {"open", "input", "print", "now", "today", "utcnow"}
IMPURE_MODULES = {
    "numpy.random",
    "pyarrow.csv",
    "pyarrow.dataset",
    "pyarrow.feather",
    "pyarrow.flight",
    "pyarrow.fs",
    "pyarrow.parquet",
}


def test_the_contract_lists_every_pure_layer() -> None:
    """The purity contract of import-linter covers each pure layer that exists."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [sources] = [contract["source_modules"] for contract in contracts if "no clock" in contract["name"]]
    assert sources == [f"instar.{name}" for name in EXISTING]


@pytest.mark.parametrize("file", [file for file in FILES if file.exists()], ids=lambda file: file.stem)
def test_pure_code_has_no_way_out(file: Path) -> None:
    """Pure code calls no clock, no console and no file, whatever it imports."""
    assert impurities(file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "code",
    [
        "open('x')",
        "datetime.now()",
        "dt.datetime.utcnow()",
        "import pyarrow.parquet as pq",
        "from pyarrow import fs",
        "from pyarrow.fs import LocalFileSystem",
        "np.random.default_rng()",
    ],
)
def test_the_search_finds_what_it_looks_for(code: str) -> None:
    """Each kind of impurity is seen, so an empty answer means something."""
    assert impurities(code)


def impurities(code: str) -> list[str]:
    """Return the impure calls and imports of a program."""
    found = []
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in IMPURE_CALLS:
                found.append(f"line {node.lineno}: {name}()")
            case ast.Attribute(attr="random"):
                found.append(f"line {node.lineno}: {ast.unparse(node)}")
            case ast.Import(names=names) if IMPURE_MODULES & {alias.name for alias in names}:
                found.append(f"line {node.lineno}: {ast.unparse(node)}")
            case ast.ImportFrom(module=module, names=names) if IMPURE_MODULES & {
                str(module),
                *(f"{module}.{alias.name}" for alias in names),
            }:
                found.append(f"line {node.lineno}: {ast.unparse(node)}")
    return found
