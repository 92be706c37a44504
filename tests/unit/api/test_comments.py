"""Comments: what is said about tables and columns stays with them, and changes nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from instar.errors import ColumnNotFoundError, UsageError

if TYPE_CHECKING:
    from instar.api.store import Store


def test_comments_stay_with_their_columns(store: Store) -> None:
    """A renamed column keeps its comment, a dropped one takes it along; a new one of its name has none."""
    table = store.create_table(
        "t",
        "id int, s struct<a: int>, tags array<struct<x: int>>",
        comments={None: "mine", "ID": "number", "tags.element.x": "deep"},
    )
    assert table.comments == {None: "mine", "id": "number", "tags.element.x": "deep"}
    table.comment("inside", "s.a")
    table.evolve().rename_column("id", "n").rename_column("s.a", "b").add_column("id", "int").commit()
    assert table.comments == {None: "mine", "n": "number", "s.b": "inside", "tags.element.x": "deep"}
    table.evolve().drop_column("n").commit()
    table.comment(None)
    table.comment("", "s.b")
    assert table.comments == {"tags.element.x": "deep"}
    assert store.table("t").comments == {"tags.element.x": "deep"}
    assert table.clone("u").comments == {"tags.element.x": "deep"}


def test_comments_are_neither_schemas_nor_options(store: Store) -> None:
    """No schema is made of them, options do not show them, and saying the same again commits nothing."""
    table = store.create_table("t", "id int", options={"retention": "7d"})
    table.comment("number", "id")
    table.comment("number", "id")
    assert (len(table.schemas), table.state.options) == (1, {"retention": "7d"})
    assert [commit.what for commit in table.history()] == ["commented", "created"]


def test_comments_that_cannot_be_kept_are_refused(store: Store) -> None:
    """One for a column that is not there, and one that is too long; and no option is called comment."""
    table = store.create_table("t", "id int")
    with pytest.raises(ColumnNotFoundError, match="nosuch"):
        table.comment("x", "nosuch")
    with pytest.raises(UsageError, match="4,000"):
        table.comment("x" * 4001)
    with pytest.raises(UsageError, match="there is no table option 'comment'"):
        table.configure(comment="x")
