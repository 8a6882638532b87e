// The matrix of tiers and resources over time, moved by a slider, and what most likely causes what it shows.

import { get, h, reading, table } from "./dom.js";
import { duration, moment } from "./words.js";

const STATES = { hot: "▲ hot", warm: "△ warm", ok: "· ok", "no data": "no data", "too few samples": "too few samples" };

const MARKS = { hot: "▲", warm: "△", ok: "·" };

export function matrixView(run) {
  return reading("the bottlenecks", get(`/api/runs/${run}/matrix`), (found) => {
    const box = h("div", {});
    const at = h("output", { for: "when" });
    const slider = h("input", { type: "range", id: "when", class: "slider", min: 0, max: found.windows.length, value: 0, step: 1 });
    const draw = () => {
      const window = found.windows[slider.value - 1];
      const words = window ? `${moment(window.from_s)} to ${moment(window.to_s)} UTC` : "All of the time";
      at.textContent = words;
      slider.setAttribute("aria-valuetext", words);
      box.replaceChildren(cells(found, window?.cells ?? found.cells, words));
    };
    slider.addEventListener("input", draw);
    draw();
    const strip = overTime(found, (number) => { slider.value = number; draw(); });
    return [
      h("p", {}, h("strong", {}, `${found.verdict.state[0].toUpperCase()}${found.verdict.state.slice(1)}: `), found.verdict.what),
      h("p", { class: "quiet" }, `When: ${found.verdict.since}`),
      h("div", { class: "bar" }, h("label", { for: "when" }, "When"), slider, at),
      strip,
      box,
      h("h2", {}, "What most likely causes it"),
      ...found.causes.map((one) => cause(one)),
      found.verdict.not_judged.length ? h("p", { class: "quiet" }, `Not judged: ${found.verdict.not_judged.join("; ")}.`) : null,
      found.not_looked_for.length ? h("p", { class: "quiet" }, `Not looked for, since nothing was recorded of it: ${found.not_looked_for.map((one) => one.cause).join(", ")}.`) : null,
      ...found.notices.map((text) => h("p", { class: "warn" }, text)),
    ].filter(Boolean);
  });
}

// Every tier and resource that was judged, step by step: where it got hot, and for how long.
function overTime(found, choose) {
  const rows = new Map();
  found.windows.forEach((window, place) => {
    for (const cell of window.cells) {
      if (!MARKS[cell.state]) continue;
      const name = [cell.tier, cell.host, cell.resource].filter(Boolean).join(" ");
      rows.set(name, (rows.get(name) ?? new Array(found.windows.length).fill(null)).with(place, cell));
    }
  });
  if (!rows.size || found.windows.length < 2) return null;
  const clock = (seconds) => moment(seconds).slice(11, 16);
  const cell = (one, place) => {
    const window = found.windows[place], words = one ? `${clock(window.from_s)} to ${clock(window.to_s)}: ${one.state}, ${one.words}` : `${clock(window.from_s)}: no data`;
    return h("td", { class: one ? `state-${one.state}` : "", title: words, onclick: () => choose(place + 1) }, one ? MARKS[one.state] : "", h("span", { class: "hidden" }, words));
  };
  const legend = h("p", { class: "quiet" }, "Over time: ▲ hot, △ warm, · ok, empty without data. A step that is clicked is shown beneath.");
  return h("div", {}, legend, h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Diagnosis over time" }, h("table", { class: "matrix strip" },
    h("caption", { class: "hidden" }, "Tiers and resources over time"),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "UTC"), found.windows.map((window, place) => h("th", { scope: "col" }, place % 4 ? h("span", { class: "hidden" }, clock(window.from_s)) : clock(window.from_s))))),
    h("tbody", {}, [...rows].map(([name, own]) => h("tr", {}, h("th", { scope: "row" }, name), own.map(cell)))))));
}

function cells(found, shown, words) {
  const rows = new Map();
  for (const cell of shown) {
    const key = `${cell.tier} ${cell.host}`.trim();
    rows.set(key, { ...(rows.get(key) ?? {}), [cell.resource]: cell });
  }
  return table(`Tiers by resources, ${words}: the measure of each cell that is nearest to its threshold.`, ["Tier", ...found.resources],
    [...rows].map(([name, own]) => [name, ...found.resources.map((resource) => {
      const cell = own[resource];
      if (!cell || cell.state === "no data") return { class: "quiet", text: "no data" };
      const long = cell.minutes && cell.state !== "ok" ? `; ${duration(cell.minutes * 60)} beyond its threshold` : "";
      return { class: `state-${cell.state}`, text: `${STATES[cell.state] ?? cell.state}: ${cell.words}${long}` };
    })]), "matrix stacked");
}

function cause(one) {
  const when = one.from_utc_ns ? `, ${moment(one.from_utc_ns / 1e9)} to ${moment(one.to_utc_ns / 1e9)} UTC` : "";
  return h("section", { class: "card" },
    h("h3", {}, one.resource === null || !one.confidence ? `${one.title}${when ? ` (${when.slice(2)})` : ""}` : `${one.title} (confidence ${Math.round(one.confidence * 100)} %${when})`),
    one.recurs && one.recurs.count > 1 ? h("p", {}, `It comes back: ${one.recurs.words}.`) : null,
    h("ul", {}, one.evidence.map((item) => h("li", {}, item.text))),
    one.against.length ? h("p", { class: "quiet" }, `Against it: ${one.against.join("; ")}`) : null,
    one.confirm ? h("p", { class: "quiet" }, `It would be confirmed by: ${one.confirm}`) : null,
    h("p", {}, h("strong", {}, "What to do next: "), one.advice));
}
