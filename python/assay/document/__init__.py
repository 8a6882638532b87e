"""The elements of a report, without rendering: what workloads and studies hand to the report."""
