// Makes elements. Text from logs reaches the page as text only, with everything invisible as an escape.

const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0]|(?! )\p{Zs}|[\u{e0100}-\u{e01ef}]|\p{M}{5,}/gu;

/** Text with everything invisible or active as an escape, cut after `limit` characters. */
export function printable(text, limit = 200) {
  if (text === null || text === undefined) return "";
  let shown = String(text);
  if (shown.length > 4 * limit) shown = shown.slice(0, 4 * limit);
  shown = shown.replace(UNSEEN, (found) => [...found].map(escaped).join(""));
  const signs = [...shown];
  return signs.length <= limit ? shown : signs.slice(0, limit - 1).join("") + "…";
}

function escaped(sign) {
  const known = { "\t": "\\t", "\n": "\\n", "\r": "\\r" }[sign];
  if (known) return known;
  const code = sign.codePointAt(0);
  if (code < 0x100) return "\\x" + code.toString(16).padStart(2, "0");
  return code < 0x10000 ? "\\u" + code.toString(16).padStart(4, "0") : "\\U" + code.toString(16).padStart(8, "0");
}

/** An element: h("a", {href: "/", class: "x", onclick: f}, "text", child, …). null, undefined and false are left out. */
export const h = (tag, ...parts) => filled(document.createElement(tag), ...parts);

/** The same for SVG. */
export const svg = (tag, ...parts) => filled(document.createElementNS("http://www.w3.org/2000/svg", tag), ...parts);

function filled(element, attributes = {}, ...children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [property, text] of Object.entries(value)) element.style.setProperty(property, text);
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

/** Replaces what is in an element. What had the focus keeps it if its `id` or `data-key` is there again. */
export function put(element, ...children) {
  const active = document.activeElement;
  const key = active && element.contains(active) ? active.id || active.dataset?.key : null;
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  if (key) {
    const again = [...element.querySelectorAll("[id], [data-key]")].find((each) => each.id === key || each.dataset.key === key);
    again?.focus({ preventScroll: true });
  }
}

/** A part of a page with a heading. look: its class; id: by which a link leads to it. */
export function panel(title, note, body, look = "", id = null) {
  return h("section", { class: `panel ${look}`.trim(), id }, h("h2", {}, title, note ? h("small", {}, ` ${note}`) : null), body);
}

/**
 * A table. columns: [{name, label, number, cell(row) -> node or text}]. It becomes a list of cards on a phone.
 * options: caption (for screen readers), empty (what is said without rows), key(row), look(row): its class, most: how many rows are listed.
 */
export function table(columns, rows, options = {}) {
  if (!rows.length) return h("p", { class: "note" }, options.empty ?? "Nothing.");
  const head = h("tr", {}, columns.map((column) => h("th", { scope: "col", class: column.number ? "n" : null }, column.label)));
  const { most = rows.length } = options;
  const body = rows.slice(0, most).map((row) => h("tr", { "data-key": options.key?.(row), class: options.look?.(row) },
    columns.map((column) => h("td", { class: [column.number ? "n" : "", column.class ?? ""].join(" ").trim() || null, "data-label": column.label }, column.cell(row)))));
  return [h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": options.caption ?? "Table" },
    h("table", { class: "stack" }, options.caption ? h("caption", { class: "sr" }, options.caption) : null, h("thead", {}, head), h("tbody", {}, body))),
    rows.length > most ? h("p", { class: "note" }, `${most} of ${rows.length.toLocaleString("en-US")} are listed.`) : null];
}
