// A group: what happened, its timeline, and the same as tables.
import { columns, MOST_ROWS, result, when } from "./answers.js";
import { ask, fetchJson, rows } from "./api.js";
import { around } from "./axis.js";
import { h, panel, printable, put, table } from "./dom.js";
import { tabs } from "./filters.js";
import { bound, count, duration, instant, many, parts as timeParts, shortMember } from "./format.js";
import { calm, gaps, idsOf, incidents } from "./judged.js";
import { legend, symbol, swatch } from "./looks.js";
import { lookOfEnd } from "./timeline_rows.js";
import * as state from "./state.js";
import { Timeline } from "./timeline.js";

const MOST = 5000;
const DETAIL = 4000; // rows of requests or heartbeats that one picture can still show
const TICKS_MS = 600000; // in longer times one heartbeat cannot be told from the next
const TABS = [["rebalances", "Rebalances"], ["members", "Members"], ["findings", "Findings"], ...(state.saved ? [] : [["steps", "Step by step"]])];

export const keys = [["drag", "zoom; with Shift: move"], ["← →", "move"], ["+ −", "zoom"], ["0", "the whole time"], ["n p", "next, previous rebalance"], ["Enter", "open the rebalance"]];
export const title = () => printable(state.get("group"), 60) || "Group";
export const press = (key) => (["n", "p", "+", "-", "0"].includes(key) || (key === "Enter" && document.activeElement === document.body)) && timeline?.key(new KeyboardEvent("keydown", { key }));

let timeline = null;
let parts = null;

export async function draw(main) {
  const [cluster, group] = [state.get("cluster"), state.get("group")];
  if (!group || !cluster) {
    put(main, h("div", { class: "state" }, h("h1", {}, "Which group?"), h("p", {}, h("a", { href: state.link("/groups", { cluster }) }, "All groups"))));
    return;
  }
  const of = { cluster, group };
  const [{ about, states, rebalances, findings, members }, attention] = await Promise.all([fetchJson("group", of), fetchJson("attention", of)]);
  const silences = ask("silences", { ...of, limit: MOST }); // it looks at every heartbeat: the timeline does not wait for it
  const lag = rows("lag", of); // it looks at every poll
  if (!about.rows.length) {
    put(main, h("div", { class: "state" }, h("h1", {}, printable(group, 60)), h("p", {}, about.nothing || "The logs do not mention this group."), h("p", {}, h("a", { href: state.link("/groups", { cluster }) }, "All groups"))));
    timeline = null;
    return;
  }
  if (!timeline || !main.contains(timeline.element)) frame(main, of);
  const away = attention.entries.filter((entry) => entry.away).map((entry) => entry.away);
  const span = period(attention, [...rebalances.rows, ...findings.rows, ...members.rows, ...away]);
  const data = {
    states: states.rows, rebalances: rebalances.rows, findings: findings.rows, memberships: members.rows, away, ...span,
  };
  const [from, to] = [state.number("from"), state.number("to")];
  timeline.update(data, from !== null && to !== null && to > from ? { from, to } : null);
  put(parts.top, head(about.rows[0], attention));
  const shows = (entry) => h("button", { type: "button", class: "show", onclick: () => show(entry, timeline.data) }, "Show");
  put(parts.entries, attention.entries.length ? panel("What needs attention", attention.counts, incidents(attention, shows)) : null, gaps(attention));
  const cut = [states, rebalances, findings, members].some((each) => each.cut);
  put(parts.cut, cut ? `Only the first ${count(MOST)} rows of each kind are shown.` : "");
  await tables(data, of);
  timeline.add({ silences: (await silences).rows });
  timeline.add({ lag: (await lag).rows });
}

/** From when to when there is something to show, and when something happens first. */
function period({ clusters }, rows) {
  const begins = rows.map((row) => row.started_at ?? row.occurred_at ?? row.joined_at ?? row.from).filter(Boolean);
  const ends = rows.map((row) => row.ended_at ?? row.occurred_at ?? row.to).filter(Boolean);
  const lines = clusters.flatMap((each) => [each.first_at, each.last_at]);
  const [from, to] = [Math.min(...lines, ...begins), Math.max(...lines, ...ends)];
  return { first: Math.min(...begins), from, to, day: timeParts(from)[0] === timeParts(to)[0] };
}

