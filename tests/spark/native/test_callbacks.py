"""Connections from the JVM: closing them never leaves the JVM's lock taken."""

from __future__ import annotations

import select
import socket
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary, ref

import pyarrow as pa
import pytest
from py4j.clientserver import ClientServer, JavaParameters, PythonParameters
from py4j.protocol import Py4JError

import instar
from instar.spark.native import callbacks, java
from instar.spark.native.gateway import gateway_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from instar import Store

pytestmark = pytest.mark.spark


class Broken:
    """Fails when the JVM asks, as a connection does that breaks."""

    def __init__(self) -> None:
        self.asked = 0

    def apply(self, ports: str) -> str:
        """Fail."""
        self.asked += 1
        raise OSError(ports)

    class Java:
        """What the JVM takes this for."""

        implements: ClassVar = ["java.util.function.Function"]


def test_a_failure_while_connections_are_closed_leaves_the_lock_free(
    spark: SparkSession, store: Store
) -> None:
    """Whatever happens in the middle, the next query finds a connection."""
    table = store.create_table("t", "k int")
    table.append(pa.table({"k": pa.array([1, 2], pa.int32())}))
    assert table.read(spark).groupBy("k").count().count() == 2  # adaptive execution calls back from threads
    gateway: Any = spark.sparkContext._gateway
    caretaker = callbacks._caretakers[gateway.get_callback_server()]
    assert isinstance(caretaker, callbacks._Caretaker)
    broken = Broken()
    with pytest.raises(Py4JError):
        caretaker._closer.close(caretaker._lock, caretaker._idle, 0, broken)
    assert broken.asked == 1
    assert not caretaker._lock.isLocked()
    assert table.read(spark).groupBy("k").count().count() == 2


def test_whoever_connects_and_goes_at_once_ends_nothing(spark: SparkSession, store: Store) -> None:
    """A thread that is cancelled, or a scan of ports, leaves a connection that nobody uses."""
    table = store.create_table("t", "k int")
    table.append(pa.table({"k": pa.array([1, 2], pa.int32())}))
    assert table.read(spark).groupBy("k").count().count() == 2
    gateway: Any = spark.sparkContext._gateway
    caretaker = callbacks._caretakers[gateway.get_callback_server()]
    assert isinstance(caretaker, callbacks._Caretaker)
    with socket.create_server(("127.0.0.1", 0)) as server:
        gone = socket.create_connection(server.getsockname())
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        accepted, _ = server.accept()
        gone.close()
        with accepted, accepted.makefile("rb") as stream:
            assert select.select([accepted], [], [], 60)[0], "the end of the connection is not known"
            caretaker._connect(accepted, stream)
    assert table.read(spark).groupBy("k").count().count() == 2


def test_threads_that_begin_together_make_one_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two would each start a server for calls of the JVM, and the caretaker would look after only one."""
    made: list[object] = []
    begun = threading.Barrier(8)

    class Slow:
        def __init__(self, session: object) -> None:
            made.append(session)
            threading.Event().wait(0.2)  # long enough for others to come in, if they could

    def begin(session: Any) -> object:  # noqa: ANN401 -- not a session
        begun.wait(60)
        return gateway_of(session)

    monkeypatch.setattr("instar.spark.native.gateway.Gateway", Slow)
    session = Slow.__new__(Slow)
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(begin, [session] * 8))
    assert made == [session]
    assert len(found) == 1


def test_a_thread_that_ends_leaves_no_connection(spark: SparkSession, store: Store) -> None:
    """A view is planned by calls inside calls, and yet the connection of the thread is kept only once."""
    table = store.create_table("t", "k int")
    table.append(pa.table({"k": pa.array([1, 2], pa.int32())}))
    gateway: Any = spark.sparkContext._gateway
    client = gateway._gateway_client
    instar.register(spark, store)
    left = []

    def query() -> None:
        assert len(spark.sql("select k, count(*) from t group by k").collect()) == 2
        left.append(ref(client.get_thread_connection()))

    for _ in range(2):
        thread = threading.Thread(target=query)
        thread.start()
        thread.join()
    assert [connection() for connection in left] == [None] * 2


def test_a_caretaker_ends_with_its_server(spark: SparkSession) -> None:
    """Whoever connects to one JVM after the other keeps no thread of those that are done with."""
    first: Any = spark.sparkContext._gateway
    known = first.java_parameters
    java = JavaParameters(address=known.address, port=known.port, auth_token=known.auth_token)
    gateway = ClientServer(java, PythonParameters(port=0))
    before = set(threading.enumerate())
    callbacks.tend_callbacks(gateway)
    (caretaker,) = {it for it in set(threading.enumerate()) - before if it.name == "instar-caretaker"}
    gateway.shutdown_callback_server()
    caretaker.join(60)
    assert not caretaker.is_alive()
    gateway.close()


def test_without_a_compiler_queries_run_and_a_warning_says_what_to_set(
    spark: SparkSession, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Spark that has none of what the caretaker takes is used without it."""
    gateway: Any = spark.sparkContext._gateway
    assert callbacks.why_untended(gateway) is None
    monkeypatch.setattr(java, "_COMPILER", "org.codehaus.nowhere.SimpleCompiler")
    monkeypatch.setattr(callbacks, "_caretakers", WeakKeyDictionary())
    with pytest.warns(UserWarning, match=r"ClassNotFoundException.*start them with spark\.sql"):
        callbacks.tend_callbacks(gateway)
    callbacks.tend_callbacks(gateway)  # which has said it once
    assert "ClassNotFoundException" in (callbacks.why_untended(gateway) or "")
    table = store.create_table("t", "k int")
    table.append(pa.table({"k": pa.array([1, 2], pa.int32())}))
    assert table.read(spark).groupBy("k").count().count() == 2
