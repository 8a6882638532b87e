"""Targets: what is put under load, whether it may be written to, and what it stands on.

`spec` reads what the user named, `safety` decides whether Assay may write there, `ownership` marks what Assay made,
`signatures` recognises what others put on a device, `kernel` reads the kernel's tables, `host` states the facts of
host and volumes that results carry.
"""

from __future__ import annotations
