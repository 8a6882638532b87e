// A run is started in three steps: a form, what the command would do, and the start of just that.

import { announce, get, h, post } from "./dom.js";
import { ago } from "./words.js";

const LOOK_MS = 1000;

export function startPage(wanted) {
  const box = h("div", { "aria-busy": "true" }, h("p", { class: "quiet" }, "Reading what may be started…"));
  const last = h("section", { "aria-label": "The run that was started last", "aria-live": "polite" });
  const el = h("div", {}, h("h1", {}, "Start a run"), last, box);
  let known = null, looking = null, closed = false;

  async function look() {
    clearTimeout(looking);
    let started = null;
    try { ({ started } = await get("/api/start")); } catch { /* the connection's line says so */ }
    if (closed) return;
    if (started) last.replaceChildren(startedBox(started));
    if (started?.goes_on) looking = setTimeout(look, LOOK_MS);
  }

  get("/api/start").then((found) => {
    box.removeAttribute("aria-busy");
    known = found;
    if (!found.allowed) {
      box.replaceChildren(h("p", {}, "This page only looks. To start runs from here, start it anew:"), h("pre", {}, "assay ui --allow-runs --run-on DIR"));
      return;
    }
    const form = found.forms.find((one) => one.name === wanted) ?? found.forms[0];
    box.replaceChildren(tabs(found.forms, form), h("p", {}, form.title), formOf(found, form, look));
    look();
  }, (error) => box.replaceChildren(h("p", { class: "bad", role: "alert" }, error.message)));
  return { el, title: "Start a run", close: () => { closed = true; clearTimeout(looking); }, reconnected: () => known?.allowed && look() };
}

const tabs = (forms, chosen) => h("nav", { class: "bar tabs", "aria-label": "What to start" }, forms.map((one) =>
  h("a", { href: `#/start/${one.name}`, "aria-current": one === chosen ? "page" : null }, one.words.join(" "))));

function startedBox(started) {
  const link = started.run ? h("a", { href: `#/run/${started.run}` }, "its page") : null;
  const state = started.goes_on ? h("p", {}, h("span", { class: "badge good" }, "● going on"), ` as process ${started.process}, started ${ago(started.started_s)}; it goes on when this page is closed. `,
    link ? ["See ", link, "."] : "Its folder is not there yet.")
    : h("p", {}, `The run that was started last ended with exit code ${started.code}. `, link ? ["See ", link, "."] : "");
  return h("div", { class: "card" }, state, h("pre", {}, started.command),
    started.goes_on ? h("p", { class: "quiet" }, "To end it: ", h("code", {}, `kill -INT ${started.process}`)) : null,
    started.words ? h("p", { class: "bad" }, started.words) : null);
}

function formOf(found, form, look) {
  const inputs = new Map();
  const plan = h("section", { "aria-label": "What it would do", "aria-live": "polite" });
  const asked = h("button", { type: "submit" }, "Show what it would do");
  const output = found.outputs.length > 1 ? h("select", { id: "output" }, found.outputs.map((one) => h("option", { value: one.value }, one.text))) : null;
  const usual = form.fields.filter((one) => one.is_usual), others = form.fields.filter((one) => !one.is_usual);
  const groups = [...new Set(others.map((one) => one.group))];
  const el = h("form", { autocomplete: "off", novalidate: true },
    h("div", { class: "fields" }, usual.map((one) => field(one, inputs)),
      output ? h("div", { class: "field" }, h("label", { for: "output" }, "Results"), output) : h("div", { class: "field quiet" }, `Results in ${found.outputs[0].text}`)),
    others.length ? h("details", {}, h("summary", {}, `${others.length} more options`), groups.map((group) =>
      h("fieldset", {}, h("legend", {}, group), h("div", { class: "fields" }, others.filter((one) => one.group === group).map((one) => field(one, inputs)))))) : null,
    h("div", { class: "bar" }, asked, h("span", { class: "quiet" }, "Nothing is written before you have seen it.")), plan);
  // A plan is of the values it was made of.
  el.addEventListener("input", () => plan.replaceChildren());
  el.addEventListener("submit", async (event) => {
    event.preventDefault();
    asked.disabled = true;
    plan.replaceChildren(h("p", { class: "quiet" }, "Asking the command…"));
    try {
      const told = await post("/api/start/rehearse", found.token, { form: form.name, values: valuesOf(inputs), output: output?.value ?? "0" });
      plan.replaceChildren(...planBox(told, found, look, plan));
      announce(told.refusal ? "It is refused" : "The plan is shown");
    } catch (error) {
      plan.replaceChildren(h("p", { class: "bad", role: "alert" }, error.message));
    }
    asked.disabled = false;
  });
  return el;
}

