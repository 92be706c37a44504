"""The filters of one scan, as Spark's optimizer hands them over: live expressions of the JVM.

Spark prints them as JSON in one call, but not everything in them. What it leaves out is asked of the nodes
that have it, and only where there are such nodes.
"""

from __future__ import annotations

import json
import re
from functools import cached_property, partial
from itertools import accumulate, chain, repeat
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from instar.skipping import Call, Function, Literal, parse_catalyst
from instar.skipping.expression import BOOLEAN
from instar.spark.native.names import by_column_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from instar.schema import Field
    from instar.skipping import Expression
    from instar.spark.native.gateway import Gateway

__all__ = ["Filters"]

_SEPARATOR: Final = "\x1f\x1e\x1f"
_MAX_SET: Final = 10_000
"""How many values of a set are told one by one."""
_LARGEST_SET: Final = 5_000_000
_MOST_RANGES: Final = 64
_WHOLE: Final = frozenset(["byte", "short", "integer", "long", "date", "timestamp", "timestamp_ntz"])
"""Types whose values a set holds as integers."""
_ARITHMETIC: Final = re.compile(r"\.(Add|Subtract|Multiply|Divide|IntegralDivide|Remainder|Pmod)$")


class Filters:
    """Conditions of a scan that are all true for the rows that are wanted."""

    def __init__(self, gateway: Gateway, *sequences: Any) -> None:  # noqa: ANN401 -- Scala sequences
        self._gateway = gateway
        self._sequences = sequences
        self._modes: Sequence[Mapping[str, Sequence[str]]] = ()
        self.settings: Mapping[str, str] | None = None
        """Those of the session, if they are known."""
        self._read: tuple[tuple[tuple[str, int], ...], Expression] | None = None

    @classmethod
    def asked(cls, gateway: Gateway, question: str, sequence: Any) -> Filters:  # noqa: ANN401 -- a Scala sequence
        """Return the conditions of a query that is being planned, of which a question tells all."""
        told = json.loads(question)
        made = cls.told(gateway, sequence, told["filters"], told["zone"], told["modes"])
        made.settings = told["settings"]
        return made

    @classmethod
    def told(
        cls,
        gateway: Gateway,
        sequence: Any,  # noqa: ANN401 -- a Scala sequence
        texts: Sequence[str],
        zone: str,
        modes: Sequence[Mapping[str, Sequence[str]]] = (),
    ) -> Filters:
        """Return conditions that Spark has printed already, in the time zone of their query.

        `modes` have what arithmetic of each does on overflow, and its type, by the position of the node.
        """
        made = cls(gateway, sequence)
        made._texts, made._zone, made._modes = list(texts), zone, modes
        return made

    @cached_property
    def expressions(self) -> list[Any]:
        """The conditions, as objects of the JVM."""
        return [each.apply(at) for each in self._sequences for at in range(each.size())]

    @cached_property
    def _texts(self) -> list[str]:
        return [own.toJSON() for own in self.expressions]

    def __bool__(self) -> bool:
        return bool(self._texts)

    def read(self, fields: Sequence[Field]) -> Expression:
        """Read the conditions over columns that are called `f<id>`, as one."""
        return self.read_named(by_column_name(fields))

    def read_named(self, named: Mapping[str, Field]) -> Expression:
        """Read the conditions over columns that have these names, as one; the same are read once."""
        key = tuple((name, field.id) for name, field in named.items())
        if self._read is None or self._read[0] != key:
            self._read = key, self._read_all(named)
        return self._read[1]

    def _read_all(self, named: Mapping[str, Field]) -> Expression:
        read = [
            parse_catalyst(text, named, self._zone, _lost(partial(self._expression, at), text, modes))
            for at, (text, modes) in enumerate(zip(self._texts, chain(self._modes, repeat({})), strict=False))
        ]
        if not read:
            return Literal(value=True, type=BOOLEAN)
        return read[0] if len(read) == 1 else Call(Function.AND, tuple(read), BOOLEAN)

    def _expression(self, at: int) -> Any:  # noqa: ANN401 -- an expression
        return self.expressions[at]

    @cached_property
    def _zone(self) -> str:
        """The time zone in which timestamps are printed: that of the query, whose thread this is."""
        return self._gateway.time_zone()


