"""Where it hurts: the matrix of tiers and resources, and the causes that two signals agree on."""
