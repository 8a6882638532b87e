// What a run does at this moment, as it says itself twice a second.

import { Chart } from "./chart.js";
import { h } from "./dom.js";
import { duration, standing, value } from "./words.js";

const SECONDS_MAX = 3600;

export function liveView() {
  const head = h("p", { class: "strong" });
  const cards = h("div", { class: "cards" });
  const figures = h("div", { class: "grid" });
  const el = h("section", { hidden: true, "aria-label": "What goes on" }, h("h2", {}, "Going on now"), head, cards, figures);
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
      ...(told.gauges ?? []).map((one) => card(one.title, value(one.value, one.unit))),
      near ? card("nearest limit", `${Math.round(near.share * 100)} % of it`, `${near.limit}: ${near.scope} ${near.text}, ${near.word} (${near.where})`, near.share > 0.8 && near.word === "met" ? "warn" : standing(near.word).class) : "",
      host.cpu_share === null || host.cpu_share === undefined ? "" : card("processors of this host", value(host.cpu_share, "share")),
      ...(host.devices ?? []).map((one) => card(`${one.name} busy`, value(one.busy_share, "share"))),
      card(errors.word, String(errors.count), null, errors.count ? "bad" : ""),
      card("points done", String(told.done ?? 0)));
    for (const gauge of told.gauges ?? []) keep(gauge, told.times_utc_ns ?? []);
    drawGauges(told.gauges ?? []);
    drawCurve(told.curve);
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
      // Latencies of reads and writes belong into one figure.
      const key = one.unit === "ns" ? "Latency" : one.title;
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
        const chart = new Chart({ title, lines: own.map((one) => ({ label: one.title })), data, unit: own[0].unit });
        charts.set(title, { chart, labels });
        figures.insertBefore(chart.el, curve?.el ?? null);
      }
    }
  }

  function drawCurve(told) {
    if (!told?.points?.length) return;
    const points = [...told.points].sort((a, b) => a.load - b.load);
    const data = [points.map((one) => one.load), points.map((one) => (one.met === false ? null : one.value)), points.map((one) => (one.met === false ? one.value : null))];
    if (curve?.xTitle === told.axis && curve?.title === `${told.title} by ${told.axis}, so far`) { curve.update(data); return; }
    curve?.close();
    curve?.el.remove();
    curve = new Chart({ title: `${told.title} by ${told.axis}, so far`, time: false, xTitle: told.axis, unit: told.unit, data,
      lines: [{ label: "misses no limit", spanGaps: true }, { label: "misses a limit", dots: true }] });
    figures.append(curve.el);
  }

  return {
    el, update,
    end: () => { el.hidden = true; },
    close: () => { for (const { chart } of charts.values()) chart.close(); curve?.close(); },
  };
}
