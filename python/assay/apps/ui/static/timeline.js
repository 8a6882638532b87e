// Figures over time: of a run's series or a recording, from all of it down to seconds, from a group down to its disks.

import { Chart } from "./chart.js";
import { heatMap } from "./heat.js";
import { announce, get, h, reading } from "./dom.js";
import { metricWords, moment, unitOf } from "./words.js";

const STEPS = 500;
const QUERIES_MAX = 24;
const SPANS = [["15 min", 900], ["1 h", 3600], ["6 h", 21600], ["24 h", 86400], ["7 days", 604800], ["all", Infinity]];
const REFRESH_MS = 5000;
const BUCKET = /_bucket\d\d_count$/; // drawn by the heat map

// What is shown unless something else is chosen: title, source, metrics, and the entity if one alone counts.
const PANELS = [
  ["IOPS of the load", "assay", ["read_ios_count", "write_ios_count"]],
  ["Latency of the load", "assay", ["read_latency_mean_ns", "write_latency_mean_ns"]],
  ["p99 of the load", "assay", ["read_latency_p99_ns", "write_latency_p99_ns"]],
  ["Model: busy", "model", ["busy_share"]],
  ["Model: IOPS", "model", ["read_ios_count", "write_ios_count"]],
  ["Model: cache to be written", "model", ["dirty_bytes"]],
  ["Devices: IOPS", "block", ["read_ios_count", "write_ios_count"]],
  ["Devices: latency", "block", ["read_latency_mean_ns", "write_latency_mean_ns"]],
  ["p99 in devices", "block", ["read_device_latency_p99_ns", "write_device_latency_p99_ns"]],
  ["Devices: busy", "block", ["busy_share"]],
  ["Devices: throughput", "block", ["read_bytes", "write_bytes"]],
  ["Processors", "host", ["user_share", "system_share", "iowait_share", "steal_share"], "cpu"],
  ["Tasks that wait", "host", ["some_share"]],
  ["Memory available", "host", ["available_bytes"], "memory"],
  ["Network", "net", ["in_bytes", "out_bytes"]],
];

// What is recorded more rarely than it is drawn is one line; only longer breaks are gaps. uPlot goes past undefined.
function connected(values) {
  const places = [];
  values.forEach((one, place) => { if (one !== null) places.push(place); });
  const apart = places.slice(1).map((place, at) => place - places[at]).sort((a, b) => a - b);
  const usual = apart[Math.floor(apart.length / 2)] ?? 1;
  if (usual === 1 && apart.at(-1) === 1) return values;
  const made = [...values];
  for (let at = 1; at < places.length; at += 1) {
    if (places[at] - places[at - 1] <= 2.5 * usual) made.fill(undefined, places[at - 1] + 1, places[at]);
  }
  return made;
}

