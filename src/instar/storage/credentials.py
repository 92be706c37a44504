"""Settings of an object store that are not options: the environment, and profiles of AWS's tools.

Also what of them goes along to a process on another machine, which has an environment of its own.
"""

from __future__ import annotations

from configparser import ConfigParser, Error
from pathlib import Path
from typing import TYPE_CHECKING, Final

from instar.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["carried", "profile_settings", "taken"]

_SECRETS: Final = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "GOOGLE_SERVICE_ACCOUNT_KEY",
)
_PLACES: Final = (
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ALLOW_HTTP",
    "AWS_SKIP_SIGNATURE",
    "AWS_VIRTUAL_HOSTED_STYLE_REQUEST",
    "AZURE_STORAGE_ACCOUNT_NAME",
)
_IDENTITIES: Final = (
    *_SECRETS,
    "AWS_PROFILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AZURE_CLIENT_ID",
    "AZURE_FEDERATED_TOKEN_FILE",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_SERVICE_ACCOUNT",
)
"""Variables of which any says who a process is."""
_OF_PROFILES: Final = {
    "AWS_ACCESS_KEY_ID": "aws_access_key_id",
    "AWS_SECRET_ACCESS_KEY": "aws_secret_access_key",
    "AWS_SESSION_TOKEN": "aws_session_token",
    "AWS_REGION": "region",
    "AWS_ENDPOINT_URL": "endpoint_url",
}


def carried(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what of an environment a copy of a store in another process is told."""
    return {name: environment[name] for name in (*_SECRETS, *_PLACES) if name in environment}


def taken(told: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return what counts of what was told where there is another environment.

    What that says itself counts more; and who has credentials of their own there needs no others.
    """
    known = any(name in environment for name in _IDENTITIES)
    return {
        name: text
        for name, text in told.items()
        if name not in environment and not (known and name in _SECRETS)
    }


def profile_settings(options: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return what the profile of AWS's tools says that is named, or the one called `default`.

    Options and the environment count more. A profile without keys of its own can only be used by those tools.
    """
    given = {name.upper(): text for name, text in options.items()}
    everything = {**environment, **given}
    named = everything.get("AWS_PROFILE") or everything.get("AWS_DEFAULT_PROFILE")
    known = any(name in everything for name in _IDENTITIES if name != "AWS_PROFILE")
    known = known or everything.get("AWS_SKIP_SIGNATURE", "").lower() == "true"
    found = _profile(named or "default", everything)
    if named and not known and "aws_access_key_id" not in found:
        why = "has no access key of its own" if found else "is in neither of the AWS files"
        raise UsageError(
            f"the AWS profile {named!r} {why}, and instar cannot request one. "
            f"`aws configure export-credentials --profile {named} --format env` prints variables to set"
        )
    return {
        name: found[own]
        for name, own in _OF_PROFILES.items()
        if own in found and name not in everything and not (known and name in _SECRETS)
    }


def _profile(name: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Read the section of a profile from both files of AWS's tools; that of credentials counts more."""
    home = Path(environment.get("HOME") or "~").expanduser() / ".aws"
    config = environment.get("AWS_CONFIG_FILE") or home / "config"
    credentials = environment.get("AWS_SHARED_CREDENTIALS_FILE") or home / "credentials"
    of_config = name if name == "default" else f"profile {name}"
    return {**_section(Path(config), of_config), **_section(Path(credentials), name)}


def _section(path: Path, name: str) -> dict[str, str]:
    parser = ConfigParser(interpolation=None, default_section="")
    try:
        parser.read_string(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, Error):
        return {}  # AWS's tools say what is wrong with their files
    return dict(parser[name]) if parser.has_section(name) else {}
