"""What rules read: one file a source, each giving subjects with their facts, and why a fact is missing."""
