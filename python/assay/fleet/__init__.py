"""Load from many hosts: one agent a host does the work, the coordinator keeps plan, search, points and run folder."""
