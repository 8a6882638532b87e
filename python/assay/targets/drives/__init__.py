"""Drives beneath a target: which they are, what the kernel shows of them, and what they say of their own health."""
