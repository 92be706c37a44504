"""`bench state`: do commits stay cheap as a table grows, what does a reader read, how many writers fit?"""

from bench.state.run import DEFAULT, FULL, QUICK, Plan, run

__all__ = ["DEFAULT", "FULL", "QUICK", "Plan", "run"]
