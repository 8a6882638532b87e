"""What people and programs start: the command line, the page, the Python interface."""
