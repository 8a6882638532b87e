"""The verdict: what was asked, the limit, the value, met or not, and what it means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from assay.analysis.limits import show_value
from assay.units import format_bytes, format_iops, format_latency, format_throughput

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


def headline(lines: Iterable[Mapping[str, Any]]) -> str:
    """The meanings that matter most, in one sentence: what is held, and what is missed."""
    meanings = [line["meaning"] for line in lines if line["met"] is not False]
    missed = [line["meaning"] for line in lines if line["met"] is False]
    return "; ".join([*meanings[:4], *missed[:3]])


def _answer_line(answer: Mapping[str, Any]) -> Line:
    title = answer["workload"]["name"]
    best = answer["max"]
    limit = "; ".join(answer.get("limits", ())) or "none"
    within = _within(answer.get("limits", ()))
    if best is None:
        meaning = f"{title}: no load tried met the limits ({answer['limited_by']})"
        return {"question": title, "limit": limit, "value": None, "unit": "iops", "met": False, "meaning": meaning}
    throughput = format_throughput(best["bytes_per_s"])
    meaning = f"holds {format_iops(best['iops'])} IOPS of {title}{within}, {throughput}"
    if "rate" in best:
        meaning += f", at {best['rate']:,.0f} arrivals per s"
    else:
        meaning += f", at {best['outstanding']} outstanding"
    meaning += {
        "saturation": "; more load brings no more",
        "axis end": "; the largest load tried",
        "generator": "; beyond that the load generator limits",
    }.get(answer["limited_by"], "")
    return {
        "question": title,
        "limit": limit,
        "value": best["iops"],
        "unit": "iops",
        "met": True,
        "meaning": meaning,
        "point_id": best["point_id"],
    }


def _within(limits: Sequence[str]) -> str:
    return f" within {' and '.join(limits)}" if limits else ""


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
            "meaning": _limit_meaning(title, verdict),
            "point_id": point["id"],
        }
        for verdict in judged
    ]
    if not lines and point["total"]:
        lines = [_throughput_line(title, point)]
    return lines


def _point_title(point: Mapping[str, Any]) -> str:
    title, load = str(point["workload"]["name"]), point["load"]
    if load.get("queue_depth", 1) > 1:
        title += f", queue depth {load['queue_depth']}"
    if load.get("workers", 1) > 1 and "worker" not in title:
        title += f", {load['workers']} workers"
    if "rate" in load:
        title += f" at {load['rate']:,.0f} per s"
    return title


def _limit_meaning(title: str, verdict: Mapping[str, Any]) -> str:
    where = "" if verdict["scope"] in ("data", "host", "all") else f" ({verdict['scope']})"
    value = show_value(verdict["value"], verdict["unit"])
    metric = verdict["limit"].replace("<=", " ").replace(">=", " ").replace("<", " ").replace(">", " ").split()[0]
    return f"{title}{where}: {metric} {value}, {'within' if verdict['met'] else 'beyond'} {verdict['limit']}"


def _throughput_line(title: str, point: Mapping[str, Any]) -> Line:
    total = point["total"]
    large = total["bytes_per_s"] / max(total["iops"], 1) >= 65536
    value, unit = (total["bytes_per_s"], "bytes_per_s") if large else (total["iops"], "iops")
    shown = format_throughput(value) if large else f"{format_iops(value)} IOPS"
    latency = format_latency(total["latency_ns"]["mean"])
    line: Line = {"question": title, "limit": "none", "value": value, "unit": unit, "met": None}
    return line | {"meaning": f"{title}: {shown}, mean latency {latency}", "point_id": point["id"]}


def honest_notices(points: Sequence[Mapping[str, Any]], target: Mapping[str, Any]) -> list[str]:
    """What a reader must know before believing the figures."""
    notices = []
    for volume in target["volumes"]:
        if volume["kind"] != "null":
            size, state = format_bytes(volume["size_bytes"]), volume["state"]
            notices.append(f"{volume['name']}: measured on {size}, {state}; {target['cache_notice']}")
    errors = sum(point["errors"]["count"] for point in points)
    if errors:
        worst = max(points, key=lambda point: point["errors"]["count"])
        kinds = ", ".join(f"{kind} {count}" for kind, count in worst["errors"]["kinds"].items() if count)
        notices.append(f"{errors:,} I/Os failed; most in point {worst['id']}: {kinds}")
    saturated = [point["id"] for point in points if point["generator"]["saturated"]]
    if saturated:
        notices.append(f"the load generator was the bottleneck in {_listed(saturated)}: no answer rests on them")
    unsteady = [
        point["id"]
        for point in points
        if not point["steady"]["reached"] and point["steady"]["slope_share"] is not None and point["ended_by"] == "time"
    ]
    if unsteady:
        notices.append(f"no steady state was reached in {_listed(unsteady)}: their figures may drift")
    return notices


def _listed(ids: Sequence[str]) -> str:
    shown = ", ".join(ids[:8])
    return f"{len(ids)} points ({shown}{', ...' if len(ids) > 8 else ''})" if len(ids) > 1 else f"point {ids[0]}"
