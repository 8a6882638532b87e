"""Modelled arrays: model files, `model:` targets, the plans of the compiled model, reliability."""
