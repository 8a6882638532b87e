// What a run does at this moment, as it says itself twice a second.

import { Chart } from "./chart.js";
import { h, table } from "./dom.js";
import { duration, standing, value } from "./words.js";

const SECONDS_MAX = 3600;
const PERCENTILE = /^(read|write|total)_p[0-9_]+_ns$/;
// Latencies of one side lie in one figure.
const FIGURES = { read: "Read latency", write: "Write latency", device: "Device latency" };
const AXES = { outstanding: "outstanding I/Os" };
const figureOf = (gauge) => (gauge.unit === "ns" ? FIGURES[gauge.name.split("_")[0]] ?? "Response" : gauge.title);
const labelOf = (gauge) => gauge.unit === "ns" ? gauge.title.replace(/^(read|write|response) /, "").replace(/^latency$/, "mean") : gauge.title;

export function liveView() {
  const head = h("p", { class: "strong" });
  const cards = h("div", { class: "cards" });
  const figures = h("div", { class: "grid" });
  const hosts = h("div", { hidden: true });
  const el = h("section", { hidden: true, "aria-label": "What goes on" }, h("h2", {}, "Going on now"), head, cards, hosts, figures);
  const kept = new Map();
  let charts = new Map(), curve = null;

  function update(told) {
    el.hidden = false;
    const left = told.left_s === null ? "" : `, at most ${duration(told.left_s)} left`;
    const done = told.done_share === null ? "" : `, ${Math.round(told.done_share * 100)} % done`;
    head.textContent = `${told.part ? `[${told.part}] ` : ""}${told.phase}${done}${left}${told.what ? `: ${told.what}` : ""}${told.waiting ? `; ${told.waiting}` : ""}`;
    const errors = told.errors ?? { count: 0, word: "errors" };
    const near = told.nearest;
    const host = told.host ?? {};
    cards.replaceChildren(
      ...gaugeCards(told.gauges ?? []),
      near ? card("nearest limit", `${Math.round(near.share * 100)} % of it`, `${near.limit}: ${near.scope} ${near.text}, ${near.word} (${near.where})`, near.share > 0.8 && near.word === "met" ? "warn" : standing(near.word).class) : "",
      host.cpu_share === null || host.cpu_share === undefined ? "" : card("processors of this host", value(host.cpu_share, "share")),
      ...(host.devices ?? []).map((one) => card(`${one.name} busy`, value(one.busy_share, "share"))),
      card(errors.word, String(errors.count), null, errors.count ? "bad" : ""),
      card("points done", String(told.done ?? 0)));
    for (const gauge of told.gauges ?? []) keep(gauge, told.times_utc_ns ?? []);
    drawGauges(told.gauges ?? []);
    drawCurve(told.curve);
    showHosts(told.hosts ?? []);
  }

  // Percentiles stand beneath the mean of their side, or on a card of their own.
  function gaugeCards(gauges) {
    const sides = new Map();
    for (const one of gauges.filter((gauge) => PERCENTILE.test(gauge.name))) {
      const side = one.name.split("_")[0];
      sides.set(side, [...(sides.get(side) ?? []), one]);
    }
    const told = (own) => own.map((one) => `${labelOf(one)} ${value(one.value, one.unit)}`).join(" · ");
    const made = gauges.filter((gauge) => !PERCENTILE.test(gauge.name)).map((one) => {
      const side = one.name.endsWith("_latency_ns") ? one.name.split("_")[0] : "";
      const own = sides.get(side) ?? [];
      sides.delete(side);
      return card(own.length ? `${one.title}, mean` : one.title, value(one.value, one.unit), own.length ? told(own) : null);
    });
    for (const own of sides.values()) made.push(card("response", told(own.slice(0, 1)), told(own.slice(1))));
    return made;
  }

  function showHosts(loads) {
    hosts.hidden = !loads.length;
    if (!loads.length) return;
    const busy = (host) => (host.devices ?? []).map((one) => `${one.name} ${value(one.busy_share, "share")}`).join(", ") || "-";
    hosts.replaceChildren(table("Hosts that make the load", [{ title: "host" }, { title: "processors used", class: "number" }, { title: "devices busy" }],
      loads.map((one) => [{ text: one.name, class: "name" }, { text: value(one.cpu_share, "share"), class: "number" }, { text: busy(one) }])));
  }

  function card(title, text, more = null, tone = "") {
    return h("div", { class: "card" }, h("div", { class: "quiet" }, title), h("div", { class: `value ${tone}` }, text), more ? h("div", {}, more) : null);
  }

  function keep(gauge, times) {
    const own = kept.get(gauge.name) ?? new Map();
    kept.set(gauge.name, own);
    const first = times.length - gauge.history.length;
    gauge.history.forEach((one, place) => own.set(times[first + place] / 1e9, one));
    while (own.size > SECONDS_MAX) own.delete(own.keys().next().value);
  }

  function drawGauges(gauges) {
    const groups = new Map();
    for (const one of gauges) {
      const key = figureOf(one);
      groups.set(key, [...(groups.get(key) ?? []), one]);
    }
    for (const [title, own] of groups) {
      const times = [...new Set(own.flatMap((one) => [...kept.get(one.name).keys()]))].sort((a, b) => a - b);
      const data = [times, ...own.map((one) => times.map((at) => kept.get(one.name).get(at) ?? null))];
      const labels = own.map((one) => one.title).join();
      const found = charts.get(title);
      if (found?.labels === labels) found.chart.update(data);
      else {
        found?.chart.close();
        found?.chart.el.remove();
        const chart = new Chart({ title, lines: own.map((one) => ({ label: labelOf(one) })), data, unit: own[0].unit });
        charts.set(title, { chart, labels });
        figures.insertBefore(chart.el, curve?.el ?? null);
      }
    }
  }

  function drawCurve(told) {
    if (!told?.points?.length) return;
    const axis = AXES[told.axis] ?? told.axis;
    const points = [...told.points].sort((a, b) => a.load - b.load);
    const data = [points.map((one) => one.load), points.map((one) => one.value), points.map((one) => (one.met === false ? one.value : null))];
    if (curve?.xTitle === axis && curve?.title === `${told.title} by ${axis}, so far`) { curve.update(data); return; }
    curve?.close();
    curve?.el.remove();
    curve = new Chart({ title: `${told.title} by ${axis}, so far`, time: false, xTitle: axis, unit: told.unit, data,
      lines: [{ label: told.title, spanGaps: true }, { label: "misses a limit", dots: true }] });
    figures.append(curve.el);
  }

  return {
    el, update,
    end: () => { el.hidden = true; },
    close: () => { for (const { chart } of charts.values()) chart.close(); curve?.close(); },
  };
}
