"""Database servers of the tests' own: on the loopback and a socket, in temporary folders, gone with the tests."""
