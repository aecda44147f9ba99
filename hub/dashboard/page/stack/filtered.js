/** Events in the order in which people look for them. Pure. */

/** @typedef {import("../api/documents.js").CloudEvent} CloudEvent */

/**
 * What was read and what came since, each once, the newest first.
 * @param {CloudEvent[]} read in their order @param {CloudEvent[]} came in their order
 * @returns {CloudEvent[]}
 */
export function newestFirst(read, came) {
  const seen = new Set(read.map((one) => one.id));
  return [...read, ...came.filter((one) => !seen.has(one.id))].reverse();
}

/**
 * @param {CloudEvent[]} events
 * @param {string[]} kinds second words of types; none: all
 * @param {string} asked each of its words must be there
 * @param {(event: CloudEvent) => string} words
 * @returns {CloudEvent[]}
 */
export function matching(events, kinds, asked, words) {
  const parts = asked.toLowerCase().split(/\s+/).filter(Boolean);
  return events.filter((event) => {
    if (kinds.length > 0 && !kinds.includes(event.type.split(".")[1] ?? "")) return false;
    if (parts.length === 0) return true;
    const text = `${words(event)} ${event.type} ${event.subject ?? ""}`.toLowerCase();
    return parts.every((part) => text.includes(part));
  });
}
