// Elements from names, attributes and text. Text is always text: names of files and of servers are others' words.

export function h(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "class") made.className = value;
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  made.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

export async function get(path) {
  const answer = await fetch(path, { credentials: "same-origin" });
  const found = await answer.json().catch(() => ({ error: `the server answered ${answer.status}` }));
  if (!answer.ok) throw new Error(found.error ?? `the server answered ${answer.status}`);
  return found;
}

// Sends something to the server; the number of the page goes in a header, which no form of another site can send.
export async function post(path, token, content) {
  const answer = await fetch(path, { method: "POST", credentials: "same-origin", headers: { "content-type": "application/json", "x-assay-start": token }, body: JSON.stringify(content) });
  const found = await answer.json().catch(() => ({ error: `the server answered ${answer.status}` }));
  if (!answer.ok) throw new Error(found.error ?? `the server answered ${answer.status}`);
  return found;
}

export function announce(text) {
  document.getElementById("announce").textContent = text;
}

// Shows what is being read, then what was read or why it was not.
export function reading(what, promise, show) {
  const box = h("div", { "aria-busy": "true" }, h("p", { class: "quiet" }, `Reading ${what}…`));
  promise.then(
    (found) => { box.replaceChildren(...[show(found)].flat()); box.removeAttribute("aria-busy"); },
    (error) => { box.replaceChildren(h("p", { class: "bad", role: "alert" }, `${what}: ${error.message}`)); box.removeAttribute("aria-busy"); },
  );
  return box;
}

const STACKED_MIN = 2;
const NARROW_MIN = 7; // columns that a window of middle width holds only if they are narrow

// A table; cells are text, or {text, class, node}.
export function table(caption, columns, rows, className = "") {
  const cell = (one, place) => {
    const made = one !== null && typeof one === "object" && !(one instanceof Node) ? one : { text: one };
    // On a phone a row is a block, and each cell says what it is.
    return h("td", { class: made.class, "data-title": columns[place]?.title ?? columns[place] }, one instanceof Node ? one : made.node ?? String(made.text ?? ""));
  };
  return h("div", { class: "scroll" },
    h("table", { class: [className, columns.length > STACKED_MIN && !className ? "stacked" : "", columns.length > NARROW_MIN ? "many" : ""].filter(Boolean).join(" ") },
      h("caption", {}, caption),
      h("thead", {}, h("tr", {}, columns.map((one) => h("th", { scope: "col", class: one.class }, one.title ?? one)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map(cell))))));
}

export function save(name, content, type) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = h("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

// A field that begins like a formula would be one to a spreadsheet.
export function csv(rows) {
  const field = (one) => {
    let text = one === null || one === undefined ? "" : String(one);
    if (typeof one === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => row.map(field).join(",")).join("\n") + "\n";
}
