// Two runs beside each other: what changed, with intervals, and both curves.

import { Chart } from "./chart.js";
import { csv, get, h, reading, save, table } from "./dom.js";
import { metricWords, moment } from "./words.js";

const NUMBERS = new Set(["A", "B", "difference", "95 % interval"]);

export function comparePage(a, b) {
  const query = `a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`;
  const charts = [];
  const names = h("div", {}, h("p", {}, "A: ", h("a", { href: `#/run/${a}` }, a)), h("p", {}, "B: ", h("a", { href: `#/run/${b}` }, b)));
  get("/api/runs").then(({ runs }) => {
    const shown = (id) => runs.find((row) => row.id === id) ?? { title: "not there any more", name: "" };
    names.replaceChildren(...[["A", a, shown(a)], ["B", b, shown(b)]].map(([letter, id, row]) => h("p", {},
      `${letter}: `, h("a", { href: `#/run/${id}` }, row.title || row.name), row.started_s ? ` of ${moment(row.started_s)} UTC ` : " ", h("small", { class: "quiet" }, row.title ? row.name : ""))));
  }, () => {});

  const differences = reading("the comparison", get(`/api/compare?${query}`), (found) => {
    const columns = found.columns.map((title) => ({ title, class: NUMBERS.has(title) ? "number" : "" }));
    const rows = (list) => list.map((row) => row.map((text, place) => ({ text, class: columns[place].class || tone(text, found.columns[place]) })));
    return [
      h("p", { class: "strong" }, found.sentence),
      found.basis ? h("p", { class: "quiet" }, found.basis) : null,
      h("div", { class: "bar no-print" },
        h("a", { href: `/compare.html?${query}`, target: "_blank", rel: "noopener" }, "As a page"),
        h("button", { type: "button", onclick: () => save("comparison.csv", csv([found.columns, ...found.answers, ...found.points]), "text/csv") }, "CSV")),
      found.answers.length ? table("Most within limits, knee and edge", columns, rows(found.answers)) : null,
      found.points.length ? table("Points that both runs have", columns, rows(found.points)) : null,
      ...found.unmatched.map((text) => h("p", { class: "quiet" }, `not compared: ${text}`)),
    ].filter(Boolean);
  });
  const curves = reading("both curves", Promise.all([a, b].map((id) => get(`/api/runs/${id}/view`))), (views) => {
    const kinds = Object.keys(views[0].figures).filter((kind) => views[1].figures[kind]);
    const made = kinds.flatMap((kind) => views[0].figures[kind].slice(0, 4).map((figure) => curve(figure, kind, views)).filter(Boolean));
    charts.push(...made);
    return made.length ? h("div", { class: "grid" }, made.map((one) => one.el)) : h("p", { class: "quiet" }, kinds.length ? "Both runs have one load: the table says it all." : "The runs share no kind of point.");
  });
  const el = h("div", {}, h("h1", {}, "Comparison"), names, differences, h("h2", {}, "Figures by load"), curves);
  return { el, title: "Comparison", close: () => charts.forEach((one) => one.close()) };
}

function tone(text, column) {
  if (column !== "verdict") return "";
  return text.includes("worse") ? "bad" : text.includes("better") ? "good" : "";
}

function curve(figure, kind, views) {
  const of = views.map((view) => {
    const byLoad = new Map();
    for (const point of view.points) {
      const value = point.figures[figure.name];
      if (point.kind === kind && value !== undefined) byLoad.set(point.size, [...(byLoad.get(point.size) ?? []), value]);
    }
    return byLoad;
  });
  const loads = [...new Set(of.flatMap((one) => [...one.keys()]))].sort((x, y) => x - y);
  if (loads.length < 2) return null; // one load makes no curve
  // Of several percentiles the highest stands for all.
  const mean = (list) => (!list ? null : /p\d/.test(figure.name) ? Math.max(...list) : list.reduce((sum, one) => sum + one, 0) / list.length);
  const axis = views[0].points.find((point) => point.kind === kind)?.axis ?? "load";
  return new Chart({ title: `${figure.title || metricWords(figure.name)} by ${axis}`, time: false, xTitle: axis, unit: figure.unit,
    lines: [{ label: "A", spanGaps: true }, { label: "B", spanGaps: true }],
    data: [loads, ...of.map((one) => loads.map((load) => mean(one.get(load))))] });
}
