// A heat map of latency: time to the right, how long I/Os took upwards, stronger in colour where there were more of them.

import { drawings } from "./chart.js";
import { announce, csv, get, h, save, table } from "./dom.js";
import { moment, value } from "./words.js";

const SERIES = /^(read|write|flush)_(device|queue)_bucket\d\d_count$/;
const STEPS = 160;
const HEIGHT = 260;
const [LEFT, BOTTOM, TOP] = [64, 22, 8];
const PERCENTILES = [["p50", "p50", []], ["p99", "p99", [6, 4]], ["p99_9", "p99.9", [2, 3]]];

// Which devices have histograms: [{host, entity, direction, side}].
export function heatSources(catalogue) {
  const found = new Map();
  for (const group of catalogue?.groups ?? []) {
    for (const one of group.metrics) {
      const match = SERIES.exec(one.metric);
      if (match) for (const entity of one.entities) found.set([group.host, entity, match[1], match[2]].join(" "), { host: group.host, entity, direction: match[1], side: match[2] });
    }
  }
  const order = ["read", "write", "flush"];
  return [...found.values()].sort((a, b) => a.host.localeCompare(b.host) || a.entity.localeCompare(b.entity) || a.side.localeCompare(b.side) || order.indexOf(a.direction) - order.indexOf(b.direction));
}

