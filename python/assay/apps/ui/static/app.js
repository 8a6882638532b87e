// Which page is shown, and what the server says of changes meanwhile.

import { redraw } from "./chart.js";
import { announce, get, h } from "./dom.js";
import { comparePage } from "./compare.js";
import { homePage } from "./home.js";
import { listPage } from "./list.js";
import { manyPage } from "./many.js";
import { runPage } from "./run.js";
import { startPage } from "./start.js";
import { targetPage } from "./target.js";

const main = document.getElementById("main");
const connection = document.getElementById("connection");
let page = null;
let source = null;
let shownPath = null;

function show() {
  const hash = location.hash || "#/";
  if (!hash.startsWith("#/")) return; // a place within the page
  const words = hash.slice(2).split("/").map(decodeURIComponent);
  const path = words.slice(0, 2).join("/");
  if (words[0] === "run" && path === shownPath && page?.tab) { page.tab(words[2] ?? ""); return; }
  page?.close?.();
  shownPath = path;
  if (words[0] === "run" && words[1]) page = runPage(words[1], words[2] ?? "");
  else if (words[0] === "compare" && words[2]) page = comparePage(words[1], words[2]);
  else if (words[0] === "many" && words[1]) page = manyPage([...new Set(words[1].split("+"))].filter((id) => /^[0-9a-f]{16}$/.test(id)).slice(0, 8));
  else if (words[0] === "target" && words[1]) page = targetPage(words[1], words[2] ?? "");
  else if (words[0] === "runs") page = listPage();
  else if (words[0] === "start") page = startPage(words[1] ?? "");
  else page = homePage();
  markPage(words[0]);
  document.title = `${page.title} - Assay`;
  main.replaceChildren(page.el);
  main.focus({ preventScroll: true });
  announce(page.title);
  listen(words[0] === "run" ? words[1] : null);
}

const PAGE_OF = { run: "runs", compare: "runs", many: "runs", target: "" };
function markPage(word) {
  for (const link of document.querySelectorAll("#pages a")) {
    if (link.hash === `#/${PAGE_OF[word] ?? word}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function listen(run) {
  source?.close();
  source = new EventSource(run ? `/api/events?run=${encodeURIComponent(run)}` : "/api/events");
  source.onopen = () => { connection.textContent = ""; page.reconnected?.(); };
  source.onerror = () => { connection.textContent = "The server does not answer; trying again."; };
  for (const name of ["list", "live", "run", "gone", "over", "recorded"]) {
    source.addEventListener(name, (event) => page[`on_${name}`]?.(JSON.parse(event.data)));
  }
}

document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const isDark = root.classList.contains("dark") || (!root.classList.contains("light") && matchMedia("(prefers-color-scheme: dark)").matches);
  root.classList.toggle("dark", !isDark);
  root.classList.toggle("light", isDark);
  localStorage.setItem("theme", isDark ? "light" : "dark");
  shownPath = null;
  show();
});
document.documentElement.classList.add(localStorage.getItem("theme") ?? "auto");
addEventListener("hashchange", show);
// Paper is white: figures are drawn in colours for it, and afterwards in those of the screen.
let onScreen = "";
addEventListener("beforeprint", () => {
  onScreen = document.documentElement.className;
  document.documentElement.className = "light";
  redraw();
});
addEventListener("afterprint", () => {
  document.documentElement.className = onScreen;
  redraw();
});
addEventListener("error", (event) => { connection.textContent = `A fault of this page: ${event.message}`; });
show();
get("/api/start").then(({ allowed }) => {
  if (!allowed) return;
  document.getElementById("pages").append(" ", h("a", { href: "#/start" }, "Start a run"));
  markPage(location.hash.slice(2).split("/")[0]);
}, () => {});
