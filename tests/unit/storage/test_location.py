"""URLs: what people type, and what they get."""

from __future__ import annotations

from pathlib import Path

import pytest

from instar.errors import StorageError, UsageError
from instar.storage import (
    BlobConsensus,
    DirectoryBlob,
    MemoryConsensus,
    ObjectBlob,
    open_blob,
    open_consensus,
)
from instar.storage.postgres import PostgresConsensus


def test_a_path_is_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative ones are made absolute when they are opened, wherever the process goes afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/ada")
    for location, url in (
        ("lake", f"{tmp_path}/lake"),
        ("./a/../lake/", f"{tmp_path}/lake"),
        (Path("lake"), f"{tmp_path}/lake"),
        (str(tmp_path), str(tmp_path)),
        (f"file://{tmp_path}/a%20b", f"{tmp_path}/a b"),
        ("~/lake", "/home/ada/lake"),
        ("2026:11:15", f"{tmp_path}/2026:11:15"),
    ):
        blob = open_blob(location)
        assert isinstance(blob, DirectoryBlob)
        assert blob.url == url
        assert blob.location("a/b") == f"{url}/a/b"
    assert list(tmp_path.iterdir()) == []


def test_a_home_that_nobody_has_is_refused() -> None:
    """The path is not taken for another."""
    with pytest.raises(UsageError, match=r"cannot open ~nobody-of-that-name/lake: .*Write the path in full"):
        open_blob("~nobody-of-that-name/lake")


def test_a_cloud_is_an_object_store() -> None:
    """Its URL is kept, without a final slash, and so is the place of an object in it."""
    options = {"AWS_REGION": "us-east-1"}
    for location in ("s3://bucket/a/b", "s3://bucket/a/b/", "s3a://bucket/a/b"):
        blob = open_blob(location, options)
        assert isinstance(blob, ObjectBlob)
        assert blob.location("x/y") == f"{location.rstrip('/')}/x/y"


@pytest.mark.parametrize(
    "location", ["", "ftp://host/a", "http://host/a", "file://host/a", "file://a", "postgresql://host/db"]
)
def test_what_holds_no_blobs_is_refused(location: str) -> None:
    """With a message that says what does."""
    with pytest.raises(UsageError):
        open_blob(location)


@pytest.mark.parametrize("place", ["s3://bucket/a", "gs://bucket/a", "az://bucket/a", "file:///data/a"])
def test_a_url_is_a_plain_place(place: str) -> None:
    """What would be left out, or read as another place, is refused."""
    for end in ("?x=y", "#x", "/?", "/../b", "/./b", "/..", "/%2e%2E/b"):
        with pytest.raises(UsageError, match=r"ends with its path|a part of its path"):
            open_blob(place + end)


@pytest.mark.parametrize("word", ["postgres", "postgresql", "lake", "localhost:5432", ""])
def test_a_word_is_no_place_for_consensus(word: str, tmp_path: Path) -> None:
    """It is not known whether a server or a directory was meant."""
    with pytest.raises(
        UsageError, match=f"consensus='{word}' is neither .* write postgresql://…, or ./{word}"
    ):
        open_consensus(word, DirectoryBlob(tmp_path))


def test_consensus_is_in_the_store_unless_said_otherwise(tmp_path: Path) -> None:
    """Nothing, a server, memory, or another place of blobs."""
    blob = open_blob(tmp_path / "lake")
    assert isinstance(open_consensus(None, blob), BlobConsensus)
    assert isinstance(open_consensus("postgresql://host/db", blob), PostgresConsensus)
    assert isinstance(open_consensus("postgres://host/db", blob), PostgresConsensus)
    assert isinstance(open_consensus("memory://", blob), MemoryConsensus)
    assert open_consensus("memory://a", blob) is open_consensus("memory://a", blob)
    elsewhere = open_consensus(str(tmp_path / "logs"), blob)
    assert elsewhere.append("a", None, b"")
    assert not (tmp_path / "lake").exists()
    assert (tmp_path / "logs" / "log" / "a").is_dir()


@pytest.mark.parametrize("location", ["mysql://host/db", "http://host"])
def test_what_has_no_consensus_is_refused(location: str, tmp_path: Path) -> None:
    """With a message that says what does."""
    with pytest.raises(UsageError, match="for consensus"):
        open_consensus(location, open_blob(tmp_path))


@pytest.mark.parametrize(
    "location",
    [
        "s3x://bob:secret@host/x",
        "s3://bob:secret@host/x",
        "file://bob:sec/ret@host/x",
        "postgresqx://bob:secret@host/x",
        "postgresql://bob:secret@[bad/x",
        "postgresql://bob:%zzsecret@host/x",
        "mysql://host/x?user=bob&password=secret",
        "postgresql://bob:my secret@host/x",
        "postgresql://bob:secret word@host/x",
        'postgresql://bob:"secret "secret@host/x',
        "bob:secret@host/x",
        "bob:sec/ret@host/x",
        "bob:secret@host",
        "postgresql://bob:4/secret@host/x",
        "host=h password=secret dbname=x",
        "dbname=x password = 'my secret'",
    ],
)
def test_no_refusal_repeats_a_password(location: str, tmp_path: Path) -> None:
    """Errors end up in logs."""
    with pytest.raises(UsageError) as refusal:
        open_consensus(location, open_blob(tmp_path))
    assert "secret" not in str(refusal.value)
    assert "sec/ret" not in str(refusal.value)


def test_a_url_without_its_scheme_makes_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What reads like `user:password@host` is refused as a path, unless it says so."""
    monkeypatch.chdir(tmp_path)
    for location in ("bob:secret@host/db", "bob:secret@host"):
        with pytest.raises(
            UsageError, match=r"looks like a URL without its scheme: write postgresql://bob:…@"
        ):
            open_blob(location)
    assert isinstance(open_consensus("./bob:x@host/db", open_blob(tmp_path)), BlobConsensus)
    assert isinstance(open_blob("a@b/c:d"), DirectoryBlob)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql:///db?host=/run/pg&port=5433", "db on /run/pg port 5433"),
        ("postgresql:///db", "db"),
        ("postgresql://?host=h&dbname=db", "db on h"),
        ("postgresql://u:p%20w@h/d%20b?application_name=a%20b&schema=logs", "d b on h"),
        ("postgres://a,b:5433/db?target_session_attrs=any", "db on a,b port ,5433"),
    ],
)
def test_postgres_is_named_as_libpq_lets_one(url: str, shown: str, tmp_path: Path) -> None:
    """Every form of URL that libpq takes is taken."""
    assert str(open_consensus(url, open_blob(tmp_path))) == f"the PostgreSQL database {shown}"


def test_a_server_that_is_not_there_is_named_for_people(tmp_path: Path) -> None:
    """By its database, host and port, and without its password."""
    consensus = open_consensus("postgresql://bob:secret@127.0.0.1:1/logs", open_blob(tmp_path))
    with pytest.raises(
        StorageError, match=r"connecting to the PostgreSQL database logs on .* port 1 failed"
    ) as refusal:
        consensus.head("a")
    assert "secret" not in str(refusal.value)
