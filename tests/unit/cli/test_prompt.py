"""The prompt for SQL: what Enter does, what is offered, and what is remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

import instar
from instar.cli.prompt import SqlCompleter, SqlPrompt
from instar.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from instar import Store


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """Return a store of two tables, with a home of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with instar.open(tmp_path / "lake") as opened:
        opened.create_table("billing/events", "id long, `an amount` int")
        opened.create_table("users", "id long, name string")
        yield opened


def typed(store: Store, keys: str) -> list[str]:
    """Return the statements that keys are taken for, until Ctrl-D."""
    statements = []
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        pipe.send_text(keys)
        prompt = SqlPrompt(store)
        while True:
            try:
                statements.append(prompt.ask())
            except EOFError:
                return statements


def offered(store: Store, text: str) -> list[str]:
    """Return what is offered behind a text."""
    event = CompleteEvent(completion_requested=True)
    return [found.text for found in SqlCompleter(store).get_completions(Document(text), event)]


def test_a_statement_ends_with_its_semicolon(store: Store, tmp_path: Path) -> None:
    """Enter begins another line until then, but after `exit`; what was typed is kept for the next time."""
    statements = ["select 1\nfrom users;", "exit"]
    assert typed(store, "select 1\rfrom users;\rexit\r\x04") == statements
    kept = (tmp_path / "state" / "instar" / "sql_history").read_text(encoding="utf-8")
    assert [line for line in kept.splitlines() if line.startswith("+")] == [
        "+select 1",
        "+from users;",
        "+exit",
    ]


def test_names_are_offered(store: Store) -> None:
    """Tables, quoted where SQL wants it, and the columns of those that a statement names, then keywords."""
    assert offered(store, "select * from us")[:2] == ["users", "using"]
    assert offered(store, "select * from bill") == ["`billing/events`"]
    assert offered(store, "select * from `bill") == ["`billing/events`"]
    assert offered(store, "select * from users where na") == ["name"]
    assert offered(store, "select * from `billing/events` where an")[:2] == ["`an amount`", "and"]
    assert offered(store, "select an") == ["and"]
    assert "select" in offered(store, "")


def test_a_store_that_cannot_be_read_offers_keywords(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Completion is no place for errors."""

    def fail(_prefix: str = "") -> list[str]:
        raise StorageError("no", "it is a test")

    monkeypatch.setattr(store, "tables", fail)
    assert offered(store, "sel") == ["select"]


def test_statements_that_cannot_be_remembered_are_run_all_the_same(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As in a home that cannot be written."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert typed(store, "select 1;\r\x04") == ["select 1;"]
