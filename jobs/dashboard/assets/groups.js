// All groups: their states now and what rebalances cost them. Filter and order are in the address.
import { columns } from "./answers.js";
import { ask } from "./api.js";
import { h, printable, put, table } from "./dom.js";
import { count, instant, many } from "./format.js";
import * as state from "./state.js";
import { stateSwatch } from "./timeline_draw.js";

const MOST = 20000;
const SHOWN = 300;
const ORDERS = { cost: ["what cost most", (a, b) => (b.total_ms ?? -1) - (a.total_ms ?? -1)], findings: ["most findings", (a, b) => b.findings - a.findings], rebalances: ["most rebalances", (a, b) => b.rebalances - a.rebalances], members: ["most members", (a, b) => (b.members ?? -1) - (a.members ?? -1)], name: ["name", () => 0] };

export const title = () => "Groups";
export const keys = [["/", "find a group"]];

export async function draw(main) {
  const answer = await ask("groups", { cluster: state.get("cluster"), limit: MOST });
  const find = state.get("find").toLowerCase();
  const only = state.get("state");
  const order = state.get("order") in ORDERS ? state.get("order") : "cost";
  const states = [...new Set(answer.rows.map((row) => row.state))];
  const found = answer.rows.filter((row) => (!only || row.state === only) && (!find || row.group_id.toLowerCase().includes(find)))
    .sort((a, b) => ORDERS[order][1](a, b) || (a.group_id < b.group_id ? -1 : 1));
  const many_clusters = new Set(answer.rows.map((row) => row.cluster)).size > 1;
  const part = (id) => main.querySelector(`#${id}`);
  if (!part("find")) {
    put(main, h("div", { class: "head" }, h("h1", {}, "Groups"), h("span", { class: "note", id: "found", role: "status" })), h("div", { class: "timeline-tools" },
      h("input", { type: "search", id: "find", placeholder: "group …  ( / )", "aria-label": "Find a group", value: state.get("find"), oninput: (event) => state.set({ find: event.target.value }) }),
      h("label", { class: "pick" }, "State ", h("select", { id: "state", onchange: (event) => state.set({ state: event.target.value }, { push: true }) })),
      h("label", { class: "pick" }, "Order ", h("select", { id: "order", onchange: (event) => state.set({ order: event.target.value }) }))), h("div", { id: "list" }));
  }
  put(part("state"), h("option", { value: "" }, "any"), states.map((name) => h("option", { value: name, selected: name === only }, name)));
  put(part("order"), Object.entries(ORDERS).map(([name, [label]]) => h("option", { value: name, selected: name === order }, label)));
  put(part("found"), `${count(found.length)} of ${many(answer.rows.length, "group")}${answer.cut ? `, the first ${count(MOST)}` : ""}`);
  put(part("list"), table(columns(found,
    { label: "Group", class: "main", cell: (row) => [h("a", { href: state.groupLink(row.cluster, row.group_id) }, printable(row.group_id, 80)), many_clusters ? h("span", { class: "dim" }, ` ${printable(row.cluster, 30)}`) : null] },
    { label: "State", cell: (row) => [stateSwatch(row.state), row.state, row.group_protocol === "classic" ? (row.protocol_type === null ? null : h("span", { class: "dim" }, ` ${printable(row.protocol_type, 30)}`)) : h("span", { class: "dim" }, ` ${row.group_protocol} protocol`)] },
    { label: "Since", class: "t", cell: (row) => (row.since === null ? "-" : instant(row.since, 0)) },
    "members", "rebalances", "total_ms", "last_cause", "findings"), found.slice(0, SHOWN), { caption: "Groups", key: (row) => row.group_id, empty: answer.nothing || "No group matches." }),
  found.length > SHOWN ? h("p", { class: "note" }, `${count(SHOWN)} are listed: type a part of the name to find others.`) : "");
}
