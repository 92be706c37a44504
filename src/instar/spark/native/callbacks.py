"""Calls from the JVM into Python, kept few: their connections are closed, and their answers let go.

Py4J keeps a connection for every thread of the JVM that ever called back, and with it a thread and a
descriptor here and a descriptor there, for ever. Spark's threads come and go with the queries, so that a
session would end in `Too many open files`. One thread here, the caretaker, closes connections that no call
is using. A later call gets a new one.

A thread here that calls the JVM has a connection too, which Py4J lets go of once when the thread ends. But it
keeps it twice where the JVM has called back in the middle and the answer has called the JVM again. So it is
made to keep it once.

The JVM guards its connections by a lock. It is only ever held inside one call to the JVM, which gives it back
whatever happens: if it were taken and given back by calls of ours, a connection that breaks in between would
leave it taken for ever, and every thread of the JVM that calls back would wait.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final
from weakref import WeakKeyDictionary, ref

from py4j.clientserver import ClientServerConnection, PythonServer
from py4j.java_gateway import JavaObject, post_server_shutdown
from py4j.protocol import Py4JError

from instar.spark.native.java import compile_class, construct, why_not_compiled

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

__all__ = ["MOST_IDLE", "hold_answer", "tend_callbacks", "why_untended"]

MOST_IDLE: Final = 8
"""How many connections may wait for the next call of their thread."""
_HELD_SECONDS: Final = 2.0
_AGAIN_SECONDS: Final = 0.05
_GATEWAY_SERVER: Final = "GATEWAY_SERVER"
_CLOSER: Final = """
public class InstarIdleConnections {
    /** Closes idle connections that Java has opened, but for the latest, if Python agrees. */
    public void close(java.util.concurrent.locks.Lock lock, java.util.Deque idle, int most,
                      java.util.function.Function unused) {
        lock.lock();
        try {
            java.util.List own = new java.util.ArrayList();
            Object[] all = idle.toArray();
            for (int i = 0; i < all.length; i++) {
                if (((py4j.ClientServerConnection) all[i]).isInitiatedFromClient()) own.add(all[i]);
            }
            StringBuilder ports = new StringBuilder();
            for (int i = 0; i < own.size() - most; i++) {
                java.net.Socket socket = ((py4j.ClientServerConnection) own.get(i)).getSocket();
                ports.append(socket == null ? 0 : socket.getLocalPort()).append(' ');
            }
            if (ports.length() == 0) return;
            String answer = (String) unused.apply(ports.toString());
            for (int i = 0; i < answer.length(); i++) {
                if (answer.charAt(i) == 'y') {
                    idle.remove(own.get(i));
                    ((py4j.ClientServerConnection) own.get(i)).shutdown();
                }
            }
        } finally {
            lock.unlock();
        }
    }
}
"""
_POOLS: Final = ("shuffleExchange", "broadcastExchange", "subquery", "resultQueryStage")


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
        self.port: int | None
        try:
            self.port = connection.socket.getpeername()[1]
        except OSError:  # the thread that connected has gone: an error here would end Py4J's server
            self.port = None
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
        client_class = gateway.jvm.java.lang.Class.forName("py4j.CallbackClient")
        self._idle, self._lock = (
            _field(client_class, name, self._client) for name in ("connections", "lock")
        )
        self._nothing = gateway.new_array(gateway.jvm.java.lang.Object, 0)
        no_types = gateway.new_array(gateway.jvm.java.lang.Class, 0)
        self._get_connection = self._client.getClass().getDeclaredMethod("getConnection", no_types)
        self._get_connection.setAccessible(True)
        self._closer = construct(gateway, compile_class(gateway, _CLOSER, "InstarIdleConnections"))
        self._calls: WeakKeyDictionary[ClientServerConnection, _Calls] = WeakKeyDictionary()
        self._unused = _Unused(self._calls)
        self._many = threading.Event()
        post_server_shutdown.connect(self._end, sender=server)
        self._create = type(server)._create_connection  # noqa: SLF001 -- as below
        server._create_connection = self._connect  # noqa: SLF001 -- there is no other way to know of them
        threading.Thread(target=self._tend, name="instar-caretaker", daemon=True).start()

    def take_back(self) -> None:
        """Take the connection of the calling thread out of the idle ones, if it is there."""
        self._get_connection.invoke(self._client, self._nothing)

    def _connect(self, *args: Any) -> ClientServerConnection:  # noqa: ANN401 -- Py4J's own signature
        """Make a connection whose calls are counted."""
        connection = self._create(self._server(), *args)
        calls = self._calls[connection] = _Calls(connection, self)
        connection._call_proxy = calls.answer  # noqa: SLF001
        if len(self._calls) > MOST_IDLE:
            self._many.set()
        return connection

    def _end(self, *, sender: PythonServer, **_: object) -> None:
        """End with the server."""
        post_server_shutdown.disconnect(self._end, sender=sender)
        self._many.set()

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
        another one if it finds it closed. So nobody is using what is closed while the lock is held.
        """
        self._closer.close(self._lock, self._idle, MOST_IDLE, self._unused)


