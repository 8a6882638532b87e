"""Situations with a cause that is known, because it was made."""
