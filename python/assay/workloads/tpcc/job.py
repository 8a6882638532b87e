"""TPC-C-like transactions at work: what is odd about their figures."""

from __future__ import annotations

from assay.base.units import count_of
from assay.record.shapes.point import Point
from assay.workloads.tpcc.application import TPCC
from assay.workloads.tpcc.plan import EFFICIENCY_MAX_NOPM, USER_ROLLBACK_SHARE, TpccPlan
from assay.workloads.tpcc.shapes import tpcc_of
from assay.workloads.transactions.job import TransactionsJob

RATIO_OFF_SHARE = 0.05
"""TPM to NOPM follows from the mix; figures that are further from it are not those of the mix."""
RATIO_MIN_COUNT = 10_000
"""New orders below which the ratio says nothing: at so many its standard deviation by chance is below 1 %."""


class TpccJob(TransactionsJob[TpccPlan]):
    """A part at work on its databases."""

    application = TPCC
    disclaimer = TPCC.disclaimer

    def note_odd(self, point: Point) -> None:
        """Say where throughput does not fit the mix, and how much of what thinking users can do was done."""
        self._note_ratio(point)
        self._note_efficiency(point)

    def _note_ratio(self, point: Point) -> None:
        """TPM of the client to NOPM follows from the mix, 2.32 for HammerDB's; something is wrong where it does not."""
        weights, oltp = self.plan.mix, tpcc_of(point)
        nopm, tpm = oltp["nopm"] or 0.0, oltp["tpm_client"] or 0.0
        count = nopm * (point["measured_s"] or 0.0) / 60
        if not weights.new_order or count < RATIO_MIN_COUNT:
            return
        expected = sum(weights.weights) / weights.new_order / (1 - USER_ROLLBACK_SHARE)
        ratio = tpm / nopm
        if abs(ratio / expected - 1) > RATIO_OFF_SHARE:
            self.context.note(
                f"{point['id']}: TPM is {ratio:.2f} times NOPM, and {expected:.2f} by the mix: transactions of some"
                " kind failed or were held up more than others"
            )

    def _note_efficiency(self, point: Point) -> None:
        if self.plan.think_scale == 1:
            oltp = tpcc_of(point)
            nopm, users = oltp["nopm"] or 0.0, oltp["users"] or 0
            most_nopm = EFFICIENCY_MAX_NOPM / 10 * users
            self.context.note(
                f"{nopm / most_nopm:.1%} of the {most_nopm:,.0f} NOPM that keying and thinking times"
                f" let through with {count_of(users, 'user')}"
            )
