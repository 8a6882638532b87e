// One figure: lines or dots by uPlot, with a table in its place for who cannot see it, and as PNG and CSV.

import { announce, csv, h, save, table } from "./dom.js";
import { moment, value, values } from "./words.js";

// M. Okabe and K. Ito, "Color Universal Design" (2008), without yellow and black; each with a dash of its own.
const COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#8a6d3b", "#7f7f7f"];
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 5], [14, 3], [1, 4], [6, 2, 1, 2]];
const TABLE_ROWS_MAX = 500;
const HEIGHT = 210;

// Steps of an axis of bytes: 1, 2, 5 of each binary unit, and its hundreds.
const BINARY = [0, 10, 20, 30, 40].flatMap((power) => [1, 2, 4, 8, 16, 32, 64, 128, 256, 512].map((one) => one * 2 ** power));

// Loads are counted.
const WHOLE = [0, 1, 2, 3, 4, 5, 6, 7, 8].flatMap((power) => [1, 2, 5].map((one) => one * 10 ** power));

// Times are whole seconds on an axis: below, uPlot never comes to the end of its steps with a clock of seconds.
const [MINUTE, HOUR, DAY, YEAR] = [60, 3600, 86400, 365 * 86400];
const TIMES = [1, 2, 5, 10, 15, 30, ...[1, 2, 5, 10, 15, 30].map((one) => one * MINUTE), ...[1, 2, 3, 4, 6, 8, 12].map((one) => one * HOUR),
  ...[1, 2, 3, 5, 7, 10, 15, 30, 60, 90, 120, 180].map((one) => one * DAY), ...[1, 2, 5, 10].map((one) => one * YEAR)];

// A time on an axis, as exactly as its steps need it.
const tick = (seconds, step) => {
  const text = new Date(seconds * 1000).toISOString();
  return step < 60 ? text.slice(11, 19) : step < 86400 ? text.slice(11, 16) : text.slice(5, 10);
};

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// One value alone makes no line, and is seen as a dot.
const isAlone = (values) => values.filter((one) => one !== null && one !== undefined).length === 1;

// What is drawn on this page, each with a function `again`.
export const drawings = new Set();

// Draw all of it anew, in the colours that are in force now.
export function redraw() {
  for (const drawing of drawings) drawing.again();
}

export class Chart {
  // lines: [{label, unit, dots, steps, band}]; data: [x, y, y, ...]; time: whether x is seconds since 1970. A line of `steps`
  // is the outline of a histogram; `log` is of x; `marks` are moments, such as changes, where a line stands: [{x, text}].
  constructor({ title, lines, data, time = true, xTitle = "", xUnit = "", unit = "", onZoom = null, height = HEIGHT, zero = true, log = false, marks = [] }) {
    Object.assign(this, { title, lines, time, xTitle, xUnit, unit, onZoom, height, zero, data, log, marks });
    this.zoomed = false;
    drawings.add(this);
    this.plot = h("div", { class: "plot", tabindex: 0, role: "img", "aria-label": this.words(),
      onkeydown: (event) => this.key(event) });
    this.tableBox = h("div", { hidden: true });
    const tableButton = h("button", { type: "button", "aria-pressed": "false", "aria-label": `Table: ${title}`, onclick: () => this.toggle(tableButton) }, "Table");
    this.wholeButton = h("button", { type: "button", hidden: true, onclick: () => this.whole() }, "Whole time");
    this.extra = h("span", {});
    this.el = h("figure", { "aria-label": title },
      h("figcaption", {}, h("span", { class: "title" }, title), this.extra, this.wholeButton, tableButton,
        h("button", { type: "button", "aria-label": `PNG: ${title}`, onclick: () => this.png() }, "PNG"),
        h("button", { type: "button", "aria-label": `CSV: ${title}`, onclick: () => save(`${fileName(title)}.csv`, csv(this.rows()), "text/csv") }, "CSV")),
      this.plot, this.tableBox);
    // In the next frame: a figure that changes size while sizes are told would be told of again.
    this.observer = new ResizeObserver(() => requestAnimationFrame(() => this.fit()));
    this.observer.observe(this.plot);
  }

  again() {
    this.u?.destroy();
    this.u = null;
    this.fit();
  }

  fit() {
    const width = Math.floor(this.plot.clientWidth);
    if (width < 40 || this.isClosed) return;
    if (!this.u) this.make(width);
    else if (this.u.width !== width) this.u.setSize({ width, height: this.height });
  }

