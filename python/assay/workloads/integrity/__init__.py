"""The integrity workload: what `assay verify` runs."""
