"""instar: a table store for data whose schema keeps changing."""

from importlib.metadata import version as _version

__all__ = ["__version__"]

__version__ = _version("instar")
