// All runs and recordings: filtered, sorted, two to eight of them chosen to be compared.

import { announce, get, h, table } from "./dom.js";
import { duration, moment, reportWords, standing } from "./words.js";

const ROWS_MAX = 300;
const CHOSEN_MAX = 8;

export function listPage() {
  let rows = [];
  let wanted = sessionStorage.getItem("filter") ?? "";
  const chosen = new Set();
  const box = h("div", { "aria-busy": "true" }, h("p", { class: "quiet" }, "Reading the list…"));
  const compare = h("button", { type: "button", disabled: true, onclick: () => {
    // The oldest is what the newer ones are compared with.
    const ids = rows.filter((row) => chosen.has(row.id)).map((row) => row.id).reverse();
    location.hash = ids.length === 2 ? `#/compare/${ids[0]}/${ids[1]}` : `#/many/${ids.join("+")}`;
  } }, "Compare");
  const filter = h("input", { type: "search", id: "filter", value: wanted, oninput: () => {
    wanted = filter.value;
    sessionStorage.setItem("filter", wanted);
    draw();
  } });
  const count = h("span", { class: "quiet", role: "status" });
  const el = h("div", {}, h("h1", {}, "Runs and recordings"),
    h("div", { class: "bar no-print" }, h("label", { for: "filter" }, "Filter"), filter, compare, count), box);

  const matches = (row) => {
    const text = [row.name, row.folder, row.verb, row.title, row.status, row.headline, ...row.kinds, row.live ? "live" : ""].join(" ").toLowerCase();
    return wanted.toLowerCase().split(/\s+/).every((word) => text.includes(word));
  };

  function choose(row, input) {
    if (input.checked) chosen.add(row.id);
    else chosen.delete(row.id);
    if (chosen.size > CHOSEN_MAX) {
      const first = [...chosen][0];
      chosen.delete(first);
      const other = document.getElementById(`choose-${first}`);
      if (other) other.checked = false;
    }
    compare.disabled = chosen.size < 2;
    announce(`${chosen.size} chosen, at most ${CHOSEN_MAX}`);
  }

  function line(row) {
    const input = h("input", { type: "checkbox", id: `choose-${row.id}`, "aria-label": `choose ${row.name} to compare`, checked: chosen.has(row.id) });
    input.addEventListener("change", () => choose(row, input));
    const state = row.error ? { class: "bad", text: `${row.status}: ${row.error}` }
      : row.live ? { class: "good", node: h("span", { class: "badge" }, row.is_recording ? "● recording" : "● going on") }
      : row.status === "running" ? { class: "warn", text: "ended without a word" } : row.status;
    const asked = row.met + row.missed + row.unknown, worst = ["missed", "unknown"].find((word) => row[word]) ?? (asked ? "met" : "");
    const limits = standing(worst, asked ? `${row[worst]} of ${asked} ${worst}` : "");
    const links = row.reports.map((name) => h("a", { href: `/runs/${row.id}/${name}`, target: "_blank", rel: "noopener" }, reportWords(name)));
    const more = [row.is_recording ? "recording" : row.verb, ...row.kinds].filter(Boolean).join(", ");
    return [input, { class: "name", node: h("div", {}, h("a", { href: `#/run/${row.id}` }, row.title || row.name),
      h("div", { class: "quiet small" }, row.title ? `${row.name} · ${more}` : more)) },
      { text: moment(row.started_s), class: "" },
      { class: "number", text: row.started_s && row.ended_s ? duration(row.ended_s - row.started_s) : "-" }, state, limits,
      { class: "name", text: row.headline }, h("span", { class: "bar" }, links)];
  }

  function draw() {
    const found = rows.filter(matches);
    const shown = found.slice(0, ROWS_MAX);
    count.textContent = `${found.length} of ${rows.length}` + (shown.length < found.length ? `, the newest ${shown.length} shown` : "");
    const columns = ["Compare", "Run", { title: "Started, UTC", class: "" }, { title: "Took", class: "number" }, "State", "Limits",
      { title: "Found", class: "" }, "Reports"];
    box.replaceChildren(found.length ? table("Newest first", columns, shown.map(line)) : h("p", {}, "No run matches the filter."));
    box.removeAttribute("aria-busy");
  }

  async function read() {
    try {
      rows = (await get("/api/runs")).runs;
      draw();
    } catch (error) {
      box.replaceChildren(h("p", { class: "bad", role: "alert" }, error.message));
    }
  }
  read();
  return { el, title: "Runs and recordings", on_list: read };
}
