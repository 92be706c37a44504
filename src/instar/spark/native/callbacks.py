"""Calls from the JVM into Python, kept few: their connections are closed, and their answers let go.

Py4J keeps a connection for every thread of the JVM that ever called back, and with it a thread and a
descriptor here and a descriptor there, for ever. Spark's threads come and go with the queries, so that a
session would end in `Too many open files`. One thread here, the caretaker, closes connections that no call
is using. Whoever needs one again gets a new one.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary, ref

from py4j.clientserver import ClientServerConnection, PythonServer
from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

__all__ = ["MOST_IDLE", "hold_answer", "tend_callbacks"]

MOST_IDLE: Final = 8
"""How many connections may wait for the next call of their thread."""
_HELD_SECONDS: Final = 2.0
_AGAIN_SECONDS: Final = 0.05
_GATEWAY_SERVER: Final = "GATEWAY_SERVER"


class _Answers:
    """Answers to the JVM, each kept for a moment: Py4J sends its number, and the JVM finds it by that.

    As soon as Python lets go of an answer, another thread may tell the JVM to forget that object.
    """

    def __init__(self) -> None:
        self._held: deque[tuple[float, object]] = deque()
        self._lock = threading.Lock()
        self._running = False

    def hold(self, answer: object) -> None:
        """Keep an answer for long enough."""
        with self._lock:
            self._held.append((time.monotonic() + _HELD_SECONDS, answer))
            if not self._running:
                self._running = True
                threading.Thread(target=self._let_go, name="instar-answers", daemon=True).start()

    def _let_go(self) -> None:
        """Let go of one answer after another, until there is none."""
        while True:
            with self._lock:
                if not self._held:
                    self._running = False
                    return
                due = self._held[0][0]
            time.sleep(max(0.0, due - time.monotonic()))
            with self._lock:
                self._held.popleft()


_answers = _Answers()
hold_answer = _answers.hold


class _Calls:
    """How many calls of the JVM one connection is in the middle of, one inside the other.

    The JVM counts a connection among the idle ones as soon as an inner call has ended, though the outer one
    goes on. So it is taken out again before the outer one ends, and what the JVM holds to be idle is so if no
    call is being answered here.
    """

    def __init__(self, connection: ClientServerConnection, caretaker: _Caretaker) -> None:
        self.depth = 0
        self.port = connection.socket.getpeername()[1]
        self._connection = ref(connection)  # which holds this one
        self._caretaker = caretaker
        self._is_nested = False

    def answer(self, *args: Any) -> Any:  # noqa: ANN401 -- Py4J's own signature
        """Answer one call."""
        self.depth += 1
        try:
            # Where Py4J calls our objects.
            answer = ClientServerConnection._call_proxy(self._connection(), *args)  # noqa: SLF001
            if self.depth > 1:
                self._is_nested = True
            elif self._is_nested:
                self._is_nested = False
                self._caretaker.take_back()
            return answer
        finally:
            self.depth -= 1


class _Caretaker:
    """Closes the connections of one gateway that are idle, whenever there have come to be many."""

    def __init__(self, gateway: JavaGateway) -> None:
        server = gateway.get_callback_server()
        self._server = ref(server)
        self._client = JavaObject(_GATEWAY_SERVER, gateway._gateway_client).getCallbackClient()  # noqa: SLF001
        # What is needed is in fields that have no other way to them.
        fields = gateway.jvm.java.lang.Class.forName("py4j.CallbackClient")
        self._idle, self._lock = (_field(fields, name, self._client) for name in ("connections", "lock"))
        self._calls: WeakKeyDictionary[ClientServerConnection, _Calls] = WeakKeyDictionary()
        self._create = server._create_connection  # noqa: SLF001 -- there is no other way to know of them
        self._many = threading.Event()
        server._create_connection = self._connect  # noqa: SLF001
        threading.Thread(target=self._tend, name="instar-caretaker", daemon=True).start()

    def take_back(self) -> None:
        """Take the connection of the calling thread out of the idle ones, if it is there."""
        own = self._client.getPerThreadConnection()
        self._lock.lock()
        try:
            self._idle.remove(own)
        finally:
            self._lock.unlock()

    def _connect(self, *args: Any) -> ClientServerConnection:  # noqa: ANN401 -- Py4J's own signature
        """Make a connection whose calls are counted."""
        connection = self._create(*args)
        calls = self._calls[connection] = _Calls(connection, self)
        connection._call_proxy = calls.answer  # noqa: SLF001
        if len(self._calls) > MOST_IDLE:
            self._many.set()
        return connection

    def _tend(self) -> None:
        while True:
            self._many.wait()
            self._many.clear()
            server = self._server()
            if server is None or server.is_shutdown:
                return
            with suppress(Py4JError):  # a JVM that is going away takes its connections along
                self._close_idle()
            if len(self._calls) > MOST_IDLE:  # in use just now, or not ended yet: look again soon
                self._many.set()
            del server
            time.sleep(_AGAIN_SECONDS)

    def _close_idle(self) -> None:
        """Close all connections but the latest that wait for a call, as the JVM itself would.

        A thread of the JVM takes its connection from among the idle ones while it holds the lock, and makes
        another one if it finds it closed. So nobody is using what is closed here.
        """
        known = {calls.port: calls for calls in list(self._calls.values())}
        self._lock.lock()
        try:
            own = [each for each in self._idle.toArray() if each.isInitiatedFromClient()]
            for each in own[:-MOST_IDLE]:
                socket = each.getSocket()  # none if it is closed
                calls = None if socket is None else known.get(socket.getLocalPort())
                if socket is None or (calls is not None and calls.depth == 0):
                    self._idle.remove(each)
                    each.shutdown()
        finally:
            self._lock.unlock()


def _field(java_class: Any, name: str, of: Any) -> Any:  # noqa: ANN401 -- Java objects
    field = java_class.getDeclaredField(name)
    field.setAccessible(True)
    return field.get(of)


_caretakers: WeakKeyDictionary[PythonServer, _Caretaker] = WeakKeyDictionary()
_lock = threading.Lock()


def tend_callbacks(gateway: JavaGateway) -> None:
    """Keep the connections of a gateway few, from now on.

    Without pinned threads, Py4J has no connections of its own for threads, and closes idle ones itself.
    """
    server = gateway.get_callback_server()
    with _lock:
        if isinstance(server, PythonServer) and server not in _caretakers:
            _caretakers[server] = _Caretaker(gateway)
