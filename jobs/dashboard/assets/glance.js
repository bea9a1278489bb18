// Clusters at a glance: what happened, in which state all groups are, when it was bad, which groups are the worst, and whether this is up to date.
import { ask, fetchJson } from "./api.js";
import { columns } from "./chart.js";
import { h, printable, put, table } from "./dom.js";
import { clock, count, duration, instant, many, zoneName } from "./format.js";
import { calm, gaps } from "./judged.js";
import { looks, swatch, symbol } from "./looks.js";
import * as state from "./state.js";

const SPANS = [["1h", "1 hour"], ["24h", "24 hours"], ["7d", "7 days"], ["", "all"]];
const STEPS = [1, 5, 10, 15, 30, 60, 300, 600, 900, 1800, 3600, 7200, 21600, 86400, 604800].map((seconds) => seconds * 1000);
const COLUMNS = 80;
const STATES = { PreparingRebalance: "preparing", CompletingRebalance: "completing", Reconciling: "reconciling", Stable: "stable", Empty: "empty", Dead: "dead" };
const LETTERS = { preparing: "P", completing: "A", reconciling: "R", empty: "E", dead: "D" };

export const title = () => "Clusters at a glance";

export async function draw(main) {
  const cluster = state.get("cluster");
  const since = state.get("since");
  const of = { cluster, since };
  const [attention, health] = await Promise.all([fetchJson("attention", of), fetchJson("health")]);
  if (!attention.clusters.length) {
    put(main, h("div", { class: "state" }, h("h1", {}, "Nothing to show yet"), h("p", {}, attention.hint || "No line read so far names a consumer group."), h("p", { class: "note" }, health.summary)));
    return;
  }
  const first = Math.min(...attention.clusters.map((each) => each.first_at));
  const last = Math.max(...attention.clusters.map((each) => each.last_at));
  const from = since ? Math.max(first, last - SPAN_MS[since]) : first;
  const step = STEPS.find((each) => (last - from) / each <= COLUMNS) ?? STEPS.at(-1);
  // The questions count back 24 h unless they are told otherwise: "all" is told as the time of the first line.
  const times = { cluster, since: since || iso(first) };
  const [states, worst, activity, fresh, all] = await Promise.all([
    ask("states", { cluster }), ask("worst", { ...times, limit: 10 }), ask("activity", { ...times, step: `${step}ms` }), ask("findings", { ...times, limit: 6 }), looks(),
  ]);
  put(main,
    h("div", { class: "head" }, h("h1", {}, attention.clusters.length === 1 ? printable(attention.clusters[0].cluster, 60) : many(attention.clusters.length, "cluster")),
      h("span", { class: "note" }, `${instant(from, 0)} to ${instant(last, 0)} ${zoneName()} (${duration(last - from)})`),
      h("div", { class: "spans", role: "group", "aria-label": "How far back" }, SPANS.map(([value, label]) => h("button", { type: "button", "data-key": `since-${value}`, "aria-pressed": String(since === value), onclick: () => state.set({ since: value }, { push: true }) }, label)))),
    lead(attention), gaps(attention),
    stateBar(states.rows),
    h("div", { class: "grid2" },
      panel("What happened", attention.all > 8 ? `8 of ${count(attention.all)}, the gravest first` : "the gravest first", incidents(attention), "wide"),
      panel("Rebalances over time", `by cause, ${duration(step)} a column`, chart(activity.rows, step, from, last, all, "rebalances", "rebalances", (value) => count(Math.round(value)))),
      panel("Partitions without an owner over time", "seconds, summed over all partitions", chart(activity.rows, step, from, last, all, "unavailable_partition_ms", "time without an owner", (value) => duration(value))),
      panel("Worst groups", "by time without an owner", worstGroups(worst)),
      h("div", { class: "column" }, panel("Newest findings", "", newest(fresh)), panel("Pipeline", "", pipeline(health, attention)))));
}

