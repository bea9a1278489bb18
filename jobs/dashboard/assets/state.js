// The state of a page is in its address, so that a link shows the same to everybody. The zone and the theme are the reader's own.

const listeners = new Set();

/** A value of the address; "" if it is not there. */
export const get = (name) => new URLSearchParams(location.search).get(name) ?? "";

/** A whole number of the address; null if there is none. */
export function number(name) {
  const text = get(name);
  return /^\d{1,15}$/.test(text) ? Number(text) : null;
}

/** Sets values of the address; "" and null remove one. `push`: the back button returns to the state before. */
export function set(values, { push = false, tell = true } = {}) {
  const search = changed(new URLSearchParams(location.search), values);
  const address = location.pathname + (search ? `?${search}` : "");
  if (address === location.pathname + location.search) return;
  history[push ? "pushState" : "replaceState"](null, "", address);
  if (tell) for (const listener of listeners) listener();
}

/** Calls `listener` when the address changes within the page. */
export function onChange(listener) {
  listeners.add(listener);
}

addEventListener("popstate", () => { for (const listener of listeners) listener(); });

function changed(search, values) {
  for (const [name, value] of Object.entries(values)) {
    if (value === null || value === undefined || value === "") search.delete(name);
    else search.set(name, value);
  }
  return search.toString();
}

/** The address of a page with values. The zone goes along. */
export function link(path, values = {}) {
  const search = changed(new URLSearchParams(), { tz: get("tz"), ...values });
  return path + (search ? `?${search}` : "");
}

export const groupLink = (cluster, group, values = {}) => link("/group", { cluster, group, ...values });
export const rebalanceLink = (row) => link("/rebalance", { cluster: row.cluster, group: row.group_id, id: row.id });

/** "utc" or "local". */
export const zone = () => (get("tz") === "local" ? "local" : "utc");
