"""The network: segments that are lost, on the way to storage or to the database."""

from __future__ import annotations

import numpy as np

from assay.insight.diagnosis import thresholds as at
from assay.insight.diagnosis.causes.cause import Cause, those
from assay.insight.diagnosis.evidence import smooth, transactions
from assay.insight.diagnosis.observed import Observations, Track
from assay.insight.diagnosis.signals import CauseSignals, Suspicion

SEGMENTS_MIN = 20.0
"""Segments a second below which a share of those sent again says nothing."""

RARE_S = 10.0
"""Time-outs are counted over so many seconds: a few in a minute are many, and most seconds have none."""


def network_loss(observed: Observations) -> list[Suspicion]:
    """Hosts and ports whose segments are sent again, while drops, time-outs or stalls are seen."""
    found = []
    for host in observed.hosts:
        signals = CauseSignals(observed)
        for share in (
            *observed.find("retransmit_share", host=host),
            *observed.find("storage_retransmit_share", host=host),
        ):
            signals.add("loss", f"{_named(share)}: segments are sent again", _enough(observed, share), at.RETRANSMITS,
                        entity=share.entity, host=host, required=True, strong=True)  # fmt: skip
        if not observed.find("retransmit_share", host=host):
            for out in observed.find("segments_out_count", source="net", host=host):
                again = observed.of(out, "segments_retransmitted_count")
                if again is not None:
                    share_values = np.where(out.values >= SEGMENTS_MIN, again.values / out.values, np.nan)
                    signals.add("loss", f"{host}: segments are sent again", share_values, at.RETRANSMITS, required=True,
                                strong=True)  # fmt: skip
        for metric in ("in_dropped_count", "out_dropped_count", "in_errors_count", "out_errors_count"):
            for track in observed.find(metric, source="net", host=host):
                said = metric.removesuffix("_count").replace(
                    "_", "coming packets " if metric.startswith("in_") else "going packets "
                )
                signals.add("drops", f"{track.entity}: {said}", track, at.DROPS)
        for track in observed.find("timeouts_count", source="net", host=host):
            often = smooth(track.values, observed.steps_of(RARE_S))
            signals.add("timeouts", f"{host}: connections stand still until a time-out", often, at.TIMEOUTS)
        for track in observed.find("duplicates_in_count", source="net", host=host):
            come = observed.of(track, "segments_in_count")
            if come is not None:
                twice = np.where(np.nan_to_num(come.values) >= SEGMENTS_MIN, track.values / come.values, np.nan)
                signals.add("duplicates", f"{host}: segments come a second time", twice, at.RETRANSMITS)
        for track in observed.find("retransmissions_count", source="nfs", host=host):
            signals.add("nfs", f"{track.entity}: requests to NFS are sent again", track, at.DROPS)
        for track in _tails(observed, host):
            signals.add(
                "stalls",
                f"{track.entity}: the slowest of a second take as long as a lost segment does",
                track,
                at.STALL,
            )
        found.append(
            signals.agree(
                "network-loss",
                resource="network",
                advice="Follow the counters of drops and errors from port to port: cables, duplex, flow control,"
                " ring buffers, a switch with too little memory; then the largest frame on every hop.",
                against=["The share stays the same when there is no load: then it is of other connections."],
                explains=("slow-path", "throttled-queue", "slow-disk", "log-flush"),
                confirm="drops and errors of adapters and switches, time-outs of TCP",
            )
        )
    return those(*found)


def _named(track: Track) -> str:
    return f"{track.host} {track.entity}" if track.entity != "tcp" else track.host


def _enough(observed: Observations, share: Track) -> np.ndarray:
    """A share where enough segments were sent."""
    for metric in ("segments_out_count", "storage_segments_out_count"):
        out = observed.of(share, metric)
        if out is not None:
            return np.where(np.nan_to_num(out.values) >= SEGMENTS_MIN, share.values, np.nan)
    return share.values


def _tails(observed: Observations, host: str) -> list[Track]:
    """The slowest of each step: of transactions, and of the load's I/Os."""
    of_load = [
        track
        for metric in ("read_latency_max_ns", "write_latency_max_ns")
        for track in observed.find(metric, source="assay", host=host)
    ]
    own = [track for metric in ("latency_max_ns", "latency_p99_ns") for track in transactions(observed, metric)]
    return [*of_load, *(track for track in own if track.host == host)]


CAUSES = (
    Cause(
        name="network-loss",
        sources=("net", "model"),
        title="The network loses segments",
        needs="TCP segments, and drops, time-outs or the slowest I/Os",
        find=network_loss,
    ),
)
