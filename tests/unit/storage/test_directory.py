"""A local directory keeps what it acknowledged, whatever happens next, and nothing leads out of it."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from instar.errors import InvalidNameError, StorageError, StorageTimeoutError
from instar.storage import DirectoryBlob

if TYPE_CHECKING:
    from collections.abc import Callable

PUTS = ["put", "put_if_absent"]


def opened(descriptor: int) -> Path:
    """Return what a descriptor was opened on."""
    return Path(f"/proc/self/fd/{descriptor}").readlink()


class Watched:
    """Records the system calls that durability depends on, with paths relative to a root."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
        self.calls: list[str] = []
        self._monkeypatch = monkeypatch
        self._root = root
        self.replace_call("fsync", opened)
        self.replace_call("link", lambda _, target: target)
        self.replace_call("replace", lambda _, target: target)
        self.replace_call("mkdir", lambda path, *_: path)

    def replace_call(self, name: str, path: Callable[..., str | Path]) -> None:
        """Record a call after it was made, with the path that it was about."""
        real: Callable[..., Any] = getattr(os, name)

        def recorded(*arguments: Any) -> Any:  # noqa: ANN401 - whatever the call takes and returns
            answer = real(*arguments)
            where = Path(path(*arguments))
            staged = where.parent.name == ".staging"
            shown = "staged" if staged else where.relative_to(self._root).as_posix()
            self.calls.append(f"{name} {shown}")
            return answer

        self._monkeypatch.setattr(os, name, recorded)


@pytest.mark.parametrize(("method", "naming"), [("put", "replace"), ("put_if_absent", "link")])
def test_a_put_is_on_disk_before_it_is_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, naming: str
) -> None:
    """Content first, then the name, then the directory that holds the name, and nothing else."""
    blob = DirectoryBlob(tmp_path / "lake")
    blob.put("a/first", b"")
    watched = Watched(monkeypatch, tmp_path)
    getattr(blob, method)("a/b", b"data")
    assert watched.calls == ["fsync staged", f"{naming} lake/a/b", "fsync lake/a"]


def test_what_need_not_last_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It appears whole for everybody else, and the disk gets it whenever the system likes."""
    blob = DirectoryBlob(tmp_path / "lake")
    blob.put("a/first", b"")
    watched = Watched(monkeypatch, tmp_path)
    blob.put("a/b", b"data", durable=False)
    assert watched.calls == ["replace lake/a/b"]
    assert blob.get("a/b") == b"data"


@pytest.mark.parametrize("method", PUTS)
def test_new_directories_are_on_disk_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """Every directory that a put makes is synced in its parent, from the root's first missing parent on."""
    watched = Watched(monkeypatch, tmp_path)
    getattr(DirectoryBlob(tmp_path / "x/lake"), method)("a/b/c", b"data")
    for made in ("x", "x/lake", "x/lake/a", "x/lake/a/b"):
        parent = Path(made).parent.as_posix()
        rest = watched.calls[watched.calls.index(f"mkdir {made}") + 1 :]
        assert f"fsync {parent}" in rest, made
    assert watched.calls[-1] == "fsync x/lake/a/b"