function frame(main, of) {
  timeline = new Timeline({
    open: (row) => { location.href = state.rebalanceLink({ ...row, cluster: of.cluster, group_id: of.group }); },
    href: (row) => state.rebalanceLink(row),
    mark: (row) => { state.set({ tab: "findings", finding: row.id }, { push: true }); document.getElementById("tabs").scrollIntoView({ block: "start" }); },
    moved: (from, to) => state.path() === "/group" && state.set({ from, to }, { tell: false }),
    drawn: (looks) => put(parts.legend, legend(looks, h("p", { class: "note" }, "A flag in a lane: this client caused the rebalance that begins there. Small ticks: heartbeats. Drag to zoom, with Shift to move."))),
    detail: async (from, to) => {
      if (state.saved) return null;
      const values = { ...of, since: from, until: to, limit: DETAIL };
      const [requests, heartbeats, lag] = await Promise.all([rows("requests", values), rows(to - from > TICKS_MS ? "heartbeat_runs" : "heartbeats", values), rows("lag", values)]);
      // Half of the requests would be taken for all of them: so none, until the part that is shown is short enough.
      put(parts.detail, requests.cut || heartbeats.cut ? "Zoom in to see heartbeats and how long joins and syncs waited." : "");
      return { requests: requests.cut ? [] : requests.rows, heartbeats: heartbeats.cut ? [] : heartbeats.rows, lag: lag.rows };
    },
  });
  parts = { top: h("div"), cut: h("p", { class: "note" }), detail: h("p", { class: "note", role: "status" }), tabs: h("div", { id: "tabs" }), entries: h("div"), legend: h("div") };
  put(main, parts.top, h("section", { "aria-label": "Timeline" }, timeline.element, parts.detail, parts.cut,
    parts.legend), parts.entries, parts.tabs);
}

function head(row, attention) {
  const facts = [
    [row.state, row.since === null ? "" : `since ${instant(row.since, 0)}`], [count(row.members), row.members === 1 ? "member" : "members"],
    [`${row.group_protocol === "classic" ? "generation" : "group epoch"} ${count(row.generation)}`, ""], [count(row.rebalances), "rebalances besides start-ups"],
    [bound("total_ms", row) + duration(row.total_ms), "of rebalancing"], [count(row.findings), row.findings === 1 ? "finding" : "findings"],
  ];
  return [
    h("p", { class: "crumbs" }, h("a", { href: state.link("/", { cluster: row.cluster }) }, printable(row.cluster, 40)), " / ", h("a", { href: state.link("/groups", { cluster: row.cluster }) }, "groups"), ` / ${row.group_protocol} protocol`),
    h("div", { class: "head" }, h("h1", {}, printable(row.group_id, 80)), h("ul", { class: "facts line" }, facts.map(([value, label]) => h("li", {}, h("b", {}, value), " ", label)))),
    attention.entries.length ? null : calm(attention),
    row.group_protocol === "share" ? h("p", { class: "note" }, "Share groups have no committed offsets: records are delivered again one by one.") : null,
  ];
}

const SOON = 1000; // ms: a removal and its rebalance may be so far apart in two logs

/** Shows a whole incident: what a broker did, its rebalances, and the silences before. */
function show(entry, { findings, silences }) {
  const members = new Set(findings.filter((row) => idsOf(entry).includes(row.id)).map((row) => row.member_id));
  const its = silences.filter((row) => (entry.away || members.has(row.member_id)) && row.silent_from <= entry.last_at && row.silent_until >= entry.first_at - SOON);
  const { from, to } = around(Math.min(entry.first_at, ...its.map((row) => row.silent_from)), Math.max(entry.last_at, ...its.map((row) => row.silent_until)));
  timeline.look(from, to);
  timeline.canvas.focus();
  timeline.element.scrollIntoView({ block: "nearest" });
}

