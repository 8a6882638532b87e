"""What measurements mean: limits, knees, comparisons, verdicts."""