  make(width) {
    const ink = css("--ink"), grid = css("--grid");
    const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
    const told = (number) => (number === null ? "-" : value(number, this.unit));
    this.u = new uPlot({
      width, height: this.height,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      scales: { x: { time: this.time, distr: this.log ? 3 : 1, ...(this.time ? { range: (u, low, high) => this.times(low, high) } : {}) }, y: { range: (u, low, high) => this.range(low, high) } },
      cursor: { drag: { x: true, y: false }, points: { size: 6 } },
      legend: { live: true },
      series: [
        { label: this.time ? "UTC" : this.xTitle, value: (u, x) => (x === null ? "-" : this.at(x)) },
        ...this.lines.map((line, place) => ({
          label: line.label, stroke: COLOURS[place % COLOURS.length], dash: DASHES[place % DASHES.length],
          width: line.dots ? 0 : 2, spanGaps: Boolean(line.spanGaps), points: { show: (u, at) => line.dots || isAlone(u.data[at]), size: line.dots ? 9 : 4, fill: line.dots ? COLOURS[place % COLOURS.length] : undefined },
          fill: line.steps ? `${COLOURS[place % COLOURS.length]}33` : undefined,
          paths: line.dots ? () => null : line.steps ? uPlot.paths.stepped({ align: -1 }) : undefined, value: (u, y) => told(y),
        })),
      ],
      axes: [
        { ...axis, label: this.time ? undefined : this.xTitle, labelSize: 18, size: 34, space: this.time ? 70 : 50,
          ...(this.time ? { incrs: TIMES } : this.log || this.xUnit ? {} : { incrs: WHOLE }),
          values: this.time ? (u, ticks, at, space, step) => ticks.map((one) => tick(one, step))
            : this.xUnit ? (u, ticks) => ticks.map((one) => (one === null ? "" : value(one, this.xUnit))) : undefined },
        { ...axis, size: 80, values: (u, ticks) => values(ticks, this.unit), ...(this.unit.startsWith("bytes") ? { incrs: BINARY } : {}) },
      ],
      hooks: { setSelect: [(u) => this.selected(u.select)], draw: [(u) => this.drawMarks(u)] },
    }, this.data, this.plot);
    // Its values are those under a mouse; the words of the figure and its table have all.
    this.u.root.querySelector(".u-legend")?.setAttribute("aria-hidden", "true");
  }

  // Moments such as changes: a dashed line from top to bottom, with its words beside it.
  drawMarks(u) {
    const { ctx, bbox } = u, scale = devicePixelRatio || 1;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = css("--bad");
    ctx.lineWidth = scale;
    ctx.setLineDash([4 * scale, 3 * scale]);
    ctx.font = `${11 * scale}px sans-serif`;
    this.marks.forEach(({ x, text }, place) => {
      const at = Math.round(u.valToPos(x, "x", true));
      if (at < bbox.left || at > bbox.left + bbox.width) return;
      ctx.beginPath();
      ctx.moveTo(at, bbox.top);
      ctx.lineTo(at, bbox.top + bbox.height);
      ctx.stroke();
      ctx.textAlign = at > bbox.left + bbox.width * 0.7 ? "right" : "left";
      const [left, top] = [at + (ctx.textAlign === "right" ? -4 : 4) * scale, bbox.top + (12 + 13 * (place % 3)) * scale];
      // Lines do not run through the words.
      ctx.save();
      ctx.setLineDash([]);
      ctx.lineWidth = 4 * scale;
      ctx.strokeStyle = css("--page");
      ctx.strokeText(text, left, top);
      ctx.restore();
      ctx.fillText(text, left, top);
    });
    ctx.restore();
  }

  // Of one moment alone an hour to either side.
  times(low, high) {
    if (low === null || high === null) return [0, 1];
    return high > low ? [low, high] : [low - HOUR, high + HOUR];
  }

  range(low, high) {
    if (low === null || high === null) return [0, 1];
    // Values that differ in their last digit alone would have an axis without end.
    if (!this.zero && high - low <= 1e-6 * Math.abs(high)) return [low - Math.abs(low) * 0.05 - (low === 0), high + Math.abs(high) * 0.05 + (high === 0)];
    const bottom = this.zero ? Math.min(0, low) : low;
    return [bottom, high - bottom <= 1e-9 * Math.abs(high) ? bottom + 1 : high + (high - bottom) * 0.05];
  }

  update(data, lines = null) {
    this.data = data;
    if (lines) {
      this.lines = lines;
      this.again();
    } else this.u?.setData(data, !this.zoomed);
    this.plot.setAttribute("aria-label", this.words());
    if (!this.tableBox.hidden) this.fillTable();
  }

  selected({ left, width }) {
    if (width < 3) return;
    const [min, max] = [left, left + width].map((place) => this.u.posToVal(place, "x"));
    queueMicrotask(() => this.hasZoomed(min, max));
  }

