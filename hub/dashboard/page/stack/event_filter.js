/** Sorting and filtering of events. Pure. */

/** @typedef {import("../api/documents.js").CloudEvent} CloudEvent */

/**
 * Fetched and live events without duplicates, newest first.
 * @param {CloudEvent[]} read in order @param {CloudEvent[]} came in order
 * @returns {CloudEvent[]}
 */
export function newestFirst(read, came) {
  const seen = new Set(read.map((one) => one.id));
  return [...read, ...came.filter((one) => !seen.has(one.id))].reverse();
}

/**
 * @param {CloudEvent[]} events
 * @param {string[]} kinds second parts of event types; empty: all
 * @param {string} search search text; each word must match
 * @param {(event: CloudEvent) => string} words
 * @returns {CloudEvent[]}
 */
export function matching(events, kinds, search, words) {
  const parts = search.toLowerCase().split(/\s+/).filter(Boolean);
  return events.filter((event) => {
    if (kinds.length > 0 && !kinds.includes(event.type.split(".")[1] ?? "")) return false;
    if (parts.length === 0) return true;
    const text = `${words(event)} ${event.type} ${event.subject ?? ""}`.toLowerCase();
    return parts.every((part) => text.includes(part));
  });
}
