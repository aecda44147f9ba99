/** What becomes of the rows that are shown when some stacks were looked at again. Pure. */

import { matches } from "./asked.js";

/** @typedef {import("./shapes.js").Line} Line */
/** @typedef {import("./shapes.js").Shown} Shown */
/** @typedef {import("./asked.js").Asked} Asked */

/**
 * Rows stay where they are, also of stacks that are there no more or are not what is asked for any
 * more. What is new, which only the first page can have, waits in `added`.
 * @param {Shown} shown
 * @param {readonly string[]} ids those that were looked at
 * @param {readonly Line[]} lines those that were found
 * @param {Asked} asked
 * @returns {Shown}
 */
export function looked(shown, ids, lines, asked) {
  const found = new Map(lines.map((one) => [one.id, one]));
  const known = new Set(shown.rows.map((one) => one.id));
  const gone = new Set(shown.gone);
  for (const id of ids) {
    if (found.has(id)) gone.delete(id);
    else if (known.has(id)) gone.add(id);
  }
  const fresh = lines.filter((one) => !known.has(one.id) && matches(one, asked));
  const before = shown.added.filter((one) => !ids.includes(one.id));
  return {
    rows: shown.rows.map((one) => found.get(one.id) ?? one),
    gone,
    added: asked.from ? [] : newestFirst([...fresh, ...before]),
  };
}

/** What is new is put above the rest. @param {Shown} shown @returns {Shown} */
export function joined({ rows, gone, added }) {
  return { rows: [...added, ...rows], gone, added: [] };
}

/** @param {Line[]} lines */
function newestFirst(lines) {
  return lines.sort((a, b) => b.traversal.started_at.localeCompare(a.traversal.started_at));
}

/** The stack that an event means for the list: the outermost. @param {{type: string, rootstack?: string}} event */
export function meant(event) {
  return /^headgate\.(stack|resource|hook)\./.test(event.type) ? (event.rootstack ?? null) : null;
}
