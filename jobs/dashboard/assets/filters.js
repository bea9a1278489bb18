// A form whose fields are values of the address: what is typed goes there, and what is there is shown.
import { Problem } from "./api.js";
import { h, put } from "./dom.js";
import * as state from "./state.js";

const TYPING_MS = 250; // a pause this long ends a word

/**
 * A form. fields: [{name, label, kind, choices, hint, placeholder}]. kind: "text", "time", "number",
 * "search" (applied while one types), "select" or "buttons"; the last two take choices: [[value, label]]. The first choice is what no value means.
 *
 * Returns {form, sync, offer}: `sync` shows the values of the address, but leaves alone what is being typed; `offer` changes the choices
 * of a select.
 */
export function filters(fields, label) {
  let timer = null;
  const inputs = new Map();
  const syncs = [];
  const read = () => Object.fromEntries([...inputs].map(([name, input]) => [name, input.value.trim()]));
  const apply = (push) => { clearTimeout(timer); state.set({ ...read(), ...FRESH }, { push }); };
  const form = h("form", { class: "filters", role: "search", "aria-label": label,
    onsubmit: (event) => { event.preventDefault(); apply(true); }, onchange: () => apply(true) },
  fields.map((field) => {
    const id = `field-${field.name}`;
    if (field.kind === "buttons") return buttons(field, syncs);
    const hint = field.hint ? h("small", { id: `${id}-hint` }, field.hint) : null;
    const input = field.kind === "select"
      ? h("select", { id, name: field.name }, field.choices.map(([value, text]) => h("option", { value }, text)))
      : h("input", { id, name: field.name, type: field.kind === "search" ? "search" : "text", inputmode: field.kind === "number" ? "numeric" : null,
        placeholder: field.placeholder, autocomplete: "off", spellcheck: "false", autocapitalize: "none", "aria-describedby": hint ? `${id}-hint` : null,
        oninput: field.kind === "search" ? () => { clearTimeout(timer); timer = setTimeout(() => apply(false), TYPING_MS); } : null });
    inputs.set(field.name, input);
    syncs.push(() => { if (document.activeElement !== input || field.kind === "select") show(input, state.get(field.name)); });
    return h("label", { class: `field ${field.kind ?? "text"}`, for: id }, h("span", {}, field.label), input, hint);
  }),
  h("button", { type: "submit", class: "sr" }, "Apply"));
  const sync = () => { for (const each of syncs) each(); };
  const offer = (name, choices) => {
    const select = inputs.get(name);
    if ([...select.options].map((option) => option.value).join("\n") === choices.map(([value]) => value).join("\n")) return;
    select.replaceChildren(...choices.map(([value, text]) => h("option", { value }, text)));
  };
  sync();
  return { form, sync, offer };
}

const narrow = matchMedia("(max-width: 720px)");

/** A form that is folded on a phone as long as it filters nothing: what it filters comes first there. */
export function folded(form, names, label) {
  const fold = h("details", { class: "folded", open: !narrow.matches || names.some((name) => state.get(name)) }, h("summary", {}, label), form);
  narrow.addEventListener("change", () => { fold.open ||= !narrow.matches; });
  return fold;
}

/** What another choice makes meaningless: how many rows were unfolded, and which one. */
const FRESH = { limit: "" };

function show(input, value) {
  if (input.tagName === "SELECT" && ![...input.options].some((option) => option.value === value)) input.append(h("option", { value }, value));
  input.value = value;
}

function buttons(field, syncs) {
  const all = field.choices.map(([value, text]) => h("button", { type: "button", "data-key": `${field.name}-${value}`,
    onclick: () => state.set({ [field.name]: value, ...FRESH }, { push: true }) }, text));
  syncs.push(() => all.forEach((button, index) => {
    const chosen = state.get(field.name) || field.choices[0][0];
    button.setAttribute("aria-pressed", String(field.choices[index][0] === chosen));
  }));
  return h("div", { class: "field", role: "group", "aria-label": field.label }, h("span", { "aria-hidden": "true" }, field.label), h("div", { class: "segments" }, all));
}

/** Tabs that are links, so that each can be opened elsewhere: [[values of the address, label]]. `chosen(values)`: is it the one that is shown? */
export function tabs(path, entries, chosen, label) {
  return h("nav", { class: "views", "aria-label": label }, entries.map(([values, text]) => h("a", {
    href: state.link(path, values), "data-key": `view-${text}`, "aria-current": chosen(values) ? "page" : null, onclick: state.following({ ...FRESH, ...values }),
  }, text)));
}

/** Puts what `make` makes into an element, or, where something that was typed is no value, the server's words about that. */
export async function answered(out, make) {
  try {
    put(out, await make());
  } catch (error) {
    if (!(error instanceof Problem) || error.transient) throw error;
    put(out, h("div", { class: "notice error", role: "alert" }, error.message));
  }
}
