"""How the service listens and ends."""

from __future__ import annotations

import socket

from instar.service.serve import _listen


def test_no_part_of_an_answer_waits_for_another() -> None:
    """The headers and the body of an answer are sent at once, on every connection that is accepted."""
    with _listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
