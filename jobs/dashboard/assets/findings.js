// Findings by incident: what went wrong, what to change, and the log lines that prove it.
import { after, MOST_ROWS } from "./answers.js";
import { ask, fetchJson, rows as fetchRows } from "./api.js";
import { h, printable, put } from "./dom.js";
import { instant } from "./format.js";
import { answered, filters, folded } from "./filters.js";
import { idsOf, linesBelow, rowOf } from "./judged.js";
import { symbol } from "./looks.js";
import * as state from "./state.js";

const ROWS = 50;
const AROUND_MS = 60_000; // of the group's timeline, before and after a finding

export const keys = [["j k", "next, previous finding"], ["Enter", "its advice and evidence"], ["/", "search"]];
export const title = () => "Findings";

let frame = null;

export async function draw(main) {
  const cluster = state.get("cluster");
  const { rows: codes } = await fetchRows("codes");
  if (frame === null || !main.contains(frame.out)) frame = framed();
  frame.form.offer("code", [["", "all"], ...codes.map((row) => [row.code, row.code])]);
  frame.form.sync();
  const values = { cluster, ...Object.fromEntries(["severity", "code", "group", "client", "text", "since", "until"].map((name) => [name, state.get(name)])),
    limit: Math.min(state.number("limit") ?? ROWS, MOST_ROWS) };
  await answered(frame.out, async () => {
    const [answer, attention] = await Promise.all([ask("findings", values), fetchJson("attention", { cluster })]);
    const id = state.get("id");
    const named = /^f[0-9a-f]{6,11}$/.test(id) && !answer.rows.some((row) => row.id === id) ? (await fetchRows("finding", { id, limit: 1 })).rows : [];
    return list(named, answer, values, id, attention.entries);
  });
  if (!main.contains(frame.out)) put(main, frame.whole);
}

function framed() {
  const form = filters([
    { name: "severity", label: "Severity", kind: "buttons", choices: [["", "All"], ["ERROR", "Error"], ["WARNING", "Warning"], ["INFO", "Info"]] },
    { name: "code", label: "Code", kind: "select", choices: [["", "all"]] },
    { name: "text", label: "Search", kind: "search", placeholder: "message, advice, group, client, host" },
    { name: "group", label: "Group", placeholder: "all" },
    { name: "client", label: "client.id", placeholder: "all" },
    { name: "since", label: "Since", kind: "time", placeholder: "15m, 06:12" },
    { name: "until", label: "Until", kind: "time", placeholder: "newest" },
  ], "Filter findings");
  const out = h("div", { class: "out" });
  return { form, out, whole: [h("div", { class: "head" }, h("h1", {}, title())), folded(form.form, FILTERS, "Filters"), out] };
}

const unfolded = new Map(); // by incident: whether its findings are shown

function list(named, answer, values, id, entries) {
  const several = new Set(answer.rows.map((row) => row.cluster)).size > 1;
  const article = (row) => finding(row, row.id === id || row === named[0], several);
  const incidentOf = new Map(entries.flatMap((entry) => idsOf(entry).map((id) => [id, entry])));
  const of = (entry) => answer.rows.filter((row) => incidentOf.get(row.id) === entry);
  const incident = (entry, its) => (its.length ? h("details", { open: unfolded.get(entry.id) || its.some((row) => row.id === id), ontoggle: ({ target }) => unfolded.set(entry.id, target.open) }, rowOf(entry, "summary"), its.map(article)) : null);
  return h("section", { class: "result", "aria-label": "Findings" },
    id && ![...named, ...answer.rows].some((row) => row.id.startsWith(id)) ? h("p", { class: "notice error" }, `No finding has the id ${printable(id, 20)}.`) : null,
    named.length ? [h("p", { class: "note" }, "The finding in this link does not match the filters:"), article(named[0]), h("hr")] : null,
    answer.rows.length ? [entries.map((entry) => incident(entry, of(entry))), of(undefined).map(article)] : h("div", { class: "nothing", role: "status" }, h("p", {}, h("b", {}, "Nothing found.")),
      h("p", {}, answer.nothing || (filtered() ? "No finding matches these filters." : "No findings."))),
    after("findings", values, answer, { about: true, noun: "finding", first: "The newest", own:
      filtered() ? h("button", { type: "button", id: "clear", onclick: () => state.set(Object.fromEntries([...FILTERS, "limit", "id"].map((name) => [name, ""])), { push: true }) }, "Clear the filters") : null }));
}

const FILTERS = ["severity", "code", "text", "group", "client", "since", "until"];
const filtered = () => FILTERS.some((name) => state.get(name));

/** A finding; unfolded, with what to change and the lines that prove it. The address names the one that was unfolded last. */
function finding(row, open, several) {
  const more = h("div", { class: "more" });
  const turned = async ({ target }) => {
    if (target.open || state.get("id") === row.id) state.set({ id: target.open ? row.id : "" }, { tell: false });
    if (!target.open || more.firstChild) return;
    const { rows: [whole] } = await fetchRows("finding", { id: row.id, limit: 1 });
    put(more, h("h3", {}, "What to change"), h("p", {}, printable(whole?.advice ?? "-", 1200)),
      h("p", {}, h("a", { href: state.groupLink(row.cluster, row.group_id, { from: row.occurred_at - AROUND_MS, to: row.occurred_at + AROUND_MS }) }, `The timeline of ${printable(row.group_id, 60)}`)),
      h("h3", {}, "Evidence"), linesBelow([row.id], [row.group_id, row.member_id, row.client_id]),
      h("p", { class: "note" }, "The same in a terminal: ", h("code", {}, `rebalance evidence ${row.id} --lakehouse DIR`)));
  };
  const where = [h("span", { class: "t" }, instant(row.occurred_at)), printable(row.group_id, 60), row.who === "-" ? null : row.who, several ? printable(row.cluster, 40) : null];
  const summary = h("summary", { "data-key": row.id }, h("h2", {}, symbol(row.severity.toLowerCase(), row.severity), row.code), where.filter(Boolean).map((part) => h("span", { class: "note" }, part)), h("span", { class: "message" }, printable(row.message, 1200)));
  return h("details", { class: `finding ${row.severity.toLowerCase()}`, id: `finding-${row.id}`, open, ontoggle: turned }, summary, more);
}

export function press(key) {
  if (key !== "j" && key !== "k") return;
  const all = [...document.querySelectorAll(".finding > summary")];
  const here = all.indexOf(document.activeElement);
  const next = all[Math.max(0, Math.min(all.length - 1, here < 0 ? 0 : here + (key === "j" ? 1 : -1)))];
  next?.closest("details:not(.finding)")?.setAttribute("open", "");
  next?.focus();
}
