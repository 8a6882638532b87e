"""The PostgreSQL that Assay initialises in a folder, tunes, starts and stops."""
