"""Causes, one file a family: a cause looks at what was observed, and says which signals agree on it."""
