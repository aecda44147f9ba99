/** What the list of stacks is asked for: as the address says it, and as the server is asked. Pure. */

/**
 * tags: all of them. from: behind which mark of the server the page begins; "" is the first page.
 * @typedef {{search: string, statuses: string[], waiting: boolean, tags: string[], from: string}} Asked
 */

/** @typedef {import("./shapes.js").Line} Line */

/** Stacks on one page. */
export const PAGE = 50;

/** Status -> its word, in the order in which they are shown. @type {readonly [string, string][]} */
export const STATUSES = [
  ["IN_PROGRESS", "In progress"],
  ["STOPPED", "Stopped"],
  ["FAILED", "Failed"],
  ["COMPLETE", "Complete"],
];

/** @param {URLSearchParams} query of the page's address @returns {Asked} */
export function asked(query) {
  return {
    search: query.get("search") ?? "",
    statuses: words(query.get("status")),
    waiting: query.get("waiting") === "true",
    tags: words(query.get("tags")),
    from: query.get("from") ?? "",
  };
}

/** Words with commas between them, each once. @param {string | null} text */
export function words(text) {
  const said = (text ?? "").split(",").map((one) => one.trim());
  return [...new Set(said.filter(Boolean))];
}

/** A word added to those that are there, or taken away. @param {string[]} all @param {string} one */
export function toggled(all, one) {
  return all.includes(one) ? all.filter((each) => each !== one) : [...all, one];
}

/** A page of the list, and how many stacks there are in each status. @param {Asked} asked */
export function pagePath({ search, statuses, waiting, tags, from }) {
  const query = new URLSearchParams({ limit: String(PAGE), counts: "true" });
  if (search) query.set("search", search);
  if (statuses.length > 0) query.set("status", statuses.join(","));
  if (waiting) query.set("waiting", "true");
  if (tags.length > 0) query.set("tags", tags.join(","));
  if (from) query.set("marker", from);
  return `/overview?${query}`;
}

/** Just these stacks, as they are now. @param {readonly string[]} ids */
export function linesPath(ids) {
  return `/overview?${new URLSearchParams({ stack: ids.join(","), limit: String(ids.length) })}`;
}

/** Only how many there are. @param {Asked} asked */
export function countsPath({ search, tags }) {
  const query = new URLSearchParams({ limit: "1", counts: "true" });
  if (search) query.set("search", search);
  if (tags.length > 0) query.set("tags", tags.join(","));
  return `/overview?${query}`;
}

/** Whether a stack is one of those that are asked for. @param {Line} line @param {Asked} asked */
export function matches(line, { search, statuses, waiting, tags }) {
  const wanted = search.toLowerCase();
  return (
    (line.name.toLowerCase().includes(wanted) || line.id.includes(wanted)) &&
    (statuses.length === 0 ||
      statuses.includes(line.status) ||
      statuses.includes(`${line.action}_${line.status}`)) &&
    (!waiting || line.hooks_waiting > 0) &&
    tags.every((tag) => line.tags.includes(tag))
  );
}