const SPAN_MS = { "1h": 3.6e6, "24h": 8.64e7, "7d": 6.048e8 };
const iso = (ms) => new Date(ms).toISOString().replace("Z", "+00:00");

function panel(title, note, body, look = "") {
  return h("section", { class: `panel ${look}`.trim() }, h("h2", {}, title, note ? h("small", {}, ` ${note}`) : null), body);
}

function lead(attention) {
  if (!attention.all) return calm(attention);
  const [entry] = attention.entries;
  return h("p", { class: "lead" }, symbol(entry.severity.toLowerCase(), entry.severity), h("b", {}, `${many(attention.all, "incident")}${attention.counts.ERROR ? `, ${many(attention.counts.ERROR, "error")}` : ""}. `), `First: ${entry.code}, ${entry.subject}${entry.clients ? `, ${entry.clients}` : ""}.`);
}

function stateBar(rows) {
  return h("ul", { class: "facts" }, rows.map((row) => {
    const look = STATES[row.state];
    return h("li", { class: "fact" }, h("a", { href: state.link("/groups", { cluster: state.get("cluster"), state: row.state }) }, h("b", {}, look ? swatch(look, LETTERS[look]) : null, count(row.groups))),
      h("span", {}, `${row.state}${row.group_protocol === "classic" ? "" : `, ${row.group_protocol} protocol`}${row.members ? `, ${many(row.members, "member")}` : ""}`));
  }));
}

function incidents(attention) {
  return h("ol", { class: "incidents" }, attention.entries.slice(0, 8).map((entry) => {
    const one = entry.groups.length === 1;
    const room = Math.max((entry.last_at - entry.first_at) * 0.4, 15000);
    const around = { from: Math.round(entry.first_at - room), to: Math.round(entry.last_at + room) };
    return h("li", { class: `entry ${entry.severity.toLowerCase()}` },
      h("h3", {}, symbol(entry.severity.toLowerCase(), entry.severity), entry.code, " ", one ? h("a", { href: state.groupLink(entry.cluster, entry.groups[0], around) }, entry.subject) : entry.subject, " ",
        h("small", {}, `${entry.times > 1 && one ? `${entry.times} times, ` : ""}${clock(entry.first_at, 0)}${entry.last_at - entry.first_at >= 1000 ? ` to ${clock(entry.last_at, 0)}` : ""}${entry.clients ? `, ${entry.clients}` : ""}`)),
      h("p", {}, entry.message),
      one ? null : h("details", {}, h("summary", {}, many(entry.groups.length, "group")), entry.groups.map((group) => [h("a", { href: state.groupLink(entry.cluster, group, around) }, printable(group, 60)), " "])),
      entry.cost ? h("p", { class: "note" }, entry.cost) : null);
  }));
}

/** Columns by cause. rows: of the question `activity`. */
function chart(rows, step, from, to, all, column, noun, format) {
  const letters = new Map(all.map((look) => [look.name, look.letter]));
  const lookOf = new Map(all.flatMap((look) => look.causes.map((cause) => [cause, look.name])));
  const steps = new Map();
  for (const row of rows) {
    row.look = lookOf.get(row.cause) ?? "changed";
    if (!row[column]) continue;
    if (!steps.has(row.began_at)) steps.set(row.began_at, []);
    steps.get(row.began_at).push({ look: row.look, letter: letters.get(row.look), value: row[column], tip: `${format(row[column])} ${row.cause === "STARTUP" ? "start-up" : row.cause}` });
  }
  if (!steps.size) return h("p", { class: "note" }, column === "rebalances" ? "No rebalance in this time." : "None in this time, or no request log that would show it.");
  const order = all.map((look) => look.name);
  for (const parts of steps.values()) parts.sort((a, b) => order.indexOf(a.look) - order.indexOf(b.look));
  const seen = new Set(rows.map((row) => row.look));
  return [
    columns({ label: `${noun} over time, by cause; the table below holds the same`, steps: [...steps].map(([at, parts]) => ({ at, parts })), step, from: Math.floor(from / step) * step, to, format }),
    h("ul", { class: "legend" }, all.filter((look) => seen.has(look.name)).map((look) => h("li", {}, swatch(look.name, look.letter), look.meaning.replace("rebalance: ", "")))),
    h("details", {}, h("summary", { class: "note" }, "As a table"), table([
      { label: "From", class: "t main", cell: (row) => instant(row.began_at, 0) }, { label: "Cause", cell: (row) => [swatch(row.look, letters.get(row.look)), row.cause] },
      { label: "Rebalances", number: true, cell: (row) => count(row.rebalances) }, { label: "Groups", number: true, cell: (row) => count(row.groups) }, { label: "Total", number: true, cell: (row) => duration(row.total_ms) },
      { label: "Without owner", number: true, cell: (row) => duration(row.unavailable_partition_ms) }], rows.slice(0, 300), { caption: noun })),
  ];
}

