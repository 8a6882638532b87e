"""What workloads on databases share: loading their tables, what is refused before, and the actions around a run."""
