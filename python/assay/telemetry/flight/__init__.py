"""The flight recorder: a lean process that samples for months within a fixed budget of disk."""
