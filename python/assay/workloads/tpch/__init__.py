"""The TPC-H-like workload: 22 queries, power and throughput, on row and column stores."""