class _Unused:
    """What the JVM asks while it holds the lock: which ports have no call that is being answered here."""

    def __init__(self, calls: WeakKeyDictionary[ClientServerConnection, _Calls]) -> None:
        self._calls = calls

    def apply(self, ports: str) -> str:
        """Answer with a letter for each port; 0 is a connection that is closed already."""
        depths = {calls.port: calls.depth for calls in list(self._calls.values())}
        return "".join("y" if port == "0" or depths.get(int(port)) == 0 else "n" for port in ports.split())

    class Java:
        """What the JVM takes this for."""

        implements: ClassVar = ["java.util.function.Function"]


def _field(java_class: Any, name: str, of: Any) -> Any:  # noqa: ANN401 -- Java objects
    field = java_class.getDeclaredField(name)
    field.setAccessible(True)
    return field.get(of)


_caretakers: WeakKeyDictionary[PythonServer, _Caretaker | str] = WeakKeyDictionary()
"""The caretaker of each server that takes calls of a JVM, or why it has none."""
_lock = threading.Lock()


def tend_callbacks(gateway: JavaGateway) -> None:
    """Keep the connections of a gateway few, both ways, from now on; where that cannot be done, warn.

    Without pinned threads, Py4J has no connections of its own for threads, and closes idle ones itself.
    """
    server = gateway.get_callback_server()
    with _lock:
        if not isinstance(server, PythonServer) or server in _caretakers:
            return
        _keep_once(gateway)
        try:
            _caretakers[server] = _Caretaker(gateway)
        except Py4JError as error:
            why = _caretakers[server] = why_not_compiled(error)
            warnings.warn(_remedy(why), stacklevel=2)


def _keep_once(gateway: JavaGateway) -> None:
    """Let a thread's connection be kept once, also after calls inside calls: its end lets go of one."""
    kept = gateway._gateway_client.deque  # noqa: SLF001 -- as below

    def give_back(connection: ClientServerConnection) -> None:
        with suppress(ValueError):
            kept.remove(connection)
        kept.append(connection)

    gateway._gateway_client._give_back_connection = give_back  # noqa: SLF001 -- there is no other way


def why_untended(gateway: JavaGateway) -> str | None:
    """Say why connections of a gateway are not closed, and what to do; None if they are."""
    found = _caretakers.get(gateway.get_callback_server())
    return _remedy(found) if isinstance(found, str) else None


def _remedy(why: str) -> str:
    settings = " ".join(f"spark.sql.{pool}.maxThreadThreshold=8" for pool in _POOLS)
    return (
        f"connections from Spark's threads are not closed ({why}), and long sessions run out of descriptors: "
        f"start them with {settings}"
    )
