"""Quantities, errors, paths, fields of plans and displays: what every other room uses."""
