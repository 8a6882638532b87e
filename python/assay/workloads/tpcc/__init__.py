"""The TPC-C-like workload on databases, derived and not compliant."""
