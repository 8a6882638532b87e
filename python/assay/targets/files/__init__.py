"""Files, devices and what stands in for them: examined, held, laid out."""
