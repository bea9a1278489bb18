// Times, durations and names as rebalance prints them (jobs/common/times.py, jobs/common/text.py).
import { printable } from "./dom.js";
import { zone } from "./state.js";

const UNITS = [[172800, 86400, "d", 3600, "h"], [3600, 3600, "h", 60, "min"], [60, 60, "min", 1, "s"]];

/** A duration at a glance: 20 ms, 6.0 s, 3 min 50 s, 2 h 5 min, 3 d 4 h. */
export function duration(ms) {
  if (ms === null || ms === undefined) return "-";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 59950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  const [, size, unit, smaller, smallerUnit] = UNITS.find(([from]) => seconds >= from);
  const rest = Math.floor((seconds % size) / smaller);
  return `${Math.floor(seconds / size)} ${unit}` + (rest ? ` ${rest} ${smallerUnit}` : "");
}

const two = (number) => String(number).padStart(2, "0");

const TIMES_FROM_MS = 31536000000; // what is earlier is the number of a line without a time (coordinator_model/events.py)

/** The parts of a time in the zone that is shown: [2026-11-21, 06:12:08, .398]. */
export function parts(ms) {
  if (ms < TIMES_FROM_MS) return ["", `line ${Math.max(Math.round(ms), 0)}`, ""];
  const at = new Date(ms);
  const utc = zone() === "utc";
  const get = (name) => at[(utc ? "getUTC" : "get") + name]();
  return [
    `${get("FullYear")}-${two(get("Month") + 1)}-${two(get("Date"))}`,
    `${two(get("Hours"))}:${two(get("Minutes"))}:${two(get("Seconds"))}`,
    "." + String(get("Milliseconds")).padStart(3, "0"),
  ];
}

/** 2026-11-21 06:12:08.398; `digits` 0: without milliseconds. */
export function instant(ms, digits = 3) {
  if (ms === null || ms === undefined) return "-";
  const [day, clock, rest] = parts(ms);
  return `${day} ${clock}${digits ? rest : ""}`.trim();
}

/** A time as questions take it. */
export const iso = (ms) => new Date(ms).toISOString().replace("Z", "+00:00");

/** 06:12:08.398, on whatever day. */
export function clock(ms, digits = 3) {
  if (ms === null || ms === undefined) return "-";
  const [, time, rest] = parts(ms);
  return time + (digits ? rest : "");
}

/** 2026-11-21 06:12:08 to 06:15:00; the day of the end where it is another one. */
export const between = (from, to) => `${instant(from, 0)} to ${parts(from)[0] === parts(to)[0] ? clock(to, 0) : instant(to, 0)}`;

/** What the times on the page are. */
export function zoneName() {
  if (zone() === "utc") return "UTC";
  const minutes = -new Date().getTimezoneOffset();
  const sign = minutes < 0 ? "-" : "+";
  return `local time, UTC${sign}${two(Math.floor(Math.abs(minutes) / 60))}:${two(Math.abs(minutes) % 60)}`;
}

/** 12,345 */
export const count = (number) => (number === null || number === undefined ? "-" : number.toLocaleString("en-US"));

/** "1 rebalance", "2 rebalances". */
export const many = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

const UUID = /([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** The part of a member id that differs between members. */
export function shortMember(id) {
  if (!id) return "";
  const match = UUID.exec(id.slice(-40));
  if (match) return match[1];
  return printable(id.length <= 16 ? id : "…" + id.slice(-15), 40);
}

/** The sign before a sum of which some parts are not known: the row names it. */
export const bound = (name, row) => ((row.at_least ?? "").split(", ").includes(name) ? "≥ " : "");
