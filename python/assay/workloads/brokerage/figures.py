"""The figures of TPC-E-like transactions."""

from __future__ import annotations

from assay.workloads.brokerage.application import BROKERAGE
from assay.workloads.transactions.figures import figures_of

FIGURES = figures_of(BROKERAGE)
