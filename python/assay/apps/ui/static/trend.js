// A load of a target over its runs: a line small enough for a card, and a figure with levels and changes.

import { Chart } from "./chart.js";
import { get, h, table } from "./dom.js";
import { moment, value } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT] = [220, 44];
const SPARK_MAX = 200;
const FIGURES_MAX = 6;

export const percent = (share) => `${share > 0 ? "+" : share < 0 ? "−" : ""}${Math.abs(share * 100) < 100 ? Math.abs(share * 100).toFixed(1) : Math.abs(share * 100).toFixed(0)} %`;
const interval = (one, words) => (one ? ` (${words(one[0])} to ${words(one[1])})` : "");
export const levelWords = (trend) => {
  const now = trend.levels.at(-1);
  return `${trend.title}: ${value(now.value, trend.unit)}${interval(now.interval_95, (one) => value(one, trend.unit))}`;
};
export const changeWords = (trend, change) => `${trend.title} ${percent(change.share)}${interval(change.interval_95, percent)} since ${moment(change.started_utc_ns / 1e9).slice(0, 16)}`;
const factWords = (fact) => `${fact.name}: ${fact.before || "not told"} → ${fact.after || "not told"}`;

let asked = null;
// The histories of all targets, asked for once for a list.
export function histories(runs) {
  const key = runs.map((row) => `${row.id}${row.status}${row.ended_s}`).join();
  if (asked?.key !== key) asked = { key, found: get("/api/histories") };
  return asked.found;
}

// The history of a target, found by the runs of the list that it is of.
export function historyOf(found, rows) {
  const own = new Set(rows.map((row) => row.run_id));
  return found.targets.find((one) => one.history.runs.some((run) => own.has(run))) ?? null;
}

function svg(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, one] of Object.entries(attributes)) made.setAttribute(key, String(one));
  return made;
}

export function spark(trend) {
  const values = trend.values.slice(-SPARK_MAX), first = trend.values.length - values.length;
  const least = Math.min(...values), most = Math.max(...values), span = most - least || most || 1;
  const x = (place) => 4 + (values.length > 1 ? place / (values.length - 1) : 0.5) * (WIDTH - 8);
  const y = (one) => HEIGHT - 4 - ((one - least) / span) * (HEIGHT - 8);
  const words = `${trend.title} over ${trend.values.length} runs, from ${value(least, trend.unit)} to ${value(most, trend.unit)}; ${trend.changes.length || "no"} ${trend.changes.length === 1 ? "change" : "changes"} of level`;
  const made = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": words, class: "spark" });
  for (const change of trend.changes) {
    const at = trend.runs.indexOf(change.run) - first;
    if (at >= 0) made.append(svg("line", { x1: x(at - 0.5), x2: x(at - 0.5), y1: 0, y2: HEIGHT, class: "spark-change" }));
  }
  made.append(svg("polyline", { points: values.map((one, place) => `${x(place).toFixed(1)},${y(one).toFixed(1)}`).join(" "), class: "spark-line" }),
    svg("line", { x1: x(values.length - 1), x2: x(values.length - 1), y1: y(values.at(-1)), y2: y(values.at(-1)), class: "spark-now" }));
  return made;
}

// What a card says of a target over time: the figure that changed last, or the first of the load with the most runs.
export function trendSummary(history) {
  const trends = history.loads.flatMap((load) => load.trends.map((trend) => ({ load, trend })));
  if (!trends.length) return [];
  const event = history.events[0];
  const changed = event && trends.find(({ trend }) => trend.changes.some((one) => one.run === event.run || one.started_utc_ns === event.started_utc_ns));
  const { load, trend } = changed ?? trends[0];
  const change = trend.changes.at(-1);
  const why = event?.facts.length ? `; with it ${factWords(event.facts[0])}${event.facts.length > 1 ? ` and ${event.facts.length - 1} more` : ""}` : "";
  return [spark(trend), h("p", { class: "small" }, `${load.workload}, ${load.load}`), h("p", {}, levelWords(trend)),
    change ? h("p", { class: change.better === false ? "bad" : change.better ? "good" : "" }, `${changeWords(trend, change)}${why}`) : h("p", { class: "quiet" }, "no change of level")];
}

// One figure of a load: values, their levels and where these changed.
export function trendChart(trend) {
  const xs = trend.started_utc_ns.map((one) => one / 1e9);
  const bounds = [...trend.levels.map((level) => trend.runs.indexOf(level.first_run)), trend.values.length];
  const level = (pick) => trend.values.map((_, place) => {
    const at = trend.levels.findIndex((__, number) => place >= bounds[number] && place < bounds[number + 1]);
    return at < 0 ? null : pick(trend.levels[at]);
  });
  return new Chart({ title: trend.title, unit: trend.unit, zero: false,
    lines: [{ label: "runs", spanGaps: true }, { label: "level" }, { label: "95 % from" }, { label: "95 % to" }],
    data: [xs, trend.values, level((one) => one.value), level((one) => one.interval_95?.[0] ?? null), level((one) => one.interval_95?.[1] ?? null)],
    marks: trend.changes.map((change) => ({ x: change.started_utc_ns / 1e9, text: percent(change.share) })) });
}

export function eventsTable(history, linkOf) {
  if (!history.events.length) return h("p", { class: "quiet" }, "No level changed.");
  return table("Where levels changed, and what else changed there", ["Since", "Figures", "With it"], history.events.map((event) => [
    { node: linkOf(event.run, moment(event.started_utc_ns / 1e9)) },
    { node: h("ul", {}, (event.changed ?? []).slice(0, FIGURES_MAX).map((one) => h("li", { class: one.better === false && Math.abs(one.share) >= 0.01 ? "bad" : "" }, `${one.figure} ${percent(one.share)}`)), event.figures.length > FIGURES_MAX ? h("li", {}, `${event.figures.length - FIGURES_MAX} more`) : null) },
    event.facts.length ? { node: h("ul", {}, event.facts.slice(0, 8).map((fact) => h("li", {}, factWords(fact)))) } : { class: "quiet", text: "nothing else that a run tells" }]));
}
