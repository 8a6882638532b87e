"""Modelled arrays that answer on the wall clock with real bytes: what is served, where it is shown, commands to it."""
