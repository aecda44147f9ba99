/** Merges refetched stacks into the rows of the list. Pure. */

import { matches } from "./query.js";

/** @typedef {import("./types.js").Line} Line */
/** @typedef {import("./types.js").Shown} Shown */
/** @typedef {import("./query.js").StackQuery} StackQuery */

/**
 * Rows keep their positions, including those of stacks that are deleted or no longer match. New
 * stacks, which only the first page can have, are collected in `added`.
 * @param {Shown} shown
 * @param {readonly string[]} ids the stacks that were requested
 * @param {readonly Line[]} lines the stacks that were returned
 * @param {StackQuery} query
 * @returns {Shown}
 */
export function mergeStacks(shown, ids, lines, query) {
  const result = new Map(lines.map((line) => [line.id, line]));
  const known = new Set(shown.rows.map((row) => row.id));
  const deleted = new Set(shown.deleted);
  for (const id of ids) {
    if (result.has(id)) deleted.delete(id);
    else if (known.has(id)) deleted.add(id);
  }
  const fresh = lines.filter((line) => !known.has(line.id) && matches(line, query));
  const before = shown.added.filter((item) => !ids.includes(item.id));
  return {
    rows: shown.rows.map((row) => result.get(row.id) ?? row),
    deleted,
    added: query.from ? [] : newestFirst([...fresh, ...before]),
  };
}

/** Moves new stacks to the top of the rows. @param {Shown} shown @returns {Shown} */
export function withAdded({ rows, deleted, added }) {
  return { rows: [...added, ...rows], deleted, added: [] };
}

/** @param {Line[]} lines */
function newestFirst(lines) {
  return lines.sort((a, b) => b.traversal.started_at.localeCompare(a.traversal.started_at));
}

/**
 * The ID of the root stack of an event; null if the list does not depend on it.
 * @param {{type: string, rootstack?: string}} event
 */
export function rootStackOf(event) {
  return /^headgate\.(stack|resource|hook)\./.test(event.type) ? (event.rootstack ?? null) : null;
}
