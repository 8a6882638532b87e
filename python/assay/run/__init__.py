"""The pipeline: parts, the one point loop, search, resuming, and one execution from plan to report."""
