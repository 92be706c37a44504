"""Kernels: what each function does to spans of possible values, for all parts at once."""

from instar.skipping.kernels.outcome import Kernel, Outcome

__all__ = ["Kernel", "Outcome"]
