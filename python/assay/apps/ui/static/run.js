// One run or recording: what goes on, what came of it, over time, what limits it, and what to do next.

import { Chart } from "./chart.js";
import { announce, get, h, reading, table } from "./dom.js";
import { liveView } from "./live.js";
import { matrixView } from "./matrix.js";
import { singleView } from "./single.js";
import { timeline } from "./timeline.js";
import { duration, moment, reportWords, standing, value } from "./words.js";

const PAGE_ROWS = 100;
const TOGETHER_MS = 300; // changes of several files are read once
const TABS = [["", "Results"], ["points", "Points"], ["time", "Over time"], ["bottlenecks", "Bottlenecks"], ["findings", "Findings"]];

export function runPage(run, wanted) {
  let row = null, view = null, part = null, isGone = false, at = wanted;
  const live = liveView();
  const title = h("h1", {}, "…");
  const load = h("p", { class: "strong" });
  const facts = h("p", { class: "quiet small" });
  const links = h("div", { class: "bar no-print" });
  const tabs = h("nav", { class: "bar tabs", "aria-label": "Parts of this run" });
  const box = h("div", {}, h("p", { class: "quiet" }, "Reading the run…"));
  const alert = h("p", { class: "bad", role: "alert", hidden: true });
  const el = h("div", {}, title, load, facts, alert, links, live.el, tabs, box);

  async function read() {
    try {
      const found = await get(`/api/runs/${run}/live`);
      row = found.row;
      if (found.live && row.live) live.update(found.live);
      else if (!row.live) live.end();
      head();
    } catch (error) { gone(error.message); }
  }

  async function readView() {
    try {
      view = await get(`/api/runs/${run}/view`);
      part?.show?.(view);
    } catch (error) { part?.fail?.(error.message); }
  }

  function head() {
    title.textContent = row.named || row.target || row.title || row.name;
    load.textContent = row.target ? [row.named ? row.target : "", row.load].filter(Boolean).join(": ") : "";
    document.title = `${[title.textContent, load.textContent].filter(Boolean).join(": ")} - Assay`;
    const took = row.ended_s && row.started_s ? `took ${duration(row.ended_s - row.started_s)}` : "";
    const state = row.live ? (row.is_recording ? "recording" : "going on") : row.status;
    facts.textContent = [row.is_recording ? "recording" : `assay ${row.verb}`, row.name, row.started_s ? `${moment(row.started_s)} UTC` : "", took, state, row.error].filter(Boolean).join(" · ");
    const link = (href, text) => h("a", { href, target: "_blank", rel: "noopener" }, text);
    links.replaceChildren(...row.reports.map((name) => link(`/runs/${run}/${name}`, reportWords(name))),
      link(`/runs/${run}/now.html`, "Report as it stands"), ...(row.is_recording ? [] : [link(`/runs/${run}/points.csv`, "Points as CSV")]));
    const shown = row.is_recording ? TABS.slice(2) : TABS;
    if (row.is_recording && !["time", "bottlenecks", "findings"].includes(at)) { at = "time"; open(); }
    tabs.replaceChildren(...shown.map(([name, words]) => h("a", { href: `#/run/${run}${name ? `/${name}` : ""}`, "aria-current": name === at ? "page" : null }, words)));
  }

  function open() {
    part?.close?.();
    if (at === "points") part = pointsPart();
    else if (at === "time") part = timeline(run, { isRecording: row?.is_recording ?? false });
    else if (at === "bottlenecks") part = { el: matrixView(run) };
    else if (at === "findings") part = { el: findingsView(run) };
    else part = resultsPart(run, () => Boolean(row?.live));
    box.replaceChildren(part.el);
    if (view) part.show?.(view);
  }

  function gone(why) {
    isGone = true;
    live.end();
    alert.hidden = false;
    alert.textContent = why;
    if (!row) { title.textContent = "No such run"; box.replaceChildren(h("p", {}, h("a", { href: "#/" }, "All runs and recordings"))); }
    announce(why);
  }

  read().then(() => {
    if (isGone) return;
    open();
    if (!row.is_recording) readView();
  });
  let waiting = null;
  return {
    el, title: "Run",
    tab(name) {
      at = name;
      if (row) { head(); open(); }
    },
    on_live(told) {
      live.update(told);
      if (row && !row.live) read();
      if (view && told.points?.length && merge(view, told.points)) part?.show?.(view);
    },
    on_run(news) {
      // Points come with what the run says itself; without it, the files are read again, and seldom.
      if (news.points && row?.live) part?.grown?.();
      else if (!waiting) waiting = setTimeout(() => { waiting = null; read(); readView(); }, TOGETHER_MS);
    },
    on_recorded() { part?.grown?.(); },
    on_over() { announce("The run has ended."); read(); readView(); },
    on_gone() { gone("This run is not there any more: its folder was moved or removed."); },
    reconnected() { if (row && !isGone) read(); },
    close() {
      clearTimeout(waiting);
      live.close();
      part?.close?.();
    },
  };
}

