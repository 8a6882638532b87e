// A run of one point: its figures, its latency histogram and its seconds, not charts of a dot.

import { Chart } from "./chart.js";
import { h } from "./dom.js";
import { metricWords, unitOf, value } from "./words.js";

const WORDS = { read: "reads", write: "writes", total: "all" };

export function singleView(view) {
  const point = view.points[0], figures = view.figures[point.kind] ?? [];
  const cards = figures.filter((one) => point.figures[one.name] !== undefined).map((one) => h("div", { class: "card" },
    h("div", { class: "quiet" }, one.title), h("div", { class: "value" }, value(point.figures[one.name], one.unit))));
  const charts = [...histogram(view.single.histograms), ...view.single.seconds.map((one) => seconds(one, figures))];
  const el = h("section", { "aria-label": "The point" },
    h("h2", {}, `${point.name}, ${point.load}`), h("div", { class: "cards" }, cards),
    h("div", { class: "grid" }, charts.map((one) => one.el)));
  return { el, close: () => charts.forEach((one) => one.close()) };
}

// Shares of a step of latency; all sides on the steps of all.
function histogram(found) {
  if (!found.length) return [];
  const edges = [...new Set(found.flatMap((one) => one.up_to_ns))].sort((a, b) => a - b);
  const columns = found.map((one) => {
    const total = one.counts.reduce((sum, count) => sum + count, 0), at = new Map(one.up_to_ns.map((edge, place) => [edge, one.counts[place] / total]));
    return edges.map((edge) => at.get(edge) ?? (edge < one.up_to_ns[0] || edge > one.up_to_ns.at(-1) ? 0 : undefined));
  });
  return [new Chart({ title: "Latency: share in each step", time: false, log: true, xTitle: "latency", xUnit: "ns", unit: "share",
    lines: found.map((one) => ({ label: WORDS[one.name] ?? metricWords(one.name), steps: true })), data: [edges, ...columns] })];
}

function seconds(one, figures) {
  const count = Math.max(...one.lines.map((line) => line.values.length));
  const unit = one.metric.endsWith("_ns") ? "ns" : unitOf(one.metric) || (one.metric === "iops" ? "iops" : "");
  const xs = Array.from({ length: count }, (_, place) => (place + 1) * one.step_s);
  const words = figures.find((figure) => figure.name === one.metric)?.title || (one.metric === "iops" ? "IOPS" : metricWords(one.metric));
  return new Chart({ title: `${words[0].toUpperCase()}${words.slice(1)} over the seconds of the point`, time: false, xTitle: "s", unit,
    lines: one.lines.map((line) => ({ label: WORDS[line.name] ?? line.name })), data: [xs, ...one.lines.map((line) => xs.map((_, place) => line.values[place] ?? null))] });
}
