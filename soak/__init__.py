"""Long searches for faults, each by a name: `./dev soak` runs them for hours, the tests for a few turns."""
