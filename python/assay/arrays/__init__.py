"""Modelled arrays: their files, what is asked of them, and what the compiled model is given."""