  hasZoomed(min, max) {
    this.zoomed = true;
    this.wholeButton.hidden = false;
    announce(`${this.title}: from ${this.at(min)} to ${this.at(max)}`);
    this.onZoom?.(min, max);
  }

  at(x) { return this.time ? moment(x) : value(x, this.xUnit); }

  zoom(min, max) {
    if (!(max > min) || !this.u) return;
    this.u.setScale("x", { min, max });
    this.hasZoomed(min, max);
  }

  whole() {
    this.zoomed = false;
    this.wholeButton.hidden = true;
    this.u?.setData(this.data, true);
    this.onZoom?.(null, null);
  }

  key(event) {
    if (!this.u) return;
    const { min, max } = this.u.scales.x, length = max - min, middle = (min + max) / 2;
    const moves = { ArrowLeft: [min - length / 5, max - length / 5], ArrowRight: [min + length / 5, max + length / 5],
      "+": [middle - length / 4, middle + length / 4], "-": [middle - length, middle + length] };
    if (event.key === "0") this.whole();
    else if (moves[event.key]) this.zoom(...moves[event.key]);
    else return;
    event.preventDefault();
  }

  words() {
    const told = this.lines.map((line, place) => {
      const known = (this.data[place + 1] ?? []).filter((one) => one !== null && one !== undefined);
      if (!known.length) return `${line.label}: no values`;
      let least = Infinity, most = -Infinity;
      for (const one of known) { if (one < least) least = one; if (one > most) most = one; }
      return `${line.label}: last ${value(known.at(-1), this.unit)}, from ${value(least, this.unit)} to ${value(most, this.unit)}`;
    });
    return `${this.title}. ${told.join("; ")}. Arrow keys move, plus and minus zoom, 0 shows all.`;
  }

  rows() {
    const [xs, ...ys] = this.data;
    return [[this.time ? "time_utc" : this.xTitle, ...this.lines.map((line) => line.label)],
      ...xs.map((x, place) => [this.time ? moment(x) : x, ...ys.map((column) => column[place] ?? null)])];
  }

  toggle(button) {
    this.tableBox.hidden = !this.tableBox.hidden;
    this.plot.hidden = !this.tableBox.hidden;
    button.setAttribute("aria-pressed", String(!this.tableBox.hidden));
    if (!this.tableBox.hidden) this.fillTable();
  }

  fillTable() {
    const [head, ...rows] = this.rows();
    const last = rows.slice(-TABLE_ROWS_MAX);
    const cut = last.length < rows.length ? `, the last ${last.length} of ${rows.length}` : "";
    this.tableBox.replaceChildren(table(`${this.title}${cut}`, head.map((title) => ({ title, class: "number" })),
      last.map((row) => row.map((one, place) => ({ class: "number", text: place ? value(one, this.unit) : one })))));
  }

  png() {
    if (!this.u) return;
    const from = this.u.ctx.canvas, scale = devicePixelRatio || 1;
    const head = Math.round(28 * scale), foot = Math.round((20 * Math.ceil(this.lines.length / 3) + 8) * scale);
    const made = document.createElement("canvas");
    [made.width, made.height] = [from.width, from.height + head + foot];
    const draw = made.getContext("2d");
    draw.fillStyle = css("--page");
    draw.fillRect(0, 0, made.width, made.height);
    draw.drawImage(from, 0, head);
    draw.fillStyle = css("--ink");
    draw.font = `bold ${14 * scale}px sans-serif`;
    draw.fillText(this.title, 8 * scale, 19 * scale);
    draw.font = `${12 * scale}px sans-serif`;
    this.lines.forEach((line, place) => {
      const x = 10 * scale + (place % 3) * (made.width / 3), y = head + from.height + (Math.floor(place / 3) * 20 + 14) * scale;
      draw.strokeStyle = COLOURS[place % COLOURS.length];
      draw.lineWidth = 2 * scale;
      draw.setLineDash(DASHES[place % DASHES.length].map((one) => one * scale));
      draw.beginPath();
      draw.moveTo(x, y - 4 * scale);
      draw.lineTo(x + 24 * scale, y - 4 * scale);
      draw.stroke();
      draw.fillText(line.label, x + 30 * scale, y, made.width / 3 - 40 * scale);
    });
    made.toBlob((blob) => save(`${fileName(this.title)}.png`, blob, "image/png"), "image/png");
  }

  close() {
    this.isClosed = true;
    drawings.delete(this);
    this.observer.disconnect();
    this.u?.destroy();
    this.u = null;
  }
}

const fileName = (title) => title.replace(/[^A-Za-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "figure";