async function tables(data, of) {
  const chosen = TABS.some(([name]) => name === state.get("tab")) ? state.get("tab") : "rebalances";
  const counts = { rebalances: data.rebalances.length, members: data.memberships.length, findings: data.findings.length };
  const links = TABS.map(([name, label]) => [{ ...of, tab: name, finding: "" }, counts[name] === undefined ? label : `${label} ${count(counts[name])}`]);
  put(parts.tabs, tabs("/group", links, ({ tab }) => tab === chosen, "Tables"), h("div", { id: "table" }, await TABLES[chosen](data, of)));
}

const SHOWN = 500; // rows of a table

/** Columns without those sparse ones that no row fills. */
const filled = (columns, rows) => columns.filter(({ sparse, cell }) => !sparse || rows.some((row) => cell(row) !== "-"));

const TABLES = {
  rebalances: ({ rebalances, day }) => table(filled(columns(rebalances,
    { label: "Started", class: "t main", cell: (row) => h("a", { href: state.rebalanceLink(row) }, when(row.started_at, { day })) },
    { label: "Cause", class: "nowrap", cell: (row) => [swatch(row.look), row.called] },
    "by",
    { label: "Join + sync", number: true, cell: (row) => (row.join_ms === null ? "-" : `${duration(row.join_ms)} + ${duration(row.sync_ms)}`) },
    "total_ms", "unavailable_partition_ms",
    { label: "Read twice", number: true, cell: (row) => row.read_twice, sparse: true },
    { label: "Lag added", number: true, cell: (row) => row.lag, sparse: true },
    { label: "Moved", number: true, cell: (row) => (row.partitions_moved === null ? "-" : `${row.partitions_moved} of ${row.partitions ?? "?"}`) },
    { label: "Members", number: true, cell: (row) => `${row.members_before ?? "?"} → ${row.members_after ?? "?"}` },
    { label: "Outcome", cell: (row) => [row.outcome, row.note ? h("span", { class: "note" }, ` ${row.note}`) : null] },
    { label: "Gen.", number: true, cell: (row) => row.generation ?? "-" }), rebalances), rebalances.toReversed(), { most: SHOWN, caption: "Rebalances, the newest first", key: (row) => row.id, empty: "No rebalance yet." }),
  members: ({ memberships, day }) => table(columns(memberships,
    { label: "Client", class: "main", cell: (row) => [row.name, " ", h("code", { title: printable(row.member_id) }, shortMember(row.member_id))] },
    { label: "Joined", class: "t", cell: (row) => (row.joined_at === null ? "from before" : when(row.joined_at, { day })) },
    { label: "Ended", class: "t", cell: (row) => (row.ended_at === null ? h("b", {}, "there now") : [symbol(lookOfEnd(row.end_kind)), row.end_kind, " ", when(row.ended_at, { day })]) },
    "heartbeats", "longest_gap_ms", "session_timeout_ms", "rebalance_timeout_ms Poll interval", "software"), memberships, { most: SHOWN, caption: "Memberships, current ones first" }),
  findings: ({ findings, day }) => table(columns(findings,
    { label: "At", class: "t main", cell: (row) => when(row.occurred_at, { day }) },
    { label: "Finding", cell: (row) => [symbol(row.severity.toLowerCase(), row.severity), row.code] },
    "who",
    { label: "What", cell: (row) => [printable(row.message, 600), h("p", { class: "note" }, printable(row.advice, 600))] },
    { label: "Id", cell: (row) => h("code", {}, row.id) }), findings.toReversed(), { most: SHOWN, caption: "Findings, the newest first", key: (row) => row.id, look: (row) => (row.id === state.get("finding") ? "chosen" : null), empty: "No findings." }),
  steps: async (_, of) => {
    const values = { ...of, limit: Math.min(state.number("limit") ?? SHOWN, MOST_ROWS) };
    return result("timeline", values, await ask("timeline", values), { caption: "What happened, step by step", about: true });
  },
};
