// One target: its runs, the newest first.

import { get, h, reading, table } from "./dom.js";
import { limitsOf, stateBadge, targetTitle } from "./home.js";
import { duration, moment } from "./words.js";

const ROWS_MAX = 300;

export function targetPage(id) {
  const title = h("h1", {}, "…"), runs = h("div", {});
  const el = h("div", {}, title, runs);

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
    runs.replaceChildren(h("h2", {}, "Runs"), table(`${own.length} ${own.length === 1 ? "run" : "runs"}, the newest first`,
      ["Load", "Started, UTC", { title: "Took", class: "number" }, "State", "Limits", { title: "Found", class: "" }], own.slice(0, ROWS_MAX).map(line)));
  }
  const read = () => get("/api/runs").then(show, (error) => runs.replaceChildren(h("p", { class: "bad", role: "alert" }, error.message)));
  runs.replaceChildren(reading("the target", get("/api/runs"), (found) => { queueMicrotask(() => show(found)); return []; }));
  return { el, title: "Target", on_list: read };
}
