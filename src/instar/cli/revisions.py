"""Files as they were at a revision of git, with the folders that they import from."""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from instar.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["at_revision"]


@contextmanager
def at_revision(
    revision: str, file: Path, folders: Sequence[Path]
) -> Iterator[tuple[Path, tuple[Path, ...]] | None]:
    """Give the old file and the old folders, until the context ends; None if there was no such file."""
    if revision.startswith("-"):
        raise UsageError(f"{revision!r} is not a revision of git")
    root = Path(_git(file.parent, "rev-parse", "--show-toplevel").decode().strip())
    _git(root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", wanted=revision)
    name = _inside(file, root)
    if not _git(root, "ls-tree", "-r", "--name-only", "-z", revision, "--", name):
        yield None
        return
    wanted = [name, *(_inside(it, root) for it in folders)]
    present = [it for it in dict.fromkeys(wanted) if it == "." or _git(root, "ls-tree", revision, "--", it)]
    packed = _git(root, "archive", "--format=tar", revision, "--", *present)
    with tempfile.TemporaryDirectory(prefix="instar-") as scratch:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(scratch, filter="data")
        old = Path(scratch)
        yield (
            old / name,
            tuple(old / _inside(it, root) for it in folders if (old / _inside(it, root)).is_dir()),
        )


def _inside(path: Path, root: Path) -> str:
    full = path.resolve()
    if not full.is_relative_to(root.resolve()):
        raise UsageError(f"{path} is not in the repository at {root}")
    return full.relative_to(root.resolve()).as_posix()


def _git(folder: Path, *arguments: str, wanted: str | None = None) -> bytes:
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 -- no shell sees it
    except OSError as error:
        raise UsageError(f"--since needs git, which cannot be run: {error.strerror}") from None
    if done.returncode and wanted is not None:
        raise UsageError(f"git does not know the revision {wanted!r}; in CI, fetch it first (fetch-depth: 0)")
    if done.returncode:
        raise UsageError(f"git {arguments[0]} failed: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout
