// What one wants to know in the morning: each target and each recording as a card.

import { get, h } from "./dom.js";
import { histories, historyOf, trendSummary } from "./trend.js";
import { ago, duration, standing } from "./words.js";

const CARDS_MAX = 200;

// Targets of runs, the one that was measured last first; a recording is one of its own.
export function targetsOf(rows) {
  const found = new Map();
  for (const row of rows) found.set(row.target_id, [...(found.get(row.target_id) ?? []), row]);
  return [...found.entries()].map(([id, own]) => ({ id, rows: own, newest: own[0] }));
}

export const targetTitle = (row) => row.target || row.title || row.name;

export function stateBadge(row) {
  if (row.error) return h("span", { class: "badge bad" }, row.status || "failed");
  if (row.live) return h("span", { class: "badge good" }, row.is_recording ? "● recording" : "● going on");
  if (row.status === "running") return h("span", { class: "badge warn" }, "ended without a word");
  return h("span", { class: "badge quiet" }, row.status || "done");
}

export function limitsOf(row) {
  const asked = row.met + row.missed + row.unknown;
  if (!asked) return null;
  const worst = ["missed", "unknown"].find((word) => row[word]) ?? "met";
  return standing(worst, `${row[worst]} of ${asked} ${asked === 1 ? "limit" : "limits"} ${worst}`);
}

export function emptyPage(folders) {
  const where = folders.map((one) => h("li", {}, h("code", {}, one)));
  return h("section", { "aria-label": "Nothing was measured yet" }, h("h2", {}, "Nothing was measured yet"),
    h("p", {}, "This page waits. A run appears here as soon as it begins in:"), h("ul", {}, where),
    h("p", {}, "Measure storage:"), h("pre", {}, `assay assess ./assay-data -o ${folders[0] ?? "assay-results"}`),
    h("p", {}, "Without a disk of your own, a modelled array:"), h("pre", {}, `assay profile model:ps6100xv -o ${folders[0] ?? "assay-results"}`),
    h("p", {}, "Record what a host does all day:"), h("pre", {}, `assay record ${folders[0] ?? "assay-results"}/recording`));
}

function card({ id, rows, newest }) {
  const limits = limitsOf(newest), title = targetTitle(newest);
  const href = newest.is_recording ? `#/run/${newest.id}` : `#/target/${id}`;
  const findings = [newest.missed ? `${newest.missed} missed` : "", newest.unknown ? `${newest.unknown} unknown` : "",
    newest.notices ? `${newest.notices} ${newest.notices === 1 ? "notice" : "notices"}` : ""].filter(Boolean).join(", ");
  const took = newest.started_s && newest.ended_s ? `, took ${duration(newest.ended_s - newest.started_s)}` : "";
  return h("article", { class: "card target", "aria-labelledby": `target-${id}` },
    h("h2", { id: `target-${id}` }, h("a", { href }, title), " ", stateBadge(newest)),
    h("p", {}, [newest.named, newest.load || newest.verb].filter(Boolean).join(": ")),
    h("p", { class: "quiet" }, `${newest.is_recording ? "since" : "last measured"} ${ago(newest.started_s)}${newest.live ? "" : took}; ${rows.length} ${rows.length === 1 ? (newest.is_recording ? "recording" : "run") : "runs"}`),
    newest.error ? h("p", { class: "bad" }, newest.error) : null,
    limits ? h("p", { class: limits.class }, limits.text) : null,
    h("div", { class: "over-time", "data-target": id }, rows.length > 1 && !newest.is_recording ? h("p", { class: "quiet small" }, "Its history is being worked out…") : null),
    newest.headline ? h("p", { class: "headline" }, newest.headline) : null,
    h("p", {}, findings ? [h("span", {}, "Open: "), h("a", { href: `#/run/${newest.id}/findings` }, findings)] : h("span", { class: "quiet" }, newest.is_recording ? "not judged; Bottlenecks says what limited it" : newest.live ? "not judged while it goes on" : "no open finding")),
    h("p", { class: "quiet small" }, `${newest.name} in ${newest.folder}`));
}

// A contract that lies in a recording: minutes in breach this month, and those that it still allows.
function contractMonth(told) {
  const title = `${told.title || "Contract"}, this month`;
  if (told.why) return [h("p", { class: "warn" }, `${title}: unknown: ${told.why}`)];
  return [h("p", {}, `${title}:`), h("ul", { class: "small" }, told.clauses.map((one) => h("li", { class: one.tone, title: one.promise }, one.sentence)))];
}

export function homePage() {
  const box = h("div", { "aria-busy": "true" }, h("p", { class: "quiet" }, "Reading the targets…"));
  const count = h("p", { class: "quiet", role: "status" });
  const el = h("div", {}, h("h1", {}, "Targets and recordings"), count, box);
  async function read() {
    try {
      const { runs, folders } = await get("/api/runs");
      const targets = targetsOf(runs), shown = targets.slice(0, CARDS_MAX);
      const live = runs.filter((row) => row.live).length;
      count.textContent = targets.length ? `${targets.length} ${targets.length === 1 ? "target" : "targets"}, ${runs.length} ${runs.length === 1 ? "run" : "runs"}, ${live} going on`
        + (shown.length < targets.length ? `; the ${shown.length} measured last are shown` : "") : "";
      const overTime = runs.length > 1 ? histories(runs) : null;
      box.replaceChildren(targets.length ? h("div", { class: "targets" }, shown.map(card)) : emptyPage(folders));
      if (overTime) drawTrends(overTime, shown);
      drawContracts(shown);
    } catch (error) {
      box.replaceChildren(h("p", { class: "bad", role: "alert" }, error.message));
    }
    box.removeAttribute("aria-busy");
  }

  // The cards are there at once; what targets did over time follows.
  async function drawTrends(found, targets) {
    let told = null;
    try { told = await found; } catch { /* the cards stand without it */ }
    for (const { id, rows } of targets) {
      const place = box.querySelector(`[data-target="${id}"]`), own = told && historyOf(told, rows);
      place?.replaceChildren();
      if (place && own) place.replaceChildren(...trendSummary(own.history));
    }
  }

  async function drawContracts(targets) {
    for (const { id, newest } of targets.filter((one) => one.newest.is_recording)) {
      const place = box.querySelector(`[data-target="${id}"]`);
      let told = null;
      try { told = await get(`/api/runs/${newest.id}/contract`); } catch (error) { told = { title: "contract", clauses: [], why: error.message }; }
      if (place && told) place.replaceChildren(...contractMonth(told));
    }
  }
  read();
  return { el, title: "Targets and recordings", on_list: read };
}
