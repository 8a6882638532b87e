"""The I/O workload: activities on volumes, measured on storage or on a modelled array."""
