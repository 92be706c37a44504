"""`.proto` files to descriptors, by the real compiler and with imports resolved.

The compiler runs as a process of its own: it prints errors past Python, and keeps files between calls.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from google.protobuf import descriptor_pb2
from google.protobuf.message import DecodeError

from instar.compat.protobuf.descriptors import describe_messages
from instar.compat.protobuf.model import Encoding
from instar.errors import InvalidSchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from instar.compat.protobuf.model import ProtobufVersion

__all__ = ["compile_proto", "decode_descriptors", "describe_encoding", "load_encoding", "load_protobuf"]

_LIMIT: Final = 60
"""Seconds that a compilation may take."""


def load_protobuf(
    path: Path, *, includes: Sequence[Path] = (), message: str | None = None
) -> ProtobufVersion:
    """Load one version: a `.proto` file, or a file of descriptors that `protoc -o` or Buf made.

    Without `message`, the records may be of any top-level message of the file; a file of descriptors
    names its files in order, and the last one counts.
    """
    files, roots = _find_messages(path, includes, message)
    return describe_messages(files, roots)


def load_encoding(path: Path, *, includes: Sequence[Path] = (), message: str | None = None) -> Encoding:
    """Load how records of one message are encoded; without `message`, the file must have only one."""
    files, roots = _find_messages(path, includes, message)
    if len(roots) > 1:
        names = ", ".join(roots)
        raise InvalidSchemaError(f"{path} defines several messages: choose one as message=…: {names}")
    for file in files:
        file.ClearField("source_code_info")
    return Encoding(descriptor_pb2.FileDescriptorSet(file=files).SerializeToString(), roots[0])


def describe_encoding(encoding: Encoding) -> ProtobufVersion:
    """Describe the version that records are encoded under."""
    return describe_messages(decode_descriptors(encoding.descriptors, "the version"), [encoding.message])


def _find_messages(
    path: Path, includes: Sequence[Path], message: str | None
) -> tuple[list[descriptor_pb2.FileDescriptorProto], list[str]]:
    """Return the files of a version, and the names of the messages whose records are kept."""
    if path.suffix == ".proto":
        files = compile_proto(path, includes=includes)
        own = next(file for file in files if file.name == _inside(path, _roots(path, includes))[1])
    else:
        files = decode_descriptors(_read(path), str(path))
        own = files[-1]
    package = f"{own.package}." if own.package else ""
    known = [f"{package}{it.name}" for it in own.message_type]
    if message is None:
        roots = known
    else:
        every = {f"{file.package}.{it.name}".lstrip("."): it for file in files for it in file.message_type}
        roots = [name for name in every if message in {name, name.rpartition(".")[2]}]
    if not roots:
        wanted = "a message" if message is None else f"a message `{message}`"
        raise InvalidSchemaError(f"{path} does not define {wanted}: it has {', '.join(known) or 'none'}")
    return files, roots


def compile_proto(path: Path, *, includes: Sequence[Path] = ()) -> list[descriptor_pb2.FileDescriptorProto]:
    """Return the descriptors of a file and of all that it imports, dependencies first."""
    if not path.is_file():
        raise InvalidSchemaError(f"cannot read {path}: there is no such file")
    if find_spec("grpc_tools") is None:
        raise InvalidSchemaError("reading .proto files needs grpcio-tools: install instar[stream]")
    roots = _roots(path, includes)
    root, name = _inside(path, roots)
    ordered = [root, *(it for it in roots if it != root)]
    with tempfile.TemporaryDirectory(prefix="instar-") as scratch:
        out = Path(scratch) / "descriptors"
        command = [
            sys.executable,
            "-m",
            "grpc_tools.protoc",
            *(f"-I{it}" for it in ordered),
            f"-I{_bundled()}",
        ]
        command += ["--include_imports", "--include_source_info", f"--descriptor_set_out={out}"]
        command.append(str(root / name))  # in full: the compiler takes names such as @x and --x for options
        try:
            done = subprocess.run(  # noqa: S603 -- our own interpreter, and arguments that no shell sees
                command, capture_output=True, text=True, check=False, timeout=_LIMIT
            )
        except subprocess.TimeoutExpired:
            raise InvalidSchemaError(f"{path} took more than {_LIMIT} seconds to compile") from None
        if done.returncode:
            said = done.stderr.strip()
            where = ", ".join(str(it) for it in ordered)
            next_ = f"\nImports were looked for in {where}: name others with --include, or includes=…"
            hint = next_ if "File not found" in said else ""
            raise InvalidSchemaError(f"{path} cannot be compiled:\n{said}{hint}")
        return decode_descriptors(out.read_bytes(), str(path))


def decode_descriptors(data: bytes, source: str) -> list[descriptor_pb2.FileDescriptorProto]:
    """Decode a set of descriptors."""
    found = descriptor_pb2.FileDescriptorSet()
    try:
        found.ParseFromString(data)
    except DecodeError:
        raise InvalidSchemaError(f"{source} is not a set of protobuf descriptors") from None
    if not found.file:
        raise InvalidSchemaError(f"{source} holds no protobuf descriptors")
    return list(found.file)


def _roots(path: Path, includes: Iterable[Path]) -> list[Path]:
    """Return the folders in which imports are looked for; the file's own folder if none is given."""
    return [it.resolve() for it in includes] or [path.resolve().parent]


def _inside(path: Path, roots: Sequence[Path]) -> tuple[Path, str]:
    """Return the folder that a file is imported from, the deepest if there are more, and its name there."""
    full = path.resolve()
    holding = [root for root in roots if full.is_relative_to(root)]
    if not holding:
        listed = ", ".join(str(root) for root in roots)
        raise InvalidSchemaError(f"{path} is in none of the folders that imports are looked for in: {listed}")
    root = max(holding, key=lambda it: len(it.parts))
    return root, full.relative_to(root).as_posix()


def _bundled() -> Path:
    """Return where the compiler's own files are, such as google/protobuf/timestamp.proto."""
    spec = find_spec("grpc_tools")
    if spec is None or spec.origin is None:
        raise InvalidSchemaError("reading .proto files needs grpcio-tools: install instar[stream]")
    return Path(spec.origin).parent / "_proto"


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidSchemaError(f"cannot read {path}: {error.strerror}") from None
