"""The flight recorder: what host, network and devices did while storage was under load."""
