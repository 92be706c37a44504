"""Spark itself judges the interpreter: random filters over random parts, in several zones and both modes."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from instar.skipping import Session, parse_catalyst, parse_filter
from instar.stats import bounds_columns
from tests.spark.skipping import oracle
from tests.spark.skipping.grammar import Node, make_filter, make_value, smaller
from tests.spark.skipping.poison import COLUMNS, SCHEMA, stats_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Apia", "Australia/Lord_Howe")
FIELDS = {field.name: field for field in SCHEMA.fields}
FOUND = Path(__file__).parents[2] / "fixtures" / "skipping" / "found.json"
PARTS, ROWS, FILTERS, VALUES = 48, 4, 32, 32
SOAK = os.environ.get("INSTAR_HYPOTHESIS") == "soak"
ROUNDS = 2000 if SOAK else 12


@pytest.fixture
def quick(spark: SparkSession) -> Iterator[SparkSession]:
    """Return Spark without code generation, which takes longer than the few rows here."""
    names = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    before = {name: spark.conf.get(name, None) for name in names}
    for name, value in names.items():
        spark.conf.set(name, value)
    yield spark
    for name, old in before.items():
        if old is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, old)


@dataclass(frozen=True)
class Round:
    """One view full of parts, and how many filters were tried on it."""

    pairs: int
    excluded: int


def set_session(spark: SparkSession, session: Session) -> None:
    """Give Spark the settings of a session."""
    spark.conf.set("spark.sql.session.timeZone", session.zone)
    spark.conf.set("spark.sql.ansi.enabled", str(session.ansi).lower())


def cases_of(
    spark: SparkSession, node: Node, parts: oracle.Parts, session: Session, fronts: list[str]
) -> list[oracle.Case]:
    """Decide a filter through the front ends."""
    text = str(node)
    cases = [oracle.proved(text, parse_filter(text, SCHEMA, session), parts)]
    for stage in fronts:
        try:
            printed = oracle.catalyst_json(spark, text, stage)
        except PySparkException:
            continue  # a constant in it fails before any row is seen
        if printed is not None:
            expression = parse_catalyst(printed, FIELDS, session.zone)
            cases.append(oracle.proved(text, expression, parts, stage))
    return cases


def run_round(spark: SparkSession, seed: int) -> Round:
    """Try filters on parts, and fail with the smallest counterexample that can be found."""
    random = Random(seed)
    session = Session(ZONES[seed % len(ZONES)], ansi=seed // len(ZONES) % 3 != 1)
    set_session(spark, session)
    parts = oracle.make_parts(random, PARTS, ROWS)
    oracle.register(spark, parts, "skipping_rows")
    nodes = {
        str(node): node for node in (make_filter(random, random.choice((1, 2, 2, 3))) for _ in range(FILTERS))
    }
    texts = list(dict.fromkeys(str(make_value(random)) for _ in range(VALUES)))
    cases = []
    for number, node in enumerate(nodes.values()):
        fronts = [["analyzed"], [], ["optimizedPlan"], []][number % 4]
        cases += cases_of(spark, node, parts, session, fronts)
    for case, why in oracle.refuted(spark, "skipping_rows", cases):
        small, part = shrink(spark, nodes[case.text], case, parts, session)
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*parts.parts[part].values(), strict=True)]
        record = {"filter": small, "zone": session.zone, "ansi": session.ansi, "rows": rows}
        pytest.fail(f"seed {seed}, {case.front}: {why}\nadd to {FOUND.name}: {json.dumps(record)}")
    claims = [oracle.claim(text, parse_filter(text, SCHEMA, session), parts) for text in texts]
    wrong = oracle.unforeseen(spark, "skipping_rows", [own for own in claims if own is not None], parts)
    assert not wrong, f"seed {seed}, {session}: {wrong[0]}"
    return Round(PARTS * len(cases), sum(len(case.parts) for case in cases))


def shrink(
    spark: SparkSession, node: Node, case: oracle.Case, parts: oracle.Parts, session: Session
) -> tuple[str, int]:
    """Make a refuted filter smaller for as long as it stays refuted, and find one part that does it."""
    fronts = [] if case.front == "sql" else [case.front]
    for _ in range(30):
        for option in smaller(node):
            found = oracle.refuted(spark, "skipping_rows", cases_of(spark, option, parts, session, fronts))
            if found:
                node, case = option, found[0][0]
                break
        else:
            break
    for part in case.parts:
        if oracle.refuted(spark, "skipping_rows", [oracle.Case(case.text, (part,), case.front)]):
            return case.text, part
    return case.text, case.parts[0]


@pytest.mark.timeout(0 if SOAK else 900)
def test_no_excluded_part_has_a_row_that_is_true_or_fails(quick: SparkSession) -> None:
    """Of 20,000 pairs of a filter and a part, Spark finds no true row and no error in those excluded.

    What functions come to is among what was foreseen, too.
    """
    base = Random().randrange(1 << 40) if SOAK else 0
    rounds = [run_round(quick, base + number) for number in range(ROUNDS)]
    assert sum(one.pairs for one in rounds) >= 20_000
    # Excluding nothing would be sound too.
    assert sum(one.excluded for one in rounds) >= 0.25 * sum(one.pairs for one in rounds)


def found_cases() -> list[dict[str, Any]]:
    """Return the counterexamples that were found at some time."""
    cases: list[dict[str, Any]] = json.loads(FOUND.read_text(encoding="utf-8"))
    return cases


@pytest.mark.parametrize("case", found_cases(), ids=lambda case: case["filter"][:60])
def test_what_was_found_once_stays_fixed(quick: SparkSession, case: dict[str, Any]) -> None:
    """Every counterexample that was ever found is asked again, through both front ends."""
    session = Session(case["zone"], case["ansi"])
    set_session(quick, session)
    blank: dict[str, Any] = dict.fromkeys(COLUMNS)
    rows = [blank | row for row in case["rows"]]
    part = {name: [row[name] for row in rows] for name in COLUMNS}
    bounds = {
        leaf.id: bounds_columns([stats_of(Random(9), part[path[0]], COLUMNS[path[0]])], leaf.type)
        for path, leaf in SCHEMA.leaves()
    }
    parts = oracle.Parts([part], bounds, pa.array([len(rows)], pa.int64()))
    oracle.register(quick, parts, "skipping_rows")
    node = Node(case["filter"].replace("{", "{{").replace("}", "}}"), "boolean")
    cases = cases_of(quick, node, parts, session, ["analyzed", "optimizedPlan"])
    assert oracle.refuted(quick, "skipping_rows", cases) == []
