"""The engines that are compared: each can make a table, open and ask it, and append to it."""

from bench.engines.engine import ENGINES, Engine, Place, installed, load_engine

__all__ = ["ENGINES", "Engine", "Place", "installed", "load_engine"]
