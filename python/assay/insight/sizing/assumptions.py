"""Everything that a need does not say and an answer hangs on, and what the method sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from assay.base.units import format_bytes, format_share
from assay.insight.sizing import demand
from assay.insight.sizing.measured import MeasuredDemand
from assay.insight.sizing.need import Need, NeedAsWritten, NeededDatabase, stated
from assay.record.shapes.sizing import Assumption
from assay.targets.arrays.model.configuration import size_text

_ASSUMED: Sequence[tuple[tuple[str, ...], str, Callable[[Need], str], str]] = (
    (("years",), "years it must hold", lambda need: f"{need.years:g}", "assumed"),
    (("head_room",), "head-room of the healthy array", lambda need: format_share(need.head_room), "assumed"),
    (("spread",), "spread of the demand, one standard deviation", lambda need: format_share(need.spread), "assumed"),
    (("limits", "read"), "mean read latency", lambda need: f"{need.limits.read * 1e3:g} ms",
     "the method, EQL-OLTP study"),
    (("limits", "write"), "mean write latency", lambda need: f"{need.limits.write * 1e3:g} ms",
     "the method, EQL-OLTP study"),
    (("limits", "log"), "mean log write latency", lambda need: f"{need.limits.log * 1e3:g} ms",
     "the method, EQL-OLTP study"),
    (("limits", "rebuild"), "longest rebuild", lambda need: f"{need.limits.rebuild / 3600:g} h", "assumed"),
    (("rules", "fill"), "most of the usable capacity", lambda need: format_share(need.rules.fill),
     "the method: size with 60 to 70 %"),
    (("rules", "modelled_fill"), "least fill that is simulated", lambda need: format_share(need.rules.modelled_fill),
     "the method: never with the figure of a nearly empty array"),
)  # fmt: skip

_PUBLISHED_IOS = "EQL-OLTP study: 3,287 I/Os of 1,054 transactions"

_OF_DATABASES: Sequence[tuple[str, str, Callable[[NeededDatabase], str], str]] = (
    ("growth", "growth a year", lambda one: format_share(one.growth), "assumed"),
    ("block", "block size", lambda one: format_bytes(one.block), "the method: pages of 8 KiB"),
    ("read", "share of reads", lambda one: format_share(one.read), "the method: 70/30 stands for most"),
    ("log", "share of I/Os that write the log", lambda one: format_share(one.log), "assumed"),
    ("log_block", "size of a log write", lambda one: format_bytes(one.log_block), "assumed"),
    ("log_size", "space of the log", lambda one: size_text(one.log_bytes), "assumed: a tenth of the database"),
)


def assumptions_of(asked: NeedAsWritten, measured: MeasuredDemand | None) -> list[Assumption]:
    """Everything that the need does not say and the answer hangs on, and what the method sets."""
    need, said = asked.need, stated(asked.table)
    of_measured = {"block", "read", "log", "log_block"} if measured else set()
    rows: list[Assumption] = [
        {"assumption": title, "value": value(need), "from": "stated" if keys in said else source}
        for keys, title, value, source in _ASSUMED
    ]
    if measured is not None and measured.spread is not None:
        rows[2]["from"] = "measured: the busiest hours"
    for one in need.database:
        for key, title, value, source in _OF_DATABASES:
            applies = key == "growth" or (one.ios and (key == "block" or key == "read" or one.log > 0))
            if applies:
                origin = "stated" if ("database", key) in said else source
                origin = "measured" if key in of_measured else origin
                rows.append({"assumption": f"{one.name}: {title}", "value": value(one), "from": origin})
        if one.transactions is not None:
            origin = "stated" if ("database", "ios_per_transaction") in said else _PUBLISHED_IOS
            origin = "measured" if measured else origin
            rows.append({"assumption": f"{one.name}: I/Os of a transaction", "value": f"{one.ios_per_transaction:.2f}",
                         "from": origin})  # fmt: skip
        if one.ios:
            rows.append({"assumption": f"{one.name}: derating from raw profile", "value":
                         format_share(need.rules.derating_transactions),
                         "from": _derating_from(said, "derating_transactions", asked)})  # fmt: skip
        if one.scan is not None:
            rows.append({"assumption": f"{one.name}: derating of scans",
                         "value": format_share(need.rules.derating_scans),
                         "from": _derating_from(said, "derating_scans", asked)})  # fmt: skip
    if need.server is not None and need.server.hit_curve:
        rows.append({"assumption": "hits of the servers' cache by its size",
                     "value": ", ".join(f"{format_bytes(size)} {format_share(share, 1)}"
                                        for size, share in sorted(need.server.hit_curve)),
                     "from": asked.origins.get(("server", "hit_curve"), "stated")})  # fmt: skip
    for mail in need.mail:
        rows += [
            {"assumption": f"{mail.name}: white space, deleted items and overhead of a mailbox",
             "value": format_share(demand.mailbox_bytes(mail) / mail.size - 1),
             "from": f"{mail.messages_per_day:g} messages of {format_bytes(mail.message_size)} a day, kept"
                     f" {mail.deleted_days:g} days, {format_share(mail.overhead)} beside them"},
            {"assumption": f"{mail.name}: background maintenance",
             "value": f"{mail.maintenance_reads:g} reads/s a database",
             "from": "stated" if ("mail", "maintenance_reads") in said else "the method: about 30"},
            {"assumption": f"{mail.name}: copies ask for as much as the active one", "value": f"{mail.copies}",
             "from": "stated" if ("mail", "copies") in said else "assumed"},
        ]  # fmt: skip
    rows += [
        {"assumption": "hosts", "value": "one for each member, as many ports as a controller", "from": "assumed"},
        {"assumption": "I/O of a database", "value": "spread evenly over its volumes, arrivals at random",
         "from": "assumed"},
    ]  # fmt: skip
    return rows


def _derating_from(said: set[tuple[str, ...]], key: str, asked: NeedAsWritten) -> str:
    origin = asked.origins.get(("rules", key))
    return origin or ("stated" if ("rules", key) in said else "published: EQL-OLTP and EQL-DSS studies, 2013")