export function timeline(run, { isRecording }) {
  let catalogue = null, span = isRecording ? 3600 : Infinity, zoom = null, under = "", chosen = "", charts = [], asked = 0, drawnAt = 0;
  const controls = h("div", { class: "bar no-print" });
  const path = h("nav", { class: "bar", "aria-label": "Group, member, disk" });
  const figures = h("div", { class: "grid" });
  const note = h("p", { class: "quiet", role: "status" });
  const heat = isRecording ? heatMap(run) : null;
  const el = h("div", {}, reading("what was recorded", get(`/api/runs/${run}/series`), (found) => {
    catalogue = found;
    if (!found.groups.length) return h("p", {}, "Nothing was recorded over time.");
    drawControls();
    draw();
    return [controls, path, note, heat?.el ?? "", figures];
  }));

  function drawControls() {
    const metrics = h("select", { id: "metric", onchange: () => { chosen = metrics.value; draw(); } },
      h("option", { value: "" }, "the usual figures"),
      catalogue.groups.map((group) => h("optgroup", { label: `${group.host} ${group.source} (${group.tier})` },
        group.metrics.filter((one) => !BUCKET.test(one.metric)).map((one) => h("option", { value: JSON.stringify([group.host, group.source, one.metric]) }, metricWords(one.metric))))));
    const buttons = isRecording ? SPANS.map(([words, seconds]) => h("button", { type: "button", "aria-pressed": String(span === seconds), onclick: () => {
      span = seconds;
      zoom = null;
      drawControls();
      draw();
    } }, words)) : [];
    const whole = h("button", { type: "button", disabled: !zoom, onclick: () => { zoom = null; draw(); } }, "Whole time");
    controls.replaceChildren(...(isRecording ? [h("span", {}, "Last"), ...buttons] : []), whole, h("label", { for: "metric" }, "Show"), metrics);
    metrics.value = chosen;
    controls.whole = whole;
  }

  function times() {
    if (zoom) return zoom;
    return [Math.max(catalogue.from_s, catalogue.to_s - span), catalogue.to_s];
  }

  function panels() {
    const made = [];
    const add = (title, group, metrics, entity) => {
      const known = group.metrics.filter((one) => metrics.includes(one.metric) && (!entity || one.entities.includes(entity)));
      const inside = (one) => !under || entity || one.entities.some((name) => name === under || name.startsWith(`${under}/`));
      const own = known.filter(inside);
      if (own.length) made.push({ title: catalogue.groups.some((other) => other.host !== group.host) ? `${group.host}: ${title}` : title,
        unit: unitOf(own[0].metric, own[0].kind),
        queries: own.map((one) => ({ host: group.host, source: group.source, metric: one.metric, under: entity ?? (inside(one) && under ? under : "") })) });
    };
    if (chosen) {
      const [host, source, metric] = JSON.parse(chosen);
      const group = catalogue.groups.find((one) => one.host === host && one.source === source);
      if (group) add(`${source}: ${metricWords(metric)}`, group, [metric]);
    } else {
      for (const [title, source, metrics, entity] of PANELS) {
        for (const group of catalogue.groups.filter((one) => one.source === source)) add(title, group, metrics, entity);
      }
      if (!made.length) for (const group of catalogue.groups) for (const one of group.metrics.slice(0, 3)) add(`${group.source}: ${metricWords(one.metric)}`, group, [one.metric]);
    }
    let count = 0;
    return made.filter((panel) => (count += panel.queries.length) <= QUERIES_MAX);
  }

  async function draw() {
    const number = ++asked, [from_s, to_s] = times(), shown = panels();
    heat?.update(catalogue, [from_s, to_s]);
    drawnAt = Date.now();
    drawPath();
    if (controls.whole) controls.whole.disabled = !zoom;
    note.textContent = `${moment(from_s)} to ${moment(to_s)} UTC${catalogue.clock === "virtual" ? ", the model's time" : ""}`;
    figures.setAttribute("aria-busy", "true");
    let found;
    try {
      const question = { from_s, to_s, steps: STEPS, queries: shown.flatMap((panel) => panel.queries) };
      found = await get(`/api/runs/${run}/series?q=${encodeURIComponent(JSON.stringify(question))}`);
    } catch (error) {
      if (number === asked) note.textContent = error.message;
      return;
    }
    if (number !== asked) return; // something else was asked for meanwhile
    const opens = new Set();
    let place = 0;
    const made = shown.map((panel) => {
      const lines = [], columns = [];
      for (const query of panel.queries) {
        for (const line of found.panels[place].lines) {
          if (line.opens) opens.add(line.entity);
          lines.push({ label: panel.queries.length > 1 ? `${line.entity} ${metricWords(query.metric).replace(/ latency mean$| ios$/, "")}` : line.entity });
          columns.push(connected(line.values));
        }
        place += 1;
      }
      return { panel, lines: lines.slice(0, 8), data: [found.t, ...columns.slice(0, 8)] };
    }).filter((one) => one.lines.length);
    drawCharts(made);
    drawPath([...opens].sort());
    figures.removeAttribute("aria-busy");
    if (!made.length) note.textContent += "; nothing was recorded then";
  }

  function drawCharts(made) {
    const isSame = charts.length === made.length && charts.every((chart, at) => chart.title === made[at].panel.title
      && chart.lines.map((line) => line.label).join() === made[at].lines.map((line) => line.label).join());
    if (isSame) {
      charts.forEach((chart, at) => { chart.zoomed = false; chart.update(made[at].data); });
      return;
    }
    charts.forEach((chart) => chart.close());
    charts = made.map(({ panel, lines, data }) => new Chart({ title: panel.title, lines, data, unit: panel.unit, onZoom: zoomTo }));
    figures.replaceChildren(...charts.map((chart) => chart.el));
  }

  function zoomTo(min, max) {
    zoom = min === null ? null : [Math.max(min, catalogue.from_s), Math.min(max, catalogue.to_s)];
    if (zoom && zoom[1] - zoom[0] < 1) zoom[1] = zoom[0] + 1;
    draw();
  }

  function drawPath(opens = []) {
    const steps = under ? under.split("/") : [];
    const crumbs = [["all", ""], ...steps.map((name, at) => [name, steps.slice(0, at + 1).join("/")])];
    const go = (to) => { under = to; announce(to ? `below ${to}` : "everything"); draw(); };
    if (!steps.length && !opens.length) { path.replaceChildren(); return; }
    path.replaceChildren(h("span", {}, "Within:"),
      ...crumbs.map(([name, to]) => h("button", { type: "button", "aria-pressed": String(to === under), onclick: () => go(to) }, name)),
      opens.length ? h("span", { class: "quiet" }, "open:") : "",
      ...opens.map((name) => h("button", { type: "button", onclick: () => go(name) }, name.split("/").at(-1))));
  }

  // More was recorded: what shows the end moves on.
  async function grown() {
    if (!catalogue || zoom || Date.now() - drawnAt < REFRESH_MS - 500) return;
    drawnAt = Date.now();
    try {
      catalogue = await get(`/api/runs/${run}/series`);
      if (!controls.childElementCount) drawControls();
      await draw();
    } catch (error) { note.textContent = error.message; }
  }

  return { el, grown, close: () => { heat?.close(); charts.forEach((chart) => chart.close()); } };
}
