"""What a worker of Spark's runs first: is the instar there the one that the driver has?

Functions of this module travel as they are, for a worker without instar could not import them: they must not
refer to anything of instar, nor to other names of this module.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, Final

from pyspark import cloudpickle

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MISMATCH", "greeted"]

MISMATCH: Final = re.compile(r"RuntimeError: Spark's workers have instar (\S+), and the driver ")
"""How the error of a worker begins that has another instar, or `none`."""

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


def greeted(run: Callable[[Any], Any], version: str, package: str = "instar") -> Callable[[Any], Any]:
    """Return what runs a function on a worker once it is known to have the driver's version of a package."""
    packed: bytes = cloudpickle.dumps(run)  # type: ignore[no-untyped-call]

    def run_greeted(batches: Any) -> Any:  # noqa: ANN401 -- whatever the function takes and gives
        import pickle  # noqa: PLC0415 -- on a worker; it is what Spark itself sends functions with
        from importlib.metadata import PackageNotFoundError  # noqa: PLC0415 -- on a worker
        from importlib.metadata import version as version_of  # noqa: PLC0415 -- on a worker
        from importlib.util import find_spec  # noqa: PLC0415 -- on a worker

        try:
            found = version_of(package)
        except PackageNotFoundError:  # a bare directory or archive on the path does not say
            found = version if find_spec(package) is not None else "none"
        if found != version:
            raise RuntimeError(
                f"Spark's workers have instar {found}, and the driver has {version}: install the same version"
            )
        return pickle.loads(packed)(batches)  # noqa: S301 -- as above

    return run_greeted