function worstGroups(worst) {
  return table([
    { label: "Group", class: "main", cell: (row) => [row.errors ? symbol("error", many(row.errors, "error")) : null, h("a", { href: state.groupLink(row.cluster, row.group_id) }, printable(row.group_id, 60))] },
    { label: "Mostly", cell: (row) => row.cause },
    { label: "Rebalances", number: true, cell: (row) => count(row.rebalances) },
    { label: "Total", number: true, cell: (row) => duration(row.total_ms) },
    { label: "Without owner", number: true, cell: (row) => duration(row.unavailable_partition_ms) },
  ], worst.rows, { caption: "Worst groups", empty: worst.nothing || "No group rebalanced in this time." });
}

function newest(fresh) {
  return table([
    { label: "At", class: "t main", cell: (row) => clock(row.occurred_at, 0) },
    { label: "Finding", class: "nowrap", cell: (row) => [symbol(row.severity.toLowerCase(), row.severity), row.code] },
    { label: "Group", cell: (row) => h("a", { href: state.groupLink(row.cluster, row.group_id, { tab: "findings", finding: row.id }) }, printable(row.group_id, 60)) },
  ], fresh.rows, { caption: "Newest findings", empty: "No findings in this time." });
}

function pipeline(health, attention) {
  const lines = attention.clusters.map((each) => h("p", { class: "note" }, h("b", {}, printable(each.cluster, 40)), ` ${many(each.brokers.length, "source")}${each.lines ? `, ${count(each.lines.lines_read)} lines read, ${count(each.lines.events)} about groups, ${count(each.lines.quarantined)} unreadable` : ""}; newest ${instant(each.last_at, 0)}`));
  const verdict = health.ok === null ? h("p", {}, symbol("info"), health.summary) : health.ok ? h("p", {}, symbol("good"), h("b", {}, "OK: "), health.summary) : health.problems.map((each) => h("article", { class: "entry error" }, h("p", {}, symbol("error", "problem"), h("b", {}, each.code), " ", each.message), h("p", { class: "note" }, each.advice)));
  const batches = health.batches ?? [];
  return [verdict, lines, batches.length ? h("details", {}, h("summary", { class: "note" }, `The last ${many(batches.length, "micro-batch").replace("batchs", "batches")}`), table([
    { label: "Ended", class: "t main", cell: (row) => instant(row.occurred_at, 0) }, { label: "Query", cell: (row) => row.query }, { label: "Took", number: true, cell: (row) => duration(row.duration_ms) }, { label: "Rows", number: true, cell: (row) => count(row.input_rows) },
    { label: "Behind", number: true, cell: (row) => (health.running && row.lag_ms >= 0 ? duration(row.lag_ms) : "-") }], batches.toReversed().slice(0, 20), { caption: "Micro-batches" })) : null];
}