def _lost(
    root: Callable[[], Any], text: str, modes: Mapping[str, Sequence[str]]
) -> Mapping[int, Mapping[str, Any]]:
    """Ask for what Spark does not print, by the position of the node in the JSON; `modes` are known."""
    nodes = json.loads(text)
    questions = [_asked(node) for node in nodes]
    found: dict[int, Mapping[str, Any]] = {}
    for at, (mode, type_) in ((int(at), known) for at, known in modes.items()):
        if questions[at] is _arithmetic:
            found[at], questions[at] = {"evalMode": mode, "resultType": json.loads(type_)}, None
    ends = _ends(nodes)
    # How much is wanted of all nodes before each: going only where something is.
    wanted = list(accumulate((question is not None for question in questions), initial=0))
    waiting = [(root(), 0)] if wanted[-1] else []
    while waiting:
        expression, at = waiting.pop()
        question = questions[at]
        if question is not None:
            found[at] = question(expression)
        if wanted[ends[at]] == wanted[at + 1]:
            continue
        children, child = expression.children(), at + 1
        for number in range(nodes[at]["num-children"]):
            if wanted[ends[child]] > wanted[child]:
                waiting.append((children.apply(number), child))
            child = ends[child]
    return found


def _ends(nodes: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return where the subtree at each position ends, of nodes in preorder."""
    ends = [0] * len(nodes)
    for at in reversed(range(len(nodes))):
        end = at + 1
        for _ in range(nodes[at]["num-children"]):
            end = ends[end]
        ends[at] = end
    return ends


def _asked(node: Mapping[str, Any]) -> Any:  # noqa: ANN401 -- a question to an expression
    if "evalMode" in node or "evalContext" in node:
        return _arithmetic if _ARITHMETIC.search(node["class"]) else _mode
    if "escapeChar" in node:
        return _escape
    if "hset" in node:
        return _members
    if (
        node["class"].endswith(".Literal")
        and node.get("dataType") == "binary"
        and node.get("value") is not None
    ):
        return _bytes
    return None


def _mode(expression: Any) -> Mapping[str, Any]:  # noqa: ANN401
    return {"evalMode": expression.evalMode().toString()}


def _arithmetic(expression: Any) -> Mapping[str, Any]:  # noqa: ANN401
    """Ask for the type too: how many digits decimals keep is a setting."""
    return {**_mode(expression), "resultType": json.loads(expression.dataType().json())}


def _escape(expression: Any) -> Mapping[str, Any]:  # noqa: ANN401
    return {"escapeChar": expression.escapeChar()}


def _members(expression: Any) -> Mapping[str, Any]:  # noqa: ANN401
    """Print a set as Spark holds its members: dates in days, timestamps in microseconds."""
    members = expression.hset()
    size = members.size()
    if not size:
        return {"hset": []}
    if size > _LARGEST_SET or members.contains(None):
        return {}
    texts = members.mkString(_SEPARATOR).split(_SEPARATOR)
    if len(texts) != size:
        return {}
    return {"hset": texts} if size <= _MAX_SET else _ranges(expression.child().dataType().typeName(), texts)


def _ranges(kind: str, texts: Sequence[str]) -> Mapping[str, Any]:
    """Take a large set of integers as the ranges between its widest gaps; of other types nothing is said."""
    if kind not in _WHOLE:
        return {}
    numbers = np.sort(np.array(texts, np.int64))
    gaps = np.sort(np.argsort(np.diff(numbers.astype(np.float64)))[1 - _MOST_RANGES :])
    firsts, lasts = numbers[np.append(0, gaps + 1)], numbers[np.append(gaps, len(numbers) - 1)]
    return {"ranges": list(zip(firsts.tolist(), lasts.tolist(), strict=True))}


def _bytes(expression: Any) -> Mapping[str, Any]:  # noqa: ANN401
    return {"value": bytes(expression.value())}
