/** The query of the stack list: from the page address, and to the API. Pure. */

/**
 * tags: a stack must have all of them. from: page marker of the server; "" is the first page.
 * @typedef {{search: string, statuses: string[], waiting: boolean, tags: string[], from: string}} StackQuery
 */

/** @typedef {import("./types.js").Line} Line */

/** Stacks per page. */
export const PAGE = 50;

/** Status and label, in display order. @type {readonly [string, string][]} */
export const STATUSES = [
  ["IN_PROGRESS", "In progress"],
  ["STOPPED", "Stopped"],
  ["FAILED", "Failed"],
  ["COMPLETE", "Complete"],
];

/** @param {URLSearchParams} query of the page's address @returns {StackQuery} */
export function parseQuery(query) {
  return {
    search: query.get("search") ?? "",
    statuses: parseWords(query.get("status")),
    waiting: query.get("waiting") === "true",
    tags: parseWords(query.get("tags")),
    from: query.get("from") ?? "",
  };
}

/** Comma-separated words without duplicates. @param {string | null} text */
export function parseWords(text) {
  const parts = (text ?? "").split(",").map((part) => part.trim());
  return [...new Set(parts.filter(Boolean))];
}

/** Adds a word to a list, or removes it. @param {string[]} all @param {string} text */
export function toggleWord(all, text) {
  return all.includes(text) ? all.filter((each) => each !== text) : [...all, text];
}

/** API path of a page of the list with the number of stacks per status. @param {StackQuery} query */
export function pagePath({ search, statuses, waiting, tags, from }) {
  const query = new URLSearchParams({ limit: String(PAGE), counts: "true" });
  if (search) query.set("search", search);
  if (statuses.length > 0) query.set("status", statuses.join(","));
  if (waiting) query.set("waiting", "true");
  if (tags.length > 0) query.set("tags", tags.join(","));
  if (from) query.set("marker", from);
  return `/overview?${query}`;
}

/** API path of the current state of some stacks. @param {readonly string[]} ids */
export function linesPath(ids) {
  return `/overview?${new URLSearchParams({ stack: ids.join(","), limit: String(ids.length) })}`;
}

/** API path of the counts alone. @param {StackQuery} query */
export function countsPath({ search, tags }) {
  const query = new URLSearchParams({ limit: "1", counts: "true" });
  if (search) query.set("search", search);
  if (tags.length > 0) query.set("tags", tags.join(","));
  return `/overview?${query}`;
}

/** Whether a stack matches the query. @param {Line} line @param {StackQuery} query */
export function matches(line, { search, statuses, waiting, tags }) {
  const text = search.toLowerCase();
  return (
    (line.name.toLowerCase().includes(text) || line.id.includes(text)) &&
    (statuses.length === 0 ||
      statuses.includes(line.status) ||
      statuses.includes(`${line.action}_${line.status}`)) &&
    (!waiting || line.hooks_waiting > 0) &&
    tags.every((tag) => line.tags.includes(tag))
  );
}
