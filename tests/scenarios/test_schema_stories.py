"""The stories about schemas and readers come true."""

from pathlib import Path

import pytest

from tests.scenarios.schema_world import SchemaWorld
from tests.scenarios.story import retell, run_story

STORIES = sorted((Path(__file__).parent / "schema").glob("*.txt"))


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_story(path: Path) -> None:
    """Each answer in the story is what instar answers."""
    run_story(path, SchemaWorld().answer)


def test_a_wrong_answer_is_noticed() -> None:
    """A story that tells something else is not retold the same."""
    told = "> ddl a  INTEGER\na bigint\n"
    assert retell(told, SchemaWorld().answer) == "> ddl a  INTEGER\na int\n"
