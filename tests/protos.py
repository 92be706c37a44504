"""Protobuf for tests: many small files compiled in one call, and what Buf's real binary says about them."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import grpc_tools
from google.protobuf import descriptor_pb2, message_factory

from instar.compat.protobuf.descriptors import describe_messages, fill_pool

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from google.protobuf.message import Message

    from instar.compat import ProtobufVersion

Files = dict[str, descriptor_pb2.FileDescriptorProto]


def compile_files(folder: Path, texts: Mapping[str, str]) -> Files:
    """Compile files of these names and texts, and return all descriptors by name."""
    folder.mkdir(parents=True)
    for name, text in texts.items():
        (folder / name).write_text(text)
    out = folder / "all.binpb"
    bundled = Path(grpc_tools.__file__).parent / "_proto"
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", f"-I{bundled}", "--include_imports"]
    subprocess.run([*command, f"-o{out}", *texts], check=True)
    found = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    return {file.name: file for file in found.file}


def with_imports(files: Files, name: str) -> list[descriptor_pb2.FileDescriptorProto]:
    """Return a file after all that it imports."""
    found = [it for needed in files[name].dependency for it in with_imports(files, needed)]
    return [*{it.name: it for it in found}.values(), files[name]]


def version_of(files: Files, name: str) -> ProtobufVersion:
    """Describe every top-level message of one file."""
    file = files[name]
    return describe_messages(
        with_imports(files, name), [f"{file.package}.{it.name}" for it in file.message_type]
    )


def message_class(files: Files, name: str, message: str) -> type[Message]:
    """Return the class of a message, in a pool of its own."""
    pool = fill_pool(with_imports(files, name))
    descriptor = pool.FindMessageTypeByName(f"{files[name].package}.{message}")
    found: type[Message] = message_factory.GetMessageClass(descriptor)
    return found


def buf_breaking(folder: Path, old: Files, new: Files, rules: str) -> dict[str, set[str]]:
    """Return the rules that Buf says are broken, by file."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [_image(folder / "old.binpb", old.values()), _image(folder / "new.binpb", new.values())]
    config = json.dumps({"version": "v2", "breaking": {"use": [rules]}})
    buf = Path(sysconfig.get_path("scripts")) / "buf"
    command = [
        str(buf),
        "breaking",
        str(paths[1]),
        "--against",
        str(paths[0]),
        "--config",
        config,
        "--error-format",
        "json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode in {0, 100}, done.stderr
    found: dict[str, set[str]] = defaultdict(set)
    for line in done.stdout.splitlines():
        broken = json.loads(line)
        found[broken["path"]].add(broken["type"])
    return found


def _image(path: Path, files: Iterable[descriptor_pb2.FileDescriptorProto]) -> Path:
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=files).SerializeToString())
    return path
