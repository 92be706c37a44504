"""How Spark reads files of tables, and the settings of a session that scans look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from instar.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from instar.state import ConfigValue

__all__ = ["READ_OPTIONS", "SETTINGS", "check_session", "session_options"]

READ_OPTIONS: Final = {
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "parquet.page.verify-checksum.enabled": "true",
    "spark.sql.parquet.fieldId.read.ignoreMissing": "true",
    "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing": "false",
}
"""What a table says does not depend on the settings of a session, and damage is not read as rows."""
_OPTIONS: Final[Mapping[str, tuple[str, Callable[[str], ConfigValue]]]] = {
    "instar.skipping": ("skipping", str),
    "instar.skipping.sample": ("skipping_sample", float),
    "instar.skipping.budget": ("skipping_budget", int),
}
"""Settings of a session that are options of every table it reads."""
_ROW_BY_ROW: Final = {
    "spark.sql.parquet.enableVectorizedReader": "true",
    "spark.sql.parquet.enableNestedColumnVectorizedReader": "true",
}
"""Settings that, if they are not this, make Spark read row by row where there are nested fields."""
_BY_ID: Final = "spark.sql.parquet.fieldId.read.enabled"
SETTINGS: Final = (*_OPTIONS, *_ROW_BY_ROW, _BY_ID)
"""All settings that a scan looks at."""


def check_session(settings: Mapping[str, str]) -> None:
    """Refuse a session in which Spark would find the members of structs by name instead of by id."""
    wrong = [name for name, value in _ROW_BY_ROW.items() if settings.get(name, value) != value]
    if wrong and settings.get(_BY_ID) != "true":
        raise UsageError(
            f"with {wrong[0]}={settings[wrong[0]]}, Spark would find members of structs by name, and give "
            f"nulls: set {_BY_ID} to true as well, or unset {wrong[0]}"
        )


def session_options(settings: Mapping[str, str]) -> dict[str, ConfigValue | None]:
    """Return what the session of the running query says."""
    options: dict[str, ConfigValue | None] = {}
    for setting, (option, read) in _OPTIONS.items():
        text = settings.get(setting)
        if text is None:
            continue
        try:
            options[option] = read(text)
        except ValueError:
            raise UsageError(f"the Spark setting {setting} cannot be {text!r}: it is a number") from None
    return options
