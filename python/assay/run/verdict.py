"""The verdict: what was asked, the limit, the value, met or not, and what it means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.results.limits import RESPONSE, parse_limits, show_value
from assay.units import count_of, format_iops, format_latency, format_throughput

Line = dict[str, Any]


def verdict_lines(points: Sequence[Mapping[str, Any]], answers: Sequence[Mapping[str, Any]]) -> list[Line]:
    """All verdict lines of a run.

    Searches give one line each; points that were measured at a given load give one line per limit and scope, or their
    throughput where no limit applies.
    """
    searched = {point_id for answer in answers for point_id in answer["point_ids"]}
    lines = [_answer_line(answer) for answer in answers]
    for point in points:
        if point["id"] not in searched and point["ended_by"] != "interrupted":
            lines += _point_lines(point)
    return lines


def _answer_line(answer: Mapping[str, Any]) -> Line:
    title = answer["workload"]["name"]
    best = answer["max"]
    limit = "; ".join(answer.get("limits", ())) or None
    within = _within(answer.get("limits", ()))
    unit = "nopm" if answer["workload"].get("kind") == "tpcc" else "iops"
    if best is None:
        meaning = f"{title}: no load tried met the limits ({answer['limited_by']})"
        line: Line = {"question": title, "limit": limit, "value": None, "unit": unit, "met": False}
        return line | {"meaning": meaning, "point_id": None}
    if unit == "nopm":
        meaning = f"holds {best['nopm']:,.0f} NOPM ({best['tpm']:,.0f} TPM){within}"
        meaning += (
            f" with {count_of(best['users'], 'user')}"
            if "users" in best
            else f" at {best['rate']:,.1f} transactions per s"
        )
    else:
        meaning = f"holds {format_iops(best['iops'])} IOPS of {title}{within}"
        meaning += (
            f" at {best['rate']:,.0f} arrivals per s" if "rate" in best else f" at {best['outstanding']} outstanding"
        )
        meaning += f" ({format_throughput(best['bytes_per_s']).replace(' (', ', ').removesuffix(')')})"
    meaning += {
        "saturation": "; more load brings no more",
        "axis end": "; the largest load tried",
        "generator": "; beyond that the load generator limits",
    }.get(answer["limited_by"], "")
    if answer.get("band_90"):
        low, high = (format_iops(edge) for edge in answer["band_90"])
        meaning += f"; the model's 90 % band: {low} to {high} ({answer['band_basis']})"
    return {
        "question": title,
        "limit": limit,
        "value": best[unit],
        "unit": unit,
        "met": True,
        "meaning": meaning,
        "point_id": best["point_id"],
    }


def _within(limits: Sequence[str]) -> str:
    """The limits in words: the bound alone where all bound latency by the same."""
    bounds = {(limit.unit, limit.operator, limit.value) for limit in parse_limits(limits)}
    if len(bounds) == 1 and limits:
        unit, operator, value = bounds.pop()
        if unit == "ns" and operator.startswith("<"):
            return f" within {show_value(value, unit)}"
    return f" within {', '.join(limits)}" if limits else ""


def _point_lines(point: Mapping[str, Any]) -> list[Line]:
    title = _point_title(point)
    judged = [verdict for verdict in point["limits"] if verdict["met"] is not None]
    lines = [
        {
            "question": title,
            "limit": verdict["limit"],
            "value": verdict["value"],
            "unit": verdict["unit"],
            "met": verdict["met"],
            "meaning": _limit_meaning(point["workload"].get("role", ""), verdict),
            "point_id": point["id"],
        }
        for verdict in judged
    ]
    if point["workload"].get("kind") == "tpcc":
        return [_transactions_line(title, point), *lines]
    if not lines and point["total"] and point["workload"].get("kind", "io") == "io":
        lines = [_throughput_line(title, point)]
    return lines + _burst_lines(title, point)


def _transactions_line(title: str, point: Mapping[str, Any]) -> Line:
    """What a database did at a given load."""
    oltp = point["oltp"]
    meaning = f"{oltp['nopm']:,.0f} NOPM ({oltp['tpm_client']:,.0f} TPM) with {count_of(oltp['users'], 'user')}"
    latency = oltp["by_transaction"]["new_order"]["latency_ns"]
    if latency is not None:
        meaning += f"; new orders p90 {format_latency(latency['p90'])}"
    line: Line = {"question": title, "limit": None, "value": oltp["nopm"], "unit": "nopm", "met": None}
    return line | {"meaning": meaning, "point_id": point["id"]}


def _burst_lines(title: str, point: Mapping[str, Any]) -> list[Line]:
    """Foreground reads while a checkpoint writes, against the time between."""
    bursts = point.get("bursts")
    if not bursts or not bursts["read_during"] or not bursts["read_between"]:
        return []
    during, between = (bursts[when]["latency_ns"]["mean"] for when in ("read_during", "read_between"))
    meaning = (
        f"reads take {format_latency(during)} on average during {bursts['count']} checkpoint bursts,"
        f" {format_latency(between)} between"
    )
    line: Line = {
        "question": f"{title}, reads during bursts",
        "limit": None,
        "value": during,
        "unit": "ns",
        "met": None,
    }
    return [line | {"meaning": meaning, "point_id": point["id"]}]


def _point_title(point: Mapping[str, Any]) -> str:
    title, load = str(point["workload"]["name"]), point["load"]
    if load.get("queue_depth", 1) > 1:
        title += f", queue depth {load['queue_depth']}"
    if load.get("workers", 1) > 1 and "worker" not in title:
        title += f", {load['workers']} workers"
    if "rate" in load:
        title += f" at {load['rate']:,.0f} per s"
    return title


def _limit_meaning(point_role: str, verdict: Mapping[str, Any]) -> str:
    limit = parse_limits([verdict["limit"]])[0]
    what = limit.metric if limit.direction is None else f"{limit.direction} {limit.metric}"
    where = "" if verdict["scope"] in (point_role, "host") else f" on {verdict['scope']}"
    if limit.direction == RESPONSE:
        where = f" of {verdict['scope'].replace('_', '-')}"
    elif verdict["scope"] == "server":
        where = " of the server"
    share = verdict["value"] / limit.value if limit.value else 0.0
    against = f"{share:.0%} of the limit" if share < 10 else f"{share:.0f} times the limit"
    return f"{what}{where} is {show_value(verdict['value'], verdict['unit'])}, {against}"


def _throughput_line(title: str, point: Mapping[str, Any]) -> Line:
    total = point["total"]
    large = total["bytes_per_s"] / max(total["iops"], 1) >= 65536
    value, unit = (total["bytes_per_s"], "bytes_per_s") if large else (total["iops"], "iops")
    shown = format_throughput(value) if large else f"{format_iops(value)} IOPS"
    latency = format_latency(total["latency_ns"]["mean"])
    line: Line = {"question": title, "limit": None, "value": value, "unit": unit, "met": None}
    return line | {"meaning": f"{shown} at a mean latency of {latency}", "point_id": point["id"]}
