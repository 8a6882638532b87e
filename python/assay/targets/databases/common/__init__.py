"""What all databases have in common: connections, sessions, layouts, marks, saved states."""
