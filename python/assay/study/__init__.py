"""From a plan to measured points: runner, search, steady state."""
