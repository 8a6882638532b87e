"""The states that storage may be in after a crash, tried on a real program."""
