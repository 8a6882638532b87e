"""`make fuzz`: mutated plans, files, folders and command lines against the real command; CONTRIBUTING.md says how."""
