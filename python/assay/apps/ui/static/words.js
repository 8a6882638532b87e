// Values in people's units.

// Three digits, or as many more as it takes to tell the marks of an axis apart.
const digits = (value, count) => (value === 0 ? "0" : Math.abs(value) >= 10 ** (count - 1) ? value.toFixed(0) : value.toPrecision(count));
const thousands = (value) => Math.round(value).toLocaleString("en-US");

export function latency(ns, count = 3) {
  for (const [size, unit] of [[1e9, "s"], [1e6, "ms"], [1e3, "us"]]) if (Math.abs(ns) >= size) return `${digits(ns / size, count)} ${unit}`;
  return `${digits(ns, count)} ns`;
}

export function bytes(number, count = 3) {
  for (const [size, unit] of [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) {
    if (Math.abs(number) >= size) return `${digits(number / size, count)} ${unit}`;
  }
  return `${digits(number, count)} B`;
}

export function value(number, unit, count = 3) {
  if (number === null || number === undefined || !Number.isFinite(number)) return "-";
  if (unit === "ns") return latency(number, count);
  if (unit === "bytes") return bytes(number, count);
  if (unit === "bytes_per_s") return `${bytes(number, count)}/s`;
  if (unit === "share") return `${digits(number * 100, count)} %`;
  if (unit === "iops") return Math.abs(number) < 10 && !Number.isInteger(number) ? digits(number, count) : thousands(number);
  return Math.abs(number) >= 1000 ? thousands(number) : digits(number, count);
}

// Values with as few digits as tell them apart.
export function values(numbers, unit) {
  const known = new Set(numbers.filter((one) => one !== null));
  for (let count = 3; ; count += 1) {
    const told = numbers.map((one) => value(one, unit, count));
    if (count === 7 || new Set(told.filter((_, place) => numbers[place] !== null)).size === known.size) return told;
  }
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "-";
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h ${Math.round((seconds % 3600) / 60)} min`;
  return `${Math.round(seconds / 86400)} days`;
}

export function moment(seconds) {
  return seconds ? new Date(seconds * 1000).toISOString().replace("T", " ").slice(0, 19) : "-";
}

export function ago(seconds) {
  if (!seconds) return "at an unknown time";
  const past = Math.max(Date.now() / 1000 - seconds, 0);
  for (const [size, unit] of [[86400, "day"], [3600, "hour"], [60, "minute"]]) {
    const count = Math.floor(past / size);
    if (count) return `${count} ${unit}${count === 1 ? "" : "s"} ago`;
  }
  return "just now";
}

const SHORT = 24; // letters that stand on one line
// How a limit stands, as the server says it: the word with its mark, and its tone.
const STANDINGS = { met: ["✓", "good"], missed: ["✗", "bad"], unknown: ["?", "warn"] };
export function standing(word, text = word) {
  const [mark, tone] = STANDINGS[word] ?? ["", "quiet"];
  return { class: (text ?? "").length <= SHORT ? `${tone} short` : tone, text: `${mark} ${text ?? ""}`.trim() || "-" };
}

// The unit of a series by the end of its name.
export function unitOf(metric, kind) {
  if (metric.endsWith("_share")) return "share";
  if (metric.endsWith("_ns")) return "ns";
  if (metric.endsWith("bytes")) return kind === "delta" ? "bytes_per_s" : "bytes";
  return metric.includes("ios_count") ? "iops" : "";
}

export const metricWords = (metric) => metric.replace(/_(count|ns|share)$/, "").replaceAll("_", " ");

// A report or a paper that lies in a run, by its name.
export const reportWords = (name) => `${name.startsWith("paper") ? "Paper" : "Report"}, ${name.split(".")[1].toUpperCase()}`;
