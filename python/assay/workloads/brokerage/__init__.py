"""The TPC-E-like workload: a brokerage, its customers' orders, and the market exchange that answers them."""
