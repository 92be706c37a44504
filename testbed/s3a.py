"""Hadoop's file system for S3, for tests and benchmarks: pinned by its hash, and outside the environment.

PyPI has it inside the source distribution of a package, which is only unpacked.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

REQUIREMENT = (
    "sagemaker_pyspark==1.4.5 "
    "--hash=sha256:05ca2d5081d7138ce29a8fb0a9cba077f28c825288ed07aed46a82e63c0bf1fb\n"
)
JARS = ("hadoop-aws-3.3.1.jar", "aws-java-sdk-bundle-1.11.901.jar")
OLD_UNITS = {
    "threads.keepalivetime": 60,
    "connection.establish.timeout": 5000,
    "connection.timeout": 200_000,
    "connection.ttl": 300_000,
    "connection.request.timeout": 0,
    "multipart.purge.age": 86_400,
    "retry.interval": 500,
    "retry.throttle.interval": 100,
}
"""Settings whose defaults have units in the Hadoop that Spark ships, which this older S3A cannot read."""

S3A_ENVIRONMENT = {
    "spark.hadoop.fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
}
"""Spark hands keys of the environment on by itself; this S3A has to be told who takes them."""


def s3a_settings() -> dict[str, str]:
    """Return the settings of a session that has S3A."""
    plain = {f"spark.hadoop.fs.s3a.{name}": str(value) for name, value in OLD_UNITS.items()}
    return {"spark.jars": s3a_jars(), **plain}


def s3a_jars() -> str:
    """Return the jars, as Spark wants them listed."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "instar" / "s3a-3.3.1"
    found = [cache / name for name in JARS]
    if not all(path.exists() for path in found):
        _fetch(cache)
    return ",".join(str(path) for path in found)


def _fetch(cache: Path) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as directory:
        wanted = Path(directory) / "wanted.txt"
        wanted.write_text(REQUIREMENT)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        subprocess.run([*pip, "--dest", directory, "--requirement", str(wanted)], check=True)
        (archive,) = Path(directory).glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            for member in packed:
                name = member.name.rpartition("/")[2]
                if name in JARS:
                    source = packed.extractfile(member)
                    assert source is not None
                    partial = Path(directory) / name
                    partial.write_bytes(source.read())
                    partial.replace(cache / name)
