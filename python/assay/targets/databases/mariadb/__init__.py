"""MariaDB, 10.6 or newer, and MySQL, 8.0 or newer."""
