"""The families of rules, one file each."""
