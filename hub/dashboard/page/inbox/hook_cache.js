/** A cache of hooks by ID, and how new data changes it. Pure. */

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {ReadonlyMap<string, Hook>} Known */

/** Maximum number of ended hooks kept. */
const MAX_ENDED = 500;

/**
 * Adds hooks. A hook that ended stays ended, even if an older response says that it waits.
 * @param {Known} known @param {readonly Hook[]} incoming @returns {Known}
 */
export function withHooks(known, incoming) {
  const next = new Map(known);
  for (const item of incoming) {
    const cached = next.get(item.id);
    if (cached && cached.state !== "waiting" && item.state === "waiting") continue;
    next.set(item.id, item);
  }
  return dropOldestEnded(next);
}

/**
 * IDs of cached waiting hooks that are not in a complete list of waiting hooks.
 * @param {Known} known @param {readonly Hook[]} all @returns {string[]}
 */
export function missingIds(known, all) {
  const listed = new Set(all.map((item) => item.id));
  return [...known.values()]
    .filter((item) => item.state === "waiting" && !listed.has(item.id))
    .map((item) => item.id);
}

/** @param {Known} known @param {readonly string[]} ids @returns {Known} */
export function withoutHooks(known, ids) {
  const next = new Map(known);
  for (const id of ids) next.delete(id);
  return next;
}

/** The waiting hooks, by deadline. @param {Known} known @returns {Hook[]} */
export function waitingInOrder(known) {
  return [...known.values()].filter((item) => item.state === "waiting").sort(byDeadline);
}

/** Later than all deadlines. */
const NEVER = "~";

/** The next deadline first, then the oldest. @param {Hook} a @param {Hook} b */
export function byDeadline(a, b) {
  const [first, second] = [a.deadline ?? NEVER, b.deadline ?? NEVER];
  if (first !== second) return first < second ? -1 : 1;
  if (a.opened_at !== b.opened_at) return a.opened_at < b.opened_at ? -1 : 1;
  return a.id < b.id ? -1 : 1;
}

/** @param {Map<string, Hook>} known @returns {Known} */
function dropOldestEnded(known) {
  const ended = [...known.values()].filter((item) => item.state !== "waiting");
  for (const item of ended.slice(0, Math.max(0, ended.length - MAX_ENDED))) known.delete(item.id);
  return known;
}
