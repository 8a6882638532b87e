// Many runs beside each other: the curves of one kind and figure laid over each other.

import { Chart } from "./chart.js";
import { get, h, reading, table } from "./dom.js";
import { moment } from "./words.js";

const FIGURES_MAX = 6;
const LOADS_MAX = 8;

// A run's name among others: what tells it apart.
const names = (rows) => rows.map((row) => {
  const titles = new Set(rows.map((one) => one.title));
  return titles.size === rows.length && row.title ? row.title : `${moment(row.started_s).slice(0, 16)} ${titles.size === 1 ? "" : row.title}`.trim() || row.name;
});

export function manyPage(ids) {
  const charts = [];
  const el = h("div", {}, h("h1", {}, `${ids.length} runs beside each other`),
    reading("the runs", Promise.all([get("/api/runs"), ...ids.map((id) => get(`/api/runs/${id}/view`))]), ([{ runs }, ...views]) => {
      const rows = ids.map((id) => runs.find((row) => row.id === id) ?? { id, title: "", name: id, started_s: null });
      const words = names(rows);
      const list = table("The first is what the others are compared with", ["Run", "Answer", "Against the first"], rows.map((row, place) => [
        { class: "name", node: h("div", {}, h("a", { href: `#/run/${row.id}` }, words[place]), h("div", { class: "quiet small" }, row.name)) },
        { node: h("div", {}, (views[place].lead ?? []).slice(0, 2).map((one) => h("p", {}, one.text ?? one.caption ?? ""))) },
        place ? { node: h("a", { href: `#/compare/${ids[0]}/${row.id}` }, "what changed, with intervals") } : { class: "quiet", text: "-" }]));
      const loads = new Map(views.flatMap((view) => view.points.map((one) => [`${one.kind} ${one.name}`, one])));
      const made = [...loads.values()].slice(0, LOADS_MAX).flatMap(({ kind, name }) => {
        const figures = new Map(views.flatMap((view) => view.figures[kind] ?? []).map((one) => [one.name, one]));
        return [...figures.values()].slice(0, FIGURES_MAX).map((figure) => overlaid(figure, kind, name, views, words)).filter(Boolean);
      });
      charts.push(...made);
      return [list, h("h2", {}, "Figures by load"), made.length ? h("div", { class: "grid" }, made.map((one) => one.el)) : h("p", { class: "quiet" }, "No figure was measured.")];
    }));
  return { el, title: `${ids.length} runs`, close: () => charts.forEach((one) => one.close()) };
}

// Of one load in all runs a curve would be a dot each: then the runs are the axis.
function overlaid(figure, kind, name, views, words) {
  const of = views.map((view) => {
    const byLoad = new Map();
    for (const point of view.points) {
      const one = point.figures[figure.name];
      if (point.kind === kind && point.name === name && one !== undefined) byLoad.set(point.size, [...(byLoad.get(point.size) ?? []), one]);
    }
    return byLoad;
  });
  const loads = [...new Set(of.flatMap((one) => [...one.keys()]))].sort((x, y) => x - y);
  if (!loads.length) return null;
  const mean = (list) => (list ? list.reduce((sum, one) => sum + one, 0) / list.length : null);
  if (loads.length === 1) {
    return new Chart({ title: `${name}: ${figure.title}, by run`, time: false, xTitle: "run, in the order of the table", unit: figure.unit, lines: [{ label: figure.title, spanGaps: true }],
      data: [words.map((_, place) => place + 1), of.map((one) => mean(one.get(loads[0])))] });
  }
  const axis = views.flatMap((view) => view.points).find((point) => point.kind === kind && point.name === name)?.axis ?? "load";
  return new Chart({ title: `${name}: ${figure.title} by ${axis}`, time: false, xTitle: axis, unit: figure.unit,
    lines: words.map((label) => ({ label, spanGaps: true })), data: [loads, ...of.map((one) => loads.map((load) => mean(one.get(load))))] });
}
