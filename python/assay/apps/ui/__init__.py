"""A local web page over run folders and recordings: it looks, it does not touch.

A small process of its own (`process.py`) lists folders, follows runs that go on and reads recordings. What needs the
large libraries, as a diagnosis does, it asks a process for that ends with its answer (`answers.py`). So the page may
stay open for weeks beside what is measured.
"""
