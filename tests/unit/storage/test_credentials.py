"""Who opens an object store: options, the environment, profiles of AWS's tools, and processes elsewhere."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest

from instar.errors import UsageError
from instar.storage.objects import ObjectBlob

if TYPE_CHECKING:
    from pathlib import Path

CREDENTIALS = """
[default]
aws_access_key_id = of-default
aws_secret_access_key = secret-of-default

[lake]
aws_access_key_id = of-lake
aws_secret_access_key = secret%of-lake
aws_session_token = token-of-lake
"""
CONFIG = """
[profile lake]
region = eu-central-1
endpoint_url = http://127.0.0.1:9000

[profile single]
sso_session = company
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home with the files of AWS's tools, and an environment that says nothing."""
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "PROFILE", "REGION", "ENDPOINT_URL"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(CREDENTIALS)
    (tmp_path / ".aws" / "config").write_text(CONFIG)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def opened(**options: str) -> dict[str, str]:
    """Return what opened a bucket."""
    return dict(ObjectBlob.open("s3://bucket/lake", options).settings)


def test_a_profile_says_who_and_where(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a variable or an option; without a name it is the one called default."""
    monkeypatch.setenv("AWS_PROFILE", "lake")
    found = opened()
    assert found["aws_access_key_id"] == "of-lake"
    assert found["aws_secret_access_key"] == "secret%of-lake"
    assert found["aws_session_token"] == "token-of-lake"
    assert found["aws_region"] == "eu-central-1"
    assert found["aws_endpoint_url"] == "http://127.0.0.1:9000"
    monkeypatch.delenv("AWS_PROFILE")
    assert opened()["aws_access_key_id"] == "of-default"
    assert opened(AWS_PROFILE="lake")["aws_access_key_id"] == "of-lake"


def test_options_and_variables_count_more_than_a_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are taken from one place as a whole."""
    found = opened(AWS_ACCESS_KEY_ID="mine", AWS_SECRET_ACCESS_KEY="my-secret", AWS_PROFILE="lake")
    assert found["aws_access_key_id"] == "mine"
    assert "aws_session_token" not in found
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-variable")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-variable")
    assert opened()["aws_access_key_id"] == "of-variable"
    assert opened(aws_access_key_id="mine", aws_secret_access_key="x")["aws_access_key_id"] == "mine"


@pytest.mark.parametrize("name", ["single", "nobody"])
def test_a_profile_without_keys_is_an_error_that_says_what_to_do(name: str) -> None:
    """Only AWS's tools can sign in for it."""
    with pytest.raises(UsageError, match=f"aws configure export-credentials --profile {name} --format env"):
        opened(AWS_PROFILE=name)


def test_a_public_bucket_needs_no_profile() -> None:
    """Whoever signs nothing has no keys."""
    assert "aws_access_key_id" not in opened(AWS_SKIP_SIGNATURE="true")


def test_a_copy_elsewhere_is_told_what_the_environment_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker on another machine finds the endpoint, and has the driver's keys unless it has its own."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-driver")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-driver")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token-of-driver")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000")
    sent = pickle.dumps(ObjectBlob.open("s3://bucket/lake"))
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "ENDPOINT_URL"):
        monkeypatch.delenv(f"AWS_{name}")
    found = pickle.loads(sent).settings
    assert found["aws_access_key_id"] == "of-driver"
    assert found["aws_session_token"] == "token-of-driver"
    assert found["aws_endpoint_url"] == "http://127.0.0.1:9000"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-worker")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-worker")
    found = pickle.loads(sent).settings
    assert found["aws_access_key_id"] == "of-worker"
    assert "aws_session_token" not in found
    assert found["aws_endpoint_url"] == "http://127.0.0.1:9000"


def test_options_go_along_whatever_a_worker_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """They say who opened this store."""
    options = {"AWS_ACCESS_KEY_ID": "given", "AWS_SECRET_ACCESS_KEY": "given"}
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-driver")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-driver")
    small = {name.lower(): text for name, text in options.items()}  # as Spark hands options on
    sent = [pickle.dumps(ObjectBlob.open("s3://bucket/lake", each)) for each in (options, small)]
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SESSION_TOKEN")
    for each in sent:
        found = pickle.loads(each).settings
        assert found["aws_access_key_id"] == "given"
        assert "aws_session_token" not in found
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-worker")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of-worker")
    assert all(pickle.loads(each).settings["aws_access_key_id"] == "given" for each in sent)
