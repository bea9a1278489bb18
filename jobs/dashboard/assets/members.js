// Members and clients: who causes rebalances, who comes close to losing its session, and who was a member when.
import { cell, MOST_ROWS, plainColumns, result, share, shared, when } from "./answers.js";
import { ask } from "./api.js";
import { h, printable, put } from "./dom.js";
import { bound, count, duration } from "./format.js";
import { answered, filters, folded, tabs } from "./filters.js";
import * as state from "./state.js";

const ROWS = 50;
const LOW = 40; // percent of session.timeout.ms below which a healthy member stays, as sql/heartbeats.sql says

export const title = () => "Members and clients";

const GROUP = { name: "group", label: "Group", placeholder: "all" };
const CLIENT = { name: "client", label: "client.id", placeholder: "all" };
const MEMBER = { name: "member", label: "Member id contains", placeholder: "any" };
const TIMES = [{ name: "since", label: "Since", kind: "time", placeholder: "15m, 06:12" }, { name: "until", label: "Until", kind: "time", placeholder: "newest" }];
const BY = { name: "by", label: "By", kind: "buttons", choices: [["client", "Client"], ["application", "Application"], ["host", "Host"], ["software", "Software version"]] };
const SESSION = { name: "session", label: "The session", kind: "buttons", choices: [["", "Survived"], ["expired", "Expired"], ["any", "Any"]] };
const CHOOSING = [BY, SESSION]; // what a question is asked for
const PERCENT = { name: "percent", label: "Silent, % of timeout", kind: "number", placeholder: String(LOW) };

/** Each view asks one question. `fields`: its filters; `more`: what those that are no parameters of the question come to. */
const VIEWS = [
  { view: "", label: "Culprits", fields: [BY, GROUP, ...TIMES],
    lead: "Clients ranked by the time they cost. Start-ups are left out.",
    question: () => (byClient() ? "culprits" : "culprits-by"), hidden: ["groups"],
    more: () => (byClient() ? {} : { by: state.get("by") }), empty: "No client caused a rebalance in this time." },
  { view: "near", label: "Near misses", fields: [SESSION, GROUP, CLIENT, MEMBER, PERCENT, ...TIMES],
    lead: "Silences that used up much of session.timeout.ms but ended in time, oldest first. At 100 % the coordinator removes the member and the group rebalances; a healthy member stays below 40 %.",
    question: () => "silences",
    more: () => ({ session: { "": "survived", any: "" }[state.get("session")] ?? state.get("session") }), empty: "No member was silent for that long." },
  { view: "margins", label: "Heartbeat margins", fields: [GROUP, CLIENT, MEMBER, ...TIMES],
    lead: "How close each member came to losing its session: its longest time between two signs of life, as a share of session.timeout.ms.",
    question: () => "heartbeats", empty: "There are no heartbeats in the tables." },
  { view: "members", label: "Memberships", fields: [GROUP, CLIENT, MEMBER, ...TIMES],
    lead: "Every membership and how it ended, current ones first.",
    question: () => "members", hidden: ["rebalance_timeout_ms", "heartbeats", "id"], empty: "Nobody was a member in this time." },
];

const byClient = () => !["application", "host", "software"].includes(state.get("by"));

let frame = null;

export async function draw(main) {
  const view = VIEWS.find((each) => each.view === state.get("view")) ?? VIEWS[0];
  if (frame === null || frame.view !== view || !main.contains(frame.out)) frame = framed(view);
  frame.form.sync();
  put(frame.tabs, tabs("/members", VIEWS.map((each) => [{ ...kept(), view: each.view }, each.label]), (values) => values.view === view.view, "Views of members and clients"));
  const name = view.question();
  const values = { cluster: state.get("cluster"), ...view.more?.(), ...Object.fromEntries(view.fields.filter((field) => !CHOOSING.includes(field)).map(({ name }) => [name, state.get(name)])),
    limit: Math.min(state.number("limit") ?? ROWS, MOST_ROWS) };
  await answered(frame.out, async () => {
    const answer = await ask(name, values);
    const of = shared(answer);
    return result(name, values, answer, { columns: columnsOf(answer, of, view.hidden), shared: of, caption: view.label, empty: view.empty, about: true, key: keyOf });
  });
  if (!main.contains(frame.out)) put(main, frame.whole);
}

/** What stays when another view is chosen. */
const kept = () => Object.fromEntries(["cluster", "group", "client", "member", "since", "until"].map((name) => [name, state.get(name)]));

const keyOf = (row) => [row.cluster, row.group_id, row.culprit ?? row.client_id, row.client_host, row.member_id, row.silent_from ?? row.joined_at].join("|");

function framed(view) {
  const made = { view, tabs: h("div"), form: filters(view.fields, `Filter ${view.label.toLowerCase()}`), out: h("div", { class: "out" }) };
  made.whole = [h("div", { class: "head" }, h("h1", {}, title())), made.tabs, h("p", { class: "lead" }, view.lead), folded(made.form.form, view.fields.map((field) => field.name), "Filters"), made.out];
  return made;
}

/** The columns of an answer: some not as they are, and without those that say nothing here. */
function columnsOf(answer, of, hidden = []) {
  const most = answer.rows[0]?.total_ms; // the first row has the most
  const own = {
    client_id: { class: "main", cell: (row) => (row.client_id ? h("a", { href: state.link("/members", { ...kept(), view: "members", client: row.client_id }), title: "Its memberships" }, printable(row.client_id, 60)) : "-") },
    culprit: { class: "main", label: BY.choices.find(([name]) => name === state.get("by"))?.[1], cell: (row) => printable(row.culprit, 80) },
    total_ms: { label: "time", cell: (row) => share(most ? (100 * row.total_ms) / most : 0, bound("total_ms", row) + duration(row.total_ms)) },
    cause: { label: "main cause" },
    a_group: { label: "groups", cell: (row) => [cell("group_id", row.a_group, row), row.groups > 1 ? ` and ${count(row.groups - 1)} more` : ""] },
    used_percent: { label: "of the timeout", cell: (row) => (row.used_percent === null ? "-" : share(row.used_percent, `${count(row.used_percent)} %`, LOW)) },
    silent_from: { cell: (row) => h("a", { href: state.groupLink(row.cluster, row.group_id, { from: row.silent_from - 30_000, to: row.silent_until + 30_000 }) }, when(row.silent_from, of)) },
    expired: { label: "session", cell: (row) => ({ true: "expired", false: "survived" }[row.expired] ?? "began anew") },
    instance_id: { label: "static name" },
    joined_at: { label: "joined", cell: (row) => when(row.joined_at, of, 0) },
    last_at: { label: "last", cell: (row) => when(row.last_at, of, 0) },
    ended_at: { label: "ended", cell: (row) => (row.ended_at === null ? "lasts" : when(row.ended_at, of, 0)) },
    end_kind: { label: "how" },
  };
  const shown = plainColumns(answer, of).filter(({ name }) => !hidden.includes(name) && (!["instance_id", "software"].includes(name) || answer.rows.some((row) => row[name] !== null)));
  return shown.map((column) => ({ ...column, ...own[column.name] })).sort((a, b) => (b.class === "main") - (a.class === "main"));
}