def test_a_directory_that_somebody_else_just_made_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may die before they do it, and then the file inside would go with it."""
    (tmp_path / "a").mkdir()
    watched = Watched(monkeypatch, tmp_path)
    DirectoryBlob(tmp_path).put("a/b", b"")
    named = watched.calls.index("replace a/b")
    assert "fsync ." in watched.calls[:named]


@pytest.mark.parametrize("method", PUTS)
def test_content_that_cannot_reach_the_disk_gets_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """The put failed for certain: there is no object, and nothing is left lying around."""
    blob = DirectoryBlob(tmp_path)
    blob.put("first", b"")

    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageError, match="No space left on device: free some, and try again") as raised:
        getattr(blob, method)("a", b"")
    assert type(raised.value) is StorageError
    assert blob.find("a") is None
    assert list(blob.list_unfinished()) == []


@pytest.mark.parametrize("method", PUTS)
def test_a_name_that_cannot_reach_the_disk_is_not_known_to_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """The object is visible, but might not survive a power cut: the outcome is unknown."""
    blob = DirectoryBlob(tmp_path)
    blob.put("a/first", b"")
    real = os.fsync

    def fail_for_directories(fd: int) -> None:
        if opened(fd).is_dir():
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(fd)

    monkeypatch.setattr(os, "fsync", fail_for_directories)
    with pytest.raises(StorageTimeoutError, match="Input/output error"):
        getattr(blob, method)("a/b", b"data")
    assert blob.find("a/b") == b"data"


@pytest.mark.parametrize("method", PUTS)
@pytest.mark.parametrize("call", ["fsync", "link", "replace", "mkdir"])
def test_a_put_that_is_killed_leaves_the_old_object_or_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, call: str
) -> None:
    """At most a staged file stays behind, which no list shows and a vacuum can find and delete."""
    blob = DirectoryBlob(tmp_path)

    class KilledError(BaseException):
        """Nothing of ours catches this, as nothing catches a kill."""

    def die(*_: object) -> None:
        raise KilledError

    monkeypatch.setattr(os, call, die)
    try:
        getattr(blob, method)("a/b", b"data")
    except KilledError:
        assert blob.find("a/b") is None
        assert list(blob.list()) == []
        assert list(blob.list_prefixes()) == []
        unfinished = [stored.key for stored in blob.list_unfinished()]
        blob.delete(unfinished)
        assert list(blob.list_unfinished()) == []
    else:
        assert blob.find("a/b") == b"data"
        assert call not in {"fsync", "mkdir"}


def test_only_staged_names_may_be_deleted_beside_keys(tmp_path: Path) -> None:
    """The exception for unfinished puts opens no other door."""
    blob = DirectoryBlob(tmp_path / "lake")
    (tmp_path / "secret").write_bytes(b"")
    for key in (".staging/../../secret", ".staging/x", ".staging", ".staging/" + "g" * 32):
        with pytest.raises(InvalidNameError):
            blob.delete([key])
    with pytest.raises(InvalidNameError):
        blob.put(".staging/" + "a" * 32, b"")
    assert (tmp_path / "secret").exists()


def test_symbolic_links_lead_nowhere(tmp_path: Path) -> None:
    """A link planted in the store, to a file or a directory, is neither read, written, listed nor deleted."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    root = tmp_path / "lake"
    root.mkdir()
    (root / "dir").symlink_to(outside)
    (root / "file").symlink_to(outside / "secret")
    (root / "dangling").symlink_to(outside / "new")
    blob = DirectoryBlob(root)
    for key in ("dir/secret", "dir/new", "file", "dangling"):
        calls: list[Callable[[], object]] = [
            lambda key=key: blob.find(key),  # type: ignore[misc] # mypy has no type for it
            lambda key=key: blob.stat(key),  # type: ignore[misc]
            lambda key=key: blob.get_ranges(key, [(0, 1)]),  # type: ignore[misc]
            lambda key=key: blob.put(key, b"x"),  # type: ignore[misc]
            lambda key=key: blob.put_if_absent(key, b"x"),  # type: ignore[misc]
            lambda key=key: blob.delete([key]),  # type: ignore[misc]
        ]
        for call in calls:
            with pytest.raises(InvalidNameError, match="symbolic link"):
                call()
    assert list(blob.list()) == []
    assert list(blob.list_prefixes()) == []
    assert [path.name for path in outside.iterdir()] == ["secret"]
    assert (outside / "secret").read_bytes() == b"secret"


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    """Where a store is, is for its owner to say."""
    (tmp_path / "real").mkdir()
    (tmp_path / "lake").symlink_to(tmp_path / "real")
    DirectoryBlob(tmp_path / "lake").put("a", b"1")
    assert (tmp_path / "real" / "a").read_bytes() == b"1"


def test_reading_creates_nothing(tmp_path: Path) -> None:
    """Not even the root."""
    blob = DirectoryBlob(tmp_path / "lake")
    assert blob.find("a/b") is None
    assert blob.stat("a") is None
    assert list(blob.list("a")) == []
    assert list(blob.list_prefixes()) == []
    blob.delete(["a"])
    assert list(tmp_path.iterdir()) == []


def test_a_root_that_was_removed_is_made_again(tmp_path: Path) -> None:
    """A handle outlives its directory."""
    blob = DirectoryBlob(tmp_path / "lake")
    blob.put("a/b", b"1")
    shutil.rmtree(tmp_path / "lake")
    assert blob.find("a/b") is None
    blob.put("a/b", b"2")
    assert blob.put_if_absent("a/c", b"3")
    assert [stored.key for stored in blob.list()] == ["a/b", "a/c"]


def test_errors_of_the_system_become_ours(tmp_path: Path) -> None:
    """A file where a directory is needed, on every path through the code."""
    (tmp_path / "lake").write_bytes(b"in the way")
    blob = DirectoryBlob(tmp_path / "lake")
    for call in (lambda: blob.put("a", b""), lambda: blob.put_if_absent("a", b"")):
        with pytest.raises(StorageError) as raised:
            call()
        assert type(raised.value) is StorageError
    assert blob.find("a") is None
    assert list(blob.list()) == []


def test_a_deletion_that_fails_says_whether_others_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing deleted is certain; a part deleted is not."""
    blob = DirectoryBlob(tmp_path)
    for key in "abc":
        blob.put(key, b"")
    real = os.unlink

    def fail_for_b(path: str) -> None:
        if path.endswith("/b"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        real(path)

    monkeypatch.setattr(os, "unlink", fail_for_b)
    with pytest.raises(StorageError) as raised:
        blob.delete(["b", "a"])
    assert type(raised.value) is StorageError
    with pytest.raises(StorageTimeoutError, match="after 1 others"):
        blob.delete(["a", "b", "c"])
    assert [stored.key for stored in blob.list()] == ["b", "c"]
