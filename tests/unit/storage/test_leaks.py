"""Nothing of the libraries below comes out: whatever breaks, callers see errors of instar only."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import instar.storage
from instar.errors import InstarError, StorageError
from instar.storage import open_blob, open_consensus

if TYPE_CHECKING:
    from collections.abc import Callable

    from instar.storage import Blob, Consensus

OWNERS = {"obstore": {"objects"}, "psycopg": {"postgres", "connections"}}

BLOB_CALLS: dict[str, Callable[[Blob], object]] = {
    "put": lambda blob: blob.put("a", b""),
    "put_if_absent": lambda blob: blob.put_if_absent("a", b""),
    "find": lambda blob: blob.find("a"),
    "find_many": lambda blob: blob.find_many(["a", "b"]),
    "get": lambda blob: blob.get("a"),
    "get_ranges": lambda blob: blob.get_ranges("a", [(0, 1)]),
    "stat": lambda blob: blob.stat("a"),
    "delete": lambda blob: blob.delete(["a"]),
    "list": lambda blob: list(blob.list("a")),
    "list_prefixes": lambda blob: list(blob.list_prefixes("a")),
}
CONSENSUS_CALLS: dict[str, Callable[[Consensus], object]] = {
    "head": lambda consensus: consensus.head("a"),
    "append": lambda consensus: consensus.append("a", 0, b""),
    "append first": lambda consensus: consensus.append("a", None, b""),
    "scan": lambda consensus: consensus.scan("a"),
    "truncate": lambda consensus: consensus.truncate("a", 1),
    "keys": lambda consensus: list(consensus.keys()),
}
UNREACHABLE = {
    "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
    "AWS_ALLOW_HTTP": "true",
    "AWS_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody will answer, so do not ask long."""
    monkeypatch.setattr("instar.storage.objects._RETRIES", 1)


@pytest.mark.parametrize("library", OWNERS)
def test_a_library_is_imported_by_its_owner_only(library: str) -> None:
    """Whoever imports it could let it out."""
    importers = set()
    for path in Path(instar.storage.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            if any(name.partition(".")[0] == library for name in names):
                importers.add(path.stem)
    assert importers == OWNERS[library]


@pytest.mark.parametrize("call", BLOB_CALLS)
def test_a_cloud_out_of_reach_is_a_storage_error(call: str) -> None:
    """Every method says so in the same way."""
    blob = open_blob("s3://bucket", UNREACHABLE)
    with pytest.raises(StorageError, match="s3://bucket"):
        BLOB_CALLS[call](blob)


@pytest.mark.parametrize("call", BLOB_CALLS)
def test_a_directory_that_fails_is_a_storage_error(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every system call that a method makes may fail, and every failure is ours."""
    blob = open_blob(tmp_path)
    blob.put("a", b"0")
    blob.put("b/c", b"0")
    failed = False
    for name in ("open", "fsync", "link", "replace", "unlink", "mkdir", "scandir", "stat", "pread", "lstat"):

        def fail(*_: object, **__: object) -> None:
            raise PermissionError(13, "Permission denied")

        with monkeypatch.context() as patched:
            patched.setattr(f"os.{name}", fail)
            if name == "open":
                patched.setattr("builtins.open", fail)
            try:
                BLOB_CALLS[call](blob)
            except InstarError:
                failed = True
    assert failed or call == "put_if_absent"  # which finds the object without any of these


@pytest.mark.parametrize("call", CONSENSUS_CALLS)
@pytest.mark.parametrize("url", ["s3://bucket", "postgresql://127.0.0.1:1/db"])
def test_a_consensus_out_of_reach_is_a_storage_error(url: str, call: str) -> None:
    """Whichever backend it is."""
    consensus = open_consensus(url, open_blob("memory://"), UNREACHABLE)
    with pytest.raises(StorageError):
        CONSENSUS_CALLS[call](consensus)
