"""The file system of a session for a store: which scheme it is, and what it is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from instar.spark.native.file_systems import find_file_system, locator, translator
from instar.spark.native.gateway import gateway_of
from instar.storage import open_blob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

LOCAL = "org.apache.hadoop.fs.LocalFileSystem"
OPTIONS = {
    "AWS_ACCESS_KEY_ID": "who",
    "AWS_SECRET_ACCESS_KEY": "psst",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
    "AWS_REGION": "eu-north-1",
    "AWS_ALLOW_HTTP": "true",
}


@pytest.fixture
def told(spark: SparkSession) -> Iterator[Callable[[str], str | None]]:
    """Give the session file systems for clouds, which are local; return what looks up a shared setting."""
    for scheme in ("s3a", "abfss", "gs"):
        spark.conf.set(f"fs.{scheme}.impl", LOCAL)
    shared = gateway_of(spark).shared_hadoop_settings()
    yield shared.get
    for scheme in ("s3a", "abfss", "gs"):
        spark.conf.unset(f"fs.{scheme}.impl")


def test_what_opened_a_bucket_is_told_for_it_alone(
    spark: SparkSession, told: Callable[[str], str | None]
) -> None:
    """Spark gets paths of S3A, and its settings for that bucket: endpoint, region, path style, keys."""
    blob = open_blob("s3://told/lake", OPTIONS)
    gateway = gateway_of(spark)
    assert locator(gateway, blob)("a/b") == "s3a://told/lake/a/b"
    assert translator(gateway, blob)("s3://other/file") == "s3a://other/file"
    bucket = "fs.s3a.bucket.told."
    assert told(bucket + "endpoint") == "http://127.0.0.1:9"
    assert told(bucket + "endpoint.region") == "eu-north-1"
    assert told(bucket + "path.style.access") == "true"
    assert told(bucket + "connection.ssl.enabled") == "false"
    assert (told(bucket + "access.key"), told(bucket + "secret.key")) == ("who", "psst")
    assert str(told(bucket + "aws.credentials.provider")).endswith(".SimpleAWSCredentialsProvider")
    assert told("fs.s3a.access.key") is None


def test_what_the_session_says_counts_more(spark: SparkSession, told: Callable[[str], str | None]) -> None:
    """For all buckets or for one: credentials are taken from one place as a whole."""
    own = {"fs.s3a.endpoint": "http://127.0.0.1:1", "fs.s3a.bucket.kept.access.key": "of-the-session"}
    for name, text in own.items():
        spark.conf.set(name, text)
    try:
        find_file_system(gateway_of(spark), open_blob("s3://kept/lake", OPTIONS))
    finally:
        for name in own:
            spark.conf.unset(name)
    bucket = "fs.s3a.bucket.kept."
    assert told(bucket + "endpoint") is None
    assert told(bucket + "access.key") is None
    assert told(bucket + "secret.key") is None
    assert told(bucket + "endpoint.region") == "eu-north-1"


def test_tokens_and_public_buckets(spark: SparkSession, told: Callable[[str], str | None]) -> None:
    """Temporary keys go with their token, and a bucket that is read without a signature has no keys."""
    gateway = gateway_of(spark)
    find_file_system(gateway, open_blob("s3://temporary/x", {**OPTIONS, "AWS_SESSION_TOKEN": "t"}))
    kind = told("fs.s3a.bucket.temporary.aws.credentials.provider")
    assert str(kind).endswith(".TemporaryAWSCredentialsProvider")
    assert told("fs.s3a.bucket.temporary.session.token") == "t"
    find_file_system(gateway, open_blob("s3://public/x", {"AWS_SKIP_SIGNATURE": "true"}))
    kind = told("fs.s3a.bucket.public.aws.credentials.provider")
    assert str(kind).endswith(".AnonymousAWSCredentialsProvider")
    assert told("fs.s3a.bucket.public.access.key") is None


def test_azure_and_google(spark: SparkSession, told: Callable[[str], str | None]) -> None:
    """A container is known to Spark with its account, whose key is told; Google keeps names."""
    options = {"AZURE_STORAGE_ACCOUNT_NAME": "acc", "AZURE_STORAGE_ACCOUNT_KEY": "a2V5"}
    gateway = gateway_of(spark)
    blob = open_blob("az://container/lake", options)
    assert locator(gateway, blob)("a") == "abfss://container@acc.dfs.core.windows.net/lake/a"
    assert told("fs.azure.account.key.acc.dfs.core.windows.net") == "a2V5"
    assert find_file_system(gateway, open_blob("gs://bucket/lake")).root == "gs://bucket/lake"