// Points that the run tells of and the view lacks.
function merge(view, rows) {
  const known = new Set(view.points.map((one) => one.id));
  const news = rows.filter((one) => !known.has(one.id));
  for (const one of news) {
    view.figures[one.kind] ??= one.figures.map(({ name, title, unit }) => ({ name, title, unit }));
    view.points.push({ ...one, figures: Object.fromEntries(one.figures.map((figure) => [figure.name, figure.value])) });
  }
  return news.length > 0;
}

function resultsPart(run, isLive) {
  let charts = [], chosen = null, shown = "", single = null;
  const lead = h("section", { class: "lead", "aria-label": "The answer" });
  const before = h("div", {});
  againstLastTime(run, before);
  const curves = h("div", { class: "grid" });
  const which = h("div", { class: "bar no-print" });
  const rest = h("div", {}, h("p", { class: "quiet" }, "Reading the points…"));
  const el = h("div", {}, lead, before, which, curves, rest);

  function show(view) {
    lead.replaceChildren(...(isLive() ? [h("p", { class: "quiet" }, "The answer comes when the run ends.")] : (view.lead ?? []).map(block)));
    single?.close();
    single = null;
    if (view.points.length === 1 && view.single) {
      single = singleView(view);
      which.replaceChildren();
      curves.replaceChildren(single.el);
      curves.className = "";
      charts.forEach((chart) => chart.close());
      charts = [];
      shown = "";
      rest.replaceChildren(...tables(view));
      return;
    }
    curves.className = "grid";
    const groups = new Map();
    for (const point of view.points) {
      const key = `${point.part}: ${point.name}`;
      groups.set(key, [...(groups.get(key) ?? []), point]);
    }
    const keys = [...groups.keys()].sort((a, b) => groups.get(b).length - groups.get(a).length);
    if (!groups.has(chosen)) chosen = keys[0] ?? null;
    const select = h("select", { id: "curve", onchange: () => { chosen = select.value; show(view); } }, keys.map((key) => h("option", { value: key }, `${key} (${groups.get(key).length})`)));
    select.value = chosen;
    which.replaceChildren(...(keys.length > 1 ? [h("label", { for: "curve" }, "Points of"), select] : []));
    if (groups.get(chosen)?.length === 1) drawOne(view, groups.get(chosen)[0]);
    else drawCurves(view, groups.get(chosen) ?? []);
    rest.replaceChildren(...tables(view));
  }

  // One point is figures, and no curve.
  function drawOne(view, point) {
    charts.forEach((chart) => chart.close());
    charts = [];
    shown = "";
    curves.className = "";
    curves.replaceChildren(h("h2", {}, [point.name, point.load].filter(Boolean).join(", ")), h("div", { class: "cards" }, (view.figures[point.kind] ?? [])
      .filter((figure) => Number.isFinite(point.figures[figure.name]))
      .map((figure) => h("div", { class: "card" }, h("div", { class: "quiet" }, figure.title), h("div", { class: "value" }, value(point.figures[figure.name], figure.unit))))));
  }

  function drawCurves(view, points) {
    const figures = (view.figures[points[0]?.kind] ?? []).filter((one) => !one.name.includes("p99"));
    const isGrid = new Set(points.map((one) => one.size)).size > 1;
    const sorted = [...points].sort((a, b) => (isGrid ? a.size - b.size : 0));
    const xs = sorted.map((one, place) => (isGrid ? one.size : place + 1));
    const latencies = figures.filter((one) => one.unit === "ns"), others = figures.filter((one) => one.unit !== "ns").slice(0, 2);
    const xTitle = isGrid ? points[0].axis ?? "load" : "point";
    const plans = others.map((figure) => ({ title: `${figure.title[0].toUpperCase()}${figure.title.slice(1)} by ${xTitle}`, unit: figure.unit,
      lines: [{ label: figure.title, spanGaps: true }, { label: "misses a limit", dots: true }],
      data: [xs, sorted.map((one) => one.figures[figure.name] ?? null), sorted.map((one) => (one.met === false ? one.figures[figure.name] ?? null : null))] }));
    if (latencies.length) plans.push({ title: `Latency by ${xTitle}`, unit: "ns", lines: latencies.map((one) => ({ label: one.title, spanGaps: true })),
      data: [xs, ...latencies.map((figure) => sorted.map((one) => one.figures[figure.name] ?? null))] });
    const key = plans.map((one) => one.title + one.lines.map((line) => line.label)).join();
    if (key === shown) { charts.forEach((chart, place) => chart.update(plans[place].data)); return; }
    shown = key;
    charts.forEach((chart) => chart.close());
    charts = plans.map((one) => new Chart({ ...one, time: false, xTitle }));
    curves.replaceChildren(...charts.map((one) => one.el));
  }

  function tables(view) {
    const made = [];
    if (!view.points.length) made.push(h("p", {}, "No point has been measured yet."));
    if (view.answers.length) made.push(h("h2", {}, "What it holds"), table("Most within the limits, as searches found it", ["Workload", "Most", "Limited by"],
      view.answers.map((one) => [one.name, one.text, one.limited_by])));
    if (view.verdict.length) made.push(h("h2", {}, "Verdict"), table("What was asked, and how it stands", ["Asked", "Limit", "Verdict", "Meaning"],
      view.verdict.map((one) => [one.question, one.limit ?? "-", standing(one.standing), one.meaning])));
    if (view.notices.length) made.push(h("h2", {}, "Notices"), h("ul", {}, view.notices.map((text) => h("li", {}, text))));
    return made;
  }
  return { el, show, fail: (why) => rest.replaceChildren(h("p", { class: "bad", role: "alert" }, why)), close: () => { charts.forEach((one) => one.close()); single?.close(); } };
}

