"""Capture of block I/O by the kernel's own trace: the devices, an ftrace instance, and what is kept of its events."""
