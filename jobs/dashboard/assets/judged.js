// What may be said where no entry is, and what could not be judged.
import { h } from "./dom.js";
import { symbol } from "./looks.js";

/** What the evidence allows to say of a time without entries. attention: of /api/attention. */
export const calm = (attention) => h("p", { class: "lead" }, symbol(attention.all_clear ? "good" : "info"), attention.calm);

/** What could not be judged, and what would tell. */
export function gaps(attention) {
  if (!attention.gaps.length) return null;
  return h("details", { class: "gaps", open: attention.entries.length ? null : "" }, h("summary", {}, `Not judged (${attention.gaps.length})`),
    h("ul", {}, attention.gaps.map((gap) => h("li", {}, gap.why, h("p", { class: "note" }, "Next: ", gap.next)))));
}
