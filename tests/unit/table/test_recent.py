"""`Recent` keeps what was used last."""

from __future__ import annotations

from instar.table.log.recent import Recent


def test_what_was_not_used_for_longest_goes_first() -> None:
    """As soon as all of it weighs too much; looking whether it is there is no use."""
    kept: Recent[str] = Recent(10)
    for key in ("a", "b", "c"):
        kept.keep(key, key.upper(), 3)
    assert kept.find("a") == "A"
    assert "b" in kept
    kept.keep("d", "D", 3)
    assert [key in kept for key in "abcd"] == [True, False, True, True]
    assert kept.find("b") is None


def test_one_value_may_weigh_more_than_all() -> None:
    """It stays until another one comes."""
    kept: Recent[int] = Recent(10)
    kept.keep("small", 1, 1)
    kept.keep("large", 2, 1000)
    assert "small" not in kept
    assert kept.find("large") == 2
    kept.keep("next", 3, 1)
    assert "large" not in kept
    assert kept.find("next") == 3


def test_what_is_kept_is_not_weighed_twice() -> None:
    """Two threads may have fetched the same."""
    kept: Recent[int] = Recent(10)
    for _ in range(5):
        kept.keep("a", 1, 6)
    kept.keep("b", 2, 4)
    assert "a" in kept
    assert "b" in kept
