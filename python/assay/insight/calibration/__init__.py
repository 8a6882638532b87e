"""Models against measurements: calibration, error bands, and what others published."""