const words = (one, hosts) => `${hosts > 1 ? `${one.host}: ` : ""}${one.entity}, ${one.direction}s, ${one.side === "device" ? "in the device" : "in the queue above it"}`;
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function heatMap(run) {
  let sources = [], chosen = 0, shown = null, at = null, asked = 0;
  const canvas = h("canvas", { class: "heat", tabindex: 0, role: "img", "aria-label": "Latency over time" });
  const told = h("p", { class: "quiet" });
  const which = h("select", { id: "heat", onchange: () => { chosen = Number(which.value); draw(); } });
  const tableBox = h("div", { hidden: true });
  const tableButton = h("button", { type: "button", "aria-pressed": "false", onclick: () => {
    tableBox.hidden = !tableBox.hidden;
    canvas.hidden = !tableBox.hidden;
    tableButton.setAttribute("aria-pressed", String(!tableBox.hidden));
    if (!tableBox.hidden) fillTable();
  } }, "Table");
  const el = h("figure", { hidden: true, class: "wide", "aria-label": "Latency: I/Os by time and by how long they took" },
    h("figcaption", {}, h("span", { class: "title" }, "Latency: I/Os by time and by how long they took"), h("label", { for: "heat" }, "of"), which, tableButton,
      h("button", { type: "button", onclick: () => canvas.toBlob((blob) => save("latency.png", blob, "image/png"), "image/png") }, "PNG"),
      h("button", { type: "button", onclick: () => save("latency.csv", csv(rows()), "text/csv") }, "CSV")),
    canvas, h("p", { class: "quiet small" }, "Stronger colour: more I/Os, by their logarithm. Lines: p50 whole, p99 dashed, p99.9 dotted."), tableBox, told);
  let span = [0, 0];

  function update(catalogue, times) {
    const found = heatSources(catalogue), hosts = new Set(found.map((one) => one.host)).size;
    const before = sources[chosen];
    sources = found;
    span = times;
    el.hidden = !found.length;
    if (!found.length) return;
    const same = before ? found.findIndex((one) => words(one, 2) === words(before, 2)) : 0;
    chosen = Math.max(same, 0);
    which.replaceChildren(...found.map((one, place) => h("option", { value: place }, words(one, hosts))));
    which.value = chosen;
    draw();
  }

  async function draw() {
    const number = ++asked, one = sources[chosen];
    canvas.setAttribute("aria-busy", "true");
    try {
      const found = await get(`/api/runs/${run}/heat?q=${encodeURIComponent(JSON.stringify({ ...one, from_s: span[0], to_s: span[1], steps: STEPS }))}`);
      if (number !== asked) return;
      shown = found;
      at = null;
      paint();
      told.textContent = summary();
      canvas.setAttribute("aria-label", `Heat map of latency, ${words(one, 1)}. ${summary()} Arrow keys read it step by step.`);
      if (!tableBox.hidden) fillTable();
    } catch (error) { if (number === asked) told.textContent = error.message; }
    if (number === asked) canvas.removeAttribute("aria-busy");
  }

  function summary() {
    const known = shown.p99.map((one, place) => [one, place]).filter(([one]) => one !== null);
    if (!known.length) return "No I/O was timed then.";
    const [worst, place] = known.reduce((most, one) => (one[0] > most[0] ? one : most));
    const times = known.map(([one]) => one).sort((a, b) => a - b);
    return `p99 of a step: in the middle ${value(times[Math.floor(times.length / 2)], "ns")}, at most ${value(worst, "ns")} at ${moment(shown.t[place] - shown.step_s)} UTC.`;
  }

  const step = (place) => `${moment(shown.t[place] - shown.step_s)} UTC: ${value(shown.ios_per_s[place], "iops")} I/Os per s, p50 ${value(shown.p50[place], "ns")}, p99 ${value(shown.p99[place], "ns")}, p99.9 ${value(shown.p99_9[place], "ns")}`;

  function frame() {
    const width = Math.max(Math.floor(canvas.clientWidth), 200);
    return { width, plotWidth: width - LEFT - 6, plotHeight: HEIGHT - TOP - BOTTOM };
  }

  function paint() {
    if (!shown || canvas.hidden) return;
    const scale = devicePixelRatio || 1, { width, plotWidth, plotHeight } = frame();
    [canvas.width, canvas.height] = [width * scale, HEIGHT * scale];
    const draws = canvas.getContext("2d");
    draws.scale(scale, scale);
    draws.fillStyle = css("--page");
    draws.fillRect(0, 0, width, HEIGHT);
    const count = shown.counts.length, steps = shown.t.length;
    let most = 0;
    for (const row of shown.counts) for (const one of row) if (one > most) most = one;
    const [x, y] = [(place) => LEFT + (place / steps) * plotWidth, (row) => TOP + plotHeight - (row / count) * plotHeight];
    draws.fillStyle = css("--heat");
    shown.counts.forEach((row, number) => row.forEach((one, place) => {
      if (!one) return;
      // One I/O among a million is seen: the shade goes with the logarithm.
      draws.globalAlpha = 0.12 + 0.88 * Math.log1p(one) / Math.log1p(most);
      draws.fillRect(x(place), y(number + 1), plotWidth / steps + 0.6, plotHeight / count + 0.4);
    }));
    draws.globalAlpha = 1;
    lines(draws, x, y);
    axes(draws, x, y, { count, steps, width, plotWidth });
    if (at !== null) {
      draws.strokeStyle = css("--ink");
      draws.strokeRect(x(at), TOP, plotWidth / steps, plotHeight);
    }
  }

  // Where a time stands among the rows; within a row by its logarithm, as rows are.
  function rowOf(ns) {
    for (let row = 0; row < shown.begin_ns.length; row += 1) {
      const begin = Math.max(shown.begin_ns[row], 1), end = shown.end_ns[row] ?? begin * 1.41;
      if (ns <= end || row === shown.begin_ns.length - 1) return row + Math.min(Math.max(Math.log(Math.max(ns, 1) / begin) / Math.log(end / begin), 0), 1);
    }
    return 0;
  }

  function lines(draws, x, y) {
    draws.strokeStyle = css("--ink");
    draws.lineWidth = 1.2;
    for (const [name, , dash] of PERCENTILES) {
      draws.setLineDash(dash);
      draws.beginPath();
      let open = false;
      shown[name].forEach((ns, place) => {
        if (ns === null) { open = false; return; }
        const [left, top] = [x(place + 0.5), y(rowOf(ns))];
        if (open) draws.lineTo(left, top); else draws.moveTo(left, top);
        open = true;
      });
      draws.stroke();
    }
    draws.setLineDash([]);
  }

  function axes(draws, x, y, { count, steps, width, plotWidth }) {
    draws.fillStyle = css("--ink");
    draws.font = "11px sans-serif";
    draws.textAlign = "right";
    const every = Math.max(Math.ceil(count / 9), 1);
    for (let row = 0; row < count; row += every) draws.fillText(value(shown.begin_ns[row], "ns"), LEFT - 5, y(row) + 4);
    draws.textAlign = "center";
    const labels = Math.max(Math.floor(plotWidth / 110), 1);
    for (let label = 0; label <= labels; label += 1) {
      const place = (label / labels) * steps, seconds = shown.t[0] - shown.step_s + place * shown.step_s;
      const text = moment(seconds).slice(shown.step_s * steps > 172800 ? 5 : 11, shown.step_s * steps > 172800 ? 16 : 19);
      draws.textAlign = label === 0 ? "left" : label === labels ? "right" : "center";
      draws.fillText(text, Math.min(x(place), width), HEIGHT - 6);
    }
  }

  function move(place) {
    if (!shown) return;
    at = Math.min(Math.max(place, 0), shown.t.length - 1);
    told.textContent = step(at);
    paint();
  }

  canvas.addEventListener("keydown", (event) => {
    if (!shown || !["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) return;
    const last = shown.t.length - 1, now = at ?? last;
    move({ ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last }[event.key]);
    announce(step(at));
    event.preventDefault();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!shown) return;
    const { plotWidth } = frame();
    move(Math.floor(((event.offsetX - LEFT) / plotWidth) * shown.t.length));
    const { plotHeight } = frame(), row = Math.floor(((TOP + plotHeight - event.offsetY) / plotHeight) * shown.counts.length);
    const count = shown.counts[row]?.[at];
    if (count) told.textContent += `; ${value(shown.begin_ns[row], "ns")} to ${shown.end_ns[row] === null ? "any" : value(shown.end_ns[row], "ns")}: ${value(count, "iops")} I/Os`;
  });
  canvas.addEventListener("pointerleave", () => { if (shown) { at = null; told.textContent = summary(); paint(); } });

  function rows() {
    if (!shown) return [];
    return [["time_utc", "ios_per_s", "p50_ns", "p99_ns", "p99_9_ns", ...shown.begin_ns.map((ns) => `from_${Math.round(ns)}_ns`)],
      ...shown.t.map((t, place) => [moment(t - shown.step_s), shown.ios_per_s[place], shown.p50[place], shown.p99[place], shown.p99_9[place], ...shown.counts.map((row) => row[place])])];
  }

  function fillTable() {
    if (!shown) return;
    const titles = ["UTC", "I/Os per s", ...PERCENTILES.map(([, title]) => title)];
    tableBox.replaceChildren(table("Latency by step", titles.map((title) => ({ title, class: "number" })), shown.t.map((t, place) =>
      [moment(t - shown.step_s), value(shown.ios_per_s[place], "iops"), ...PERCENTILES.map(([name]) => value(shown[name][place], "ns"))].map((text) => ({ class: "number", text })))));
  }

  const observer = new ResizeObserver(() => requestAnimationFrame(paint));
  observer.observe(el);
  const drawing = { again: paint };
  drawings.add(drawing);
  return { el, update, close: () => { observer.disconnect(); drawings.delete(drawing); } };
}
