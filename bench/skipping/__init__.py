"""`bench skipping`: are the right parts read, how fast is that decided, and what do queries gain and lose?"""

from bench.skipping.run import DEFAULT, FULL, QUICK, Plan, run

__all__ = ["DEFAULT", "FULL", "QUICK", "Plan", "run"]
