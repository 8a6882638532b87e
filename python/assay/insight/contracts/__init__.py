"""Contracts of storage: what was promised, with exclusions, tested once or judged over a recording."""