// What became of it since the run before of the same target and load.
function againstLastTime(run, box) {
  get("/api/runs").then(({ runs }) => {
    const own = runs.find((row) => row.id === run);
    const last = own && runs.find((row) => row.id !== run && row.target_id === own.target_id && row.load === own.load && row.verb === own.verb && row.started_s < own.started_s && !row.error);
    if (!last) return;
    box.replaceChildren(reading("the run before", get(`/api/compare?a=${last.id}&b=${run}`), (found) => h("p", {},
      h("strong", {}, "Against last time: "), found.sentence, " ", h("a", { href: `#/compare/${last.id}/${run}` }, `${moment(last.started_s)} UTC`))));
  }, () => {});
}

function pointsPart() {
  let view = null, first = 0, wanted = "", missedOnly = false;
  const box = h("div", {}, h("p", { class: "quiet" }, "Reading the points…"));
  const count = h("span", { class: "quiet", role: "status" });
  const filter = h("input", { type: "search", id: "points-filter", oninput: () => { wanted = filter.value.toLowerCase(); first = 0; draw(); } });
  const missed = h("input", { type: "checkbox", id: "missed", onchange: () => { missedOnly = missed.checked; first = 0; draw(); } });
  const back = h("button", { type: "button", onclick: () => { first = Math.max(first - PAGE_ROWS, 0); draw(); } }, "Newer");
  const on = h("button", { type: "button", onclick: () => { first += PAGE_ROWS; draw(); } }, "Older");
  const el = h("div", {}, h("div", { class: "bar no-print" }, h("label", { for: "points-filter" }, "Filter"), filter, missed, h("label", { for: "missed" }, "missed limits only"), back, on, count), box);

  function draw() {
    const found = view.points.filter((one) => (!missedOnly || one.met === false)
      && (!wanted || `${one.id} ${one.part} ${one.name} ${one.load} ${one.ended_by}`.toLowerCase().includes(wanted))).reverse();
    const shown = found.slice(first, first + PAGE_ROWS);
    back.disabled = first === 0;
    on.disabled = first + PAGE_ROWS >= found.length;
    count.textContent = found.length ? `${first + 1} to ${first + shown.length} of ${found.length}` : "none";
    const titles = new Map();
    for (const one of shown) for (const figure of view.figures[one.kind] ?? []) titles.set(figure.name, figure);
    const columns = [...titles.values()].slice(0, 8);
    box.replaceChildren(table("Points, the newest first", ["Point", "Part", "Workload", "Load", ...columns.map((one) => ({ title: one.title, class: "number" })), "Limits", "Ended by", { title: "Errors", class: "number" }],
      shown.map((one) => [one.id, one.part, { class: "name", text: one.name }, one.load, ...columns.map((figure) => ({ class: "number", text: value(one.figures[figure.name], figure.unit) })),
        standing(one.standing, one.standing === "missed" ? one.missed.join(", ") : one.standing),
        one.ended_by, { class: one.errors ? "number bad" : "number", text: one.errors }])));
  }
  return { el, show(found) { view = found; draw(); }, fail: (why) => box.replaceChildren(h("p", { class: "bad", role: "alert" }, why)) };
}

function findingsView(run) {
  return reading("the findings", get(`/api/runs/${run}/findings`), (found) => [
    h("p", { class: "quiet" }, found.facts),
    ...found.sections.flatMap((section) => [h("h2", {}, section.title), ...section.blocks.map(block)]),
  ]);
}

function block(one) {
  if (one.kind === "paragraph") return h("p", { class: `${one.strong ? "strong" : ""} ${one.tone}` }, one.text);
  if (one.kind === "heading") return h("h3", {}, one.text);
  if (one.kind === "notices") return h("ul", {}, one.items.map((item) => h("li", { class: item.tone }, item.text)));
  return table(one.caption, one.columns, one.rows.map((row) => row.map((cell) => ({ text: cell.text, class: cell.tone }))));
}
