"""A laboratory of virtual machines in software emulation: real kernels, device mappers and power cuts (CONTRIBUTING.md)."""
