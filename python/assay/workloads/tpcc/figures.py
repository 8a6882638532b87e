"""The figures of TPC-C-like transactions."""

from __future__ import annotations

from assay.workloads.tpcc.application import TPCC
from assay.workloads.transactions.figures import figures_of

FIGURES = figures_of(TPCC)
