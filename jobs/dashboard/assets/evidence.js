// A log line as evidence: the fields that matter in it are marked, and the rest of a long line is folded.
import { h, printable } from "./dom.js";

const LONG = 240; // characters
const BEGIN = 25; // of a long line: its time
const FIELDS = String.raw`\(reason: (?:[^()]|\([^)]*\))*\)|"reason":"[^"]*"|"?[Gg]eneration(?:Id)?"?[ :=]+-?\d+|"?(?:member|group)?[Ee]poch"?[ :=]+-?\d+|"errorCode":-?[1-9]\d*|"requestApiKeyName":"\w+"|\b[A-Z]\w*Exception\b|\b(?:ERROR|FATAL)\b`;

/** names: of the group, its members and clients, as they are in the tables. */
export function evidenceLine(text, names) {
  const known = [...new Set(names)].filter(Boolean).map((name) => printable(name, 2000)).sort((a, b) => b.length - a.length);
  const parts = text.split(new RegExp(`(${[...known.map((name) => name.replace(/[^\w\s]/g, "\\$&")), FIELDS].join("|")})`));
  const whole = h("pre", { class: "line", tabindex: "0" }, parts.map((part, index) => (index % 2 ? h("mark", {}, part) : part)));
  if (text.length <= LONG) return whole;
  const fields = [...new Set(parts.filter((_, index) => index % 2))].map((part) => [" ", h("mark", {}, part)]);
  return h("details", {}, h("summary", { class: "line" }, text.slice(0, BEGIN), " …", fields), whole);
}
