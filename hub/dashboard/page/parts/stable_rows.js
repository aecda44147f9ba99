/**
 * The rows of a live list. While the user interacts with it, rows keep their positions, new rows
 * are appended at the end, and new rows that belong further up are held back. Pure.
 */

/**
 * @param {readonly string[]} shown the current rows
 * @param {readonly string[]} ordered the rows in their correct order
 * @param {boolean} busy whether the user interacts with the list
 * @returns {{rows: readonly string[], held: number}} held: number of rows held back
 */
export function stableOrder(shown, ordered, busy) {
  if (!busy || shown.length === 0) return { rows: reuseIfEqual(shown, ordered), held: 0 };
  const visible = new Set(shown);
  let end = ordered.length;
  while (end > 0 && !visible.has(ordered[end - 1] ?? "")) end -= 1;
  const appended = ordered.slice(end);
  const held = ordered.slice(0, end).filter((id) => !visible.has(id)).length;
  return { rows: reuseIfEqual(shown, [...shown, ...appended]), held };
}

/**
 * The same for fetched rows; removed rows stay as they were.
 * @template {{id: string}} T
 * @param {readonly T[]} shown @param {readonly T[]} fresh @param {boolean} busy
 * @returns {{rows: T[], held: number}}
 */
export function stableRows(shown, fresh, busy) {
  const ids = (/** @type {readonly T[]} */ rows) => rows.map((row) => row.id);
  const { rows, held } = stableOrder(ids(shown), ids(fresh), busy);
  const result = new Map([...shown, ...fresh].map((item) => [item.id, item]));
  return { rows: rows.flatMap((id) => result.get(id) ?? []), held };
}

/**
 * The first array if both are equal, so that identity comparison detects no change.
 * @param {readonly string[]} a @param {readonly string[]} b
 */
function reuseIfEqual(a, b) {
  const equal = a.length === b.length && a.every((id, at) => id === b[at]);
  return equal ? a : b;
}
