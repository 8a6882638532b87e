"""A laboratory of virtual machines in software emulation: real kernels, device mapper, power cuts (CONTRIBUTING.md)."""
