// Findings by incident: what went wrong, what to change, and the log lines that prove it.
import { after, MOST_ROWS } from "./answers.js";
import { ask, fetchJson, rows as fetchRows } from "./api.js";
import { h, printable, put } from "./dom.js";
import { linesOf } from "./evidence.js";
import { instant } from "./format.js";
import { answered, filters, folded } from "./filters.js";
import { idsOf, rowOf } from "./judged.js";
import { symbol } from "./looks.js";
import * as state from "./state.js";

const ROWS = 50;
const AROUND_MS = 60_000; // of the group's timeline, before and after a finding

export const keys = [["j k", "next, previous finding"], ["Enter", "advice and evidence"], ["/", "search"]];
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

/** The findings of each incident below its row, in the order of the incidents; then those of none. */
function byIncident(rows, entries, article, open) {
  const incidentOf = new Map(entries.flatMap((entry) => idsOf(entry).map((id) => [id, entry])));
  const of = (entry) => rows.filter((row) => incidentOf.get(row.id) === entry);
  const card = (entry) => {
    const its = of(entry);
    return its.length ? h("details", { open: unfolded.get(entry.id) || its.includes(open), ontoggle: (event) => unfolded.set(entry.id, event.target.open) }, rowOf(entry, "summary"), its.map(article)) : null;
  };
  return [entries.map(card), of(undefined).map(article)];
}

async function list(named, answer, values, id, entries) {
  const open = [...named, ...answer.rows].find((row) => row.id === id || (named.length && row === named[0]));
  const shown = open ? await details(open) : null;
  const article = (row) => finding(row, row === open ? shown : null, several);
  const several = new Set(answer.rows.map((row) => row.cluster)).size > 1;
  return h("section", { class: "result", "aria-label": "Findings" },
    id && !open ? h("p", { class: "notice" }, `No finding has the id ${printable(id, 20)}.`) : null,
    named.length ? [h("p", { class: "note" }, "The finding in this link does not match the filters:"), article(named[0]), h("hr")] : null,
    answer.rows.length ? byIncident(answer.rows, entries, article, open) : h("div", { class: "nothing", role: "status" }, h("p", {}, h("b", {}, "Nothing found.")),
      h("p", {}, answer.nothing || (filtered() ? "No finding matches these filters." : "No findings."))),
    after("findings", values, answer, { about: true, noun: "finding", first: "The newest", own:
      filtered() ? h("button", { type: "button", id: "clear", onclick: () => state.set(Object.fromEntries([...FILTERS, "limit", "id"].map((name) => [name, ""])), { push: true }) }, "Clear the filters") : null }));
}

const FILTERS = ["severity", "code", "text", "group", "client", "since", "until"];
const filtered = () => FILTERS.some((name) => state.get(name));

function finding(row, unfolded, several) {
  const place = `finding-${row.id}`;
  const fold = () => state.set({ id: unfolded ? "" : row.id });
  return h("article", { class: `finding ${row.severity.toLowerCase()}`, id: place, tabindex: "-1", "aria-labelledby": `${place}-title` },
    h("header", {}, h("h2", { id: `${place}-title` }, symbol(row.severity.toLowerCase(), row.severity), row.code),
    h("p", { class: "where" },
      h("span", { class: "t" }, instant(row.occurred_at)),
      h("a", { href: state.groupLink(row.cluster, row.group_id, { from: row.occurred_at - AROUND_MS, to: row.occurred_at + AROUND_MS }) }, printable(row.group_id, 60)),
      row.who === "-" ? null : h("span", {}, row.who),
      several ? h("span", { class: "dim" }, printable(row.cluster, 40)) : null)),
    h("button", { type: "button", class: "unfold", "data-key": row.id, "aria-expanded": String(Boolean(unfolded)), "aria-controls": unfolded ? `${place}-more` : null, onclick: fold },
      unfolded ? "Fold" : "Advice and evidence", h("span", { class: "sr" }, ` of ${row.code}`)),
    h("p", { class: "message" }, printable(row.message, 1200)),
    unfolded ? h("div", { class: "more", id: `${place}-more` }, unfolded) : null);
}

async function details(row) {
  const [{ rows: [whole] }, lines] = await Promise.all([fetchRows("finding", { id: row.id, limit: 1 }), linesOf([row.id], [row.group_id, row.member_id, row.client_id])]);
  return [
    h("h3", {}, "What to change"), h("p", {}, printable(whole?.advice ?? "-", 1200)),
    h("h3", {}, "Evidence"),
    lines,
    h("p", { class: "note" }, "The same in a terminal: ", h("code", {}, `rebalance evidence ${row.id} --lakehouse DIR`)),
  ];
}

export function press(key) {
  if (key !== "j" && key !== "k") return;
  const all = [...document.querySelectorAll(".finding .unfold")];
  const here = all.findIndex((each) => each.closest(".finding").contains(document.activeElement));
  const next = all[Math.max(0, Math.min(all.length - 1, here < 0 ? 0 : here + (key === "j" ? 1 : -1)))];
  next?.closest("details")?.setAttribute("open", "");
  next?.focus({ preventScroll: true });
  next?.closest(".finding").scrollIntoView({ block: "nearest" });
}
