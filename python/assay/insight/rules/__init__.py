"""Best practice: rules over facts of hosts, storage, networks and databases, which say what to change and why."""
