"""Skipping: which parts does a filter need? Decided from statistics alone, for any expression."""

from instar.skipping.catalyst import parse_catalyst
from instar.skipping.explain import Conjunct, Explanation, Reason, explain, explain_conjuncts, explain_part
from instar.skipping.expression import (
    Anything,
    Call,
    Column,
    Expression,
    Literal,
    Now,
    conjuncts,
    fields_needed,
)
from instar.skipping.functions import Function, Mode, Session
from instar.skipping.prune import Decision, Verdict, decide
from instar.skipping.sql import parse_filter

__all__ = [
    "Anything",
    "Call",
    "Column",
    "Conjunct",
    "Decision",
    "Explanation",
    "Expression",
    "Function",
    "Literal",
    "Mode",
    "Now",
    "Reason",
    "Session",
    "Verdict",
    "conjuncts",
    "decide",
    "explain",
    "explain_conjuncts",
    "explain_part",
    "fields_needed",
    "parse_catalyst",
    "parse_filter",
]
