"""Settings of the property tests."""

from __future__ import annotations

from hypothesis import settings
from oltp_stage import stage

__all__ = ["stage"]

# The machine may be busy with other work: how long an example takes says nothing.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