function planBox(told, found, look, plan) {
  const command = [h("h2", {}, "The command"), h("pre", {}, told.command)];
  if (told.refusal) return [...command, h("p", { class: "bad", role: "alert" }, told.refusal)];
  const start = h("button", { type: "button", class: "start", onclick: async () => {
    start.disabled = true;
    try {
      await post("/api/start/confirm", found.token, { confirm: told.confirm });
      plan.replaceChildren();
      announce("The run is started");
      await look();
      scrollTo({ top: 0 });
    } catch (error) {
      plan.replaceChildren(h("p", { class: "bad", role: "alert" }, error.message));
    }
  } }, "Start this run");
  return [...command, h("h2", {}, "What it would do"), h("pre", { tabindex: "0" }, told.lines.join("\n")),
    h("p", {}, "Nothing was written yet. The run begins when you press the button, and goes on when this page is closed."), start];
}

function valuesOf(inputs) {
  const values = {};
  for (const [name, read] of inputs) {
    const value = read();
    if (value !== "" && value !== false && value.length !== 0) values[name] = value;
  }
  return values;
}

function field(one, inputs) {
  const id = `field-${one.name}`, told = one.help ? `${id}-help` : null;
  const help = one.help ? h("div", { id: told, class: "quiet small" }, one.help) : null;
  const label = h("label", { for: id }, one.label, one.is_required ? h("span", { class: "quiet" }, " (required)") : null);
  if (one.kind === "flag") {
    const input = h("input", { type: "checkbox", id, "aria-describedby": told });
    inputs.set(one.name, () => input.checked);
    return h("div", { class: "field" }, h("div", {}, input, " ", label), help);
  }
  if (one.kind === "text" || one.kind === "lines") {
    const input = one.kind === "text" ? h("input", { id, "aria-describedby": told, maxlength: 300, spellcheck: "false" })
      : h("textarea", { id, "aria-describedby": told, rows: 1, spellcheck: "false" });
    inputs.set(one.name, () => (one.kind === "text" ? input.value.trim() : input.value.split("\n").map((line) => line.trim()).filter(Boolean)));
    return h("div", { class: "field" }, label, input, help);
  }
  const empty = one.is_required ? (one.choices.length ? "choose one" : one.kind === "trace" ? "none lies in these folders" : "none: start the page with --run-on DIR") : "as usual";
  const input = h("select", { id, "aria-describedby": told, required: one.is_required }, h("option", { value: "" }, empty),
    one.choices.map((choice) => h("option", { value: choice.value }, choice.text)));
  inputs.set(one.name, () => input.value);
  return h("div", { class: "field" }, label, input, one.takes.includes("model") ? modelOptions(one, input, inputs) : null, help);
}

function modelOptions(one, input, inputs) {
  const options = h("input", { id: `field-${one.name}-options`, placeholder: "raid=10&volumes=12", maxlength: 300, spellcheck: "false" });
  const box = h("div", { hidden: true }, h("label", { for: options.id }, "options of the model"), options);
  input.addEventListener("change", () => { box.hidden = !input.value.startsWith("model:"); });
  inputs.set(`${one.name}_options`, () => (box.hidden ? "" : options.value.trim()));
  return box;
}
