// One target: each of its loads over time, where levels changed, and its runs, the newest first.

import { get, h, table } from "./dom.js";
import { limitsOf, stateBadge, targetTitle } from "./home.js";
import { eventsTable, histories, historyOf, levelWords, trendChart } from "./trend.js";
import { duration, moment } from "./words.js";

const ROWS_MAX = 300;

export function targetPage(id, wanted) {
  let charts = [], chosen = Number(wanted) || 0, shown = null;
  const title = h("h1", {}, "…"), runs = h("div", {}), past = h("div", { "aria-live": "polite" });
  const el = h("div", {}, title, past, runs);

  async function showPast(rows, own) {
    if (own.length < 2) { past.replaceChildren(h("p", { class: "quiet" }, "One run has no history yet; measure the same load again.")); return; }
    if (!shown) past.replaceChildren(h("p", { class: "quiet" }, "Reading what it did over time…"));
    try {
      shown = historyOf(await histories(rows), own)?.history ?? null;
      drawPast(own);
    } catch (error) {
      past.replaceChildren(h("p", { class: "bad", role: "alert" }, error.message));
    }
  }

  function drawPast(own) {
    charts.forEach((chart) => chart.close());
    charts = [];
    if (!shown?.loads.length) { past.replaceChildren(h("p", { class: "quiet" }, "No load of it was measured twice in the same way.")); return; }
    chosen = Math.min(chosen, shown.loads.length - 1);
    const load = shown.loads[chosen];
    const select = h("select", { id: "load", onchange: () => { location.hash = `#/target/${id}/${select.value}`; } },
      shown.loads.map((one, place) => h("option", { value: place }, `${one.workload}, ${one.load} (${one.runs} runs)`)));
    select.value = chosen;
    charts = load.trends.map(trendChart);
    const byRun = new Map(own.map((row) => [row.run_id, row.id]));
    const link = (run, text) => (byRun.has(run) ? h("a", { href: `#/run/${byRun.get(run)}` }, text) : h("span", {}, text));
    past.replaceChildren(eventsTable(shown, link), h("h2", {}, "Over time"),
      h("div", { class: "bar no-print" }, h("label", { for: "load" }, "Load"), select),
      h("h3", {}, `${load.workload}, ${load.load}`),
      h("ul", {}, load.trends.map((trend) => h("li", {}, `${levelWords(trend)}; ${trend.values.length} runs, ${trend.changes.length || "no"} ${trend.changes.length === 1 ? "change" : "changes"}`
        + (trend.runs_to_find ? `; ${trend.runs_to_find} more runs until a change can be found` : "")))),
      h("div", { class: "grid" }, charts.map((chart) => chart.el)));
  }

  function line(row) {
    const limits = limitsOf(row);
    return [{ class: "name", node: h("div", {}, h("a", { href: `#/run/${row.id}` }, row.load || row.title), h("div", { class: "quiet small" }, row.name)) },
      moment(row.started_s), { class: "number", text: row.started_s && row.ended_s ? duration(row.ended_s - row.started_s) : "-" },
      { node: stateBadge(row) }, limits ?? { text: "-" }, { class: "name", text: row.headline }];
  }

  function show(found) {
    const own = found.runs.filter((row) => row.target_id === id);
    if (!own.length) {
      title.textContent = "No such target";
      runs.replaceChildren(h("p", {}, "None of its runs is there any more. ", h("a", { href: "#/" }, "All targets")));
      return;
    }
    title.textContent = targetTitle(own[0]);
    document.title = `${title.textContent} - Assay`;
    showPast(found.runs, own);
    runs.replaceChildren(h("h2", {}, "Runs"), table(`${own.length} ${own.length === 1 ? "run" : "runs"}, the newest first`,
      ["Load", "Started, UTC", { title: "Took", class: "number" }, "State", "Limits", { title: "Found", class: "" }], own.slice(0, ROWS_MAX).map(line)));
  }
  const read = () => get("/api/runs").then(show, (error) => runs.replaceChildren(h("p", { class: "bad", role: "alert" }, error.message)));
  runs.replaceChildren(h("p", { class: "quiet" }, "Reading the target…"));
  read();
  return { el, title: "Target", on_list: read, close: () => charts.forEach((chart) => chart.close()) };
}
