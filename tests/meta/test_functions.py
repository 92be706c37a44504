"""What the registry promises: each function is tried on Spark, under each of its names, and documented."""

from __future__ import annotations

import re

import pytest

from instar.schema import parse_schema_ddl
from instar.skipping import Anything, Call, Session, parse_filter
from instar.skipping.expression import walk
from instar.skipping.registry import BY_SQL, ROWS
from instar.skipping.sql.calls import SHORTHANDS
from tests.meta.modules import ROOT
from tests.spark.skipping.grammar import fill_words
from tests.spark.skipping.poison import COLUMNS

SCHEMA = parse_schema_ddl(", ".join(f"{name} {type_}" for name, type_ in COLUMNS.items()))
OF_TYPE = {type_: name for name, type_ in COLUMNS.items()}
# Only Catalyst has it as a function of its own.
ONLY_IN_PLANS = {"try"}


def sample_texts(samples: tuple[str, ...]) -> list[str]:
    """Return samples with columns in their holes and words in place."""
    texts = [sample.partition(": ")[2] for sample in samples]
    filled = [re.sub(r"\{(.+?)\}", lambda hole: OF_TYPE[hole[1]], text) for text in texts]
    return [fill_words(text) for text in filled]


@pytest.mark.parametrize("name", ROWS)
def test_a_function_has_samples_that_are_understood(name: str) -> None:
    """Tests draw random filters from the samples, so a function without one would never be tried on Spark."""
    texts = sample_texts(ROWS[name].samples)
    understood = {
        node.function
        for text in texts
        for node in walk(parse_filter(f"({text}) is null", SCHEMA, Session()))
        if isinstance(node, Call)
    }
    assert texts
    assert name in understood or name in ONLY_IN_PLANS


@pytest.mark.parametrize("name", [*BY_SQL, *SHORTHANDS])
def test_every_name_is_tried(name: str) -> None:
    """Each name by which SQL calls a function stands in a sample that is understood."""
    row, short = BY_SQL.get(name), SHORTHANDS.get(name)
    samples = (*(row.samples if row else ()), *(short.samples if short else ()))
    calls = [text for text in sample_texts(samples) if re.search(rf"\b{name}\(", text)]
    assert calls
    assert any(not isinstance(parse_filter(text, SCHEMA), Anything) for text in calls)


def test_every_name_is_documented() -> None:
    """docs/skipping.md lists every function."""
    text = (ROOT / "docs" / "skipping.md").read_text(encoding="utf-8")
    assert [name for name in (*BY_SQL, *SHORTHANDS) if f"`{name}`" not in text] == []
