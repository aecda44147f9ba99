/**
 * The rows of a live list. While the user interacts with it, rows keep their positions, new rows
 * are appended at the end, and new rows that belong further up are held back. Pure.
 */

/**
 * @param {readonly string[]} shown the current rows
 * @param {readonly string[]} wanted the rows in their correct order
 * @param {boolean} busy whether the user interacts with the list
 * @returns {{rows: readonly string[], held: number}} held: number of rows held back
 */
export function stableOrder(shown, wanted, busy) {
  if (!busy || shown.length === 0) return { rows: same(shown, wanted), held: 0 };
  const there = new Set(shown);
  let end = wanted.length;
  while (end > 0 && !there.has(wanted[end - 1] ?? "")) end -= 1;
  const appended = wanted.slice(end);
  const held = wanted.slice(0, end).filter((id) => !there.has(id)).length;
  return { rows: same(shown, [...shown, ...appended]), held };
}

/**
 * The same for fetched rows; removed rows stay as they were.
 * @template {{id: string}} T
 * @param {readonly T[]} shown @param {readonly T[]} fresh @param {boolean} busy
 * @returns {{rows: T[], held: number}}
 */
export function stableRows(shown, fresh, busy) {
  const ids = (/** @type {readonly T[]} */ rows) => rows.map((one) => one.id);
  const { rows, held } = stableOrder(ids(shown), ids(fresh), busy);
  const found = new Map([...shown, ...fresh].map((one) => [one.id, one]));
  return { rows: rows.flatMap((id) => found.get(id) ?? []), held };
}

/**
 * The first array if both are equal, so that identity comparison detects no change.
 * @param {readonly string[]} one @param {readonly string[]} other
 */
function same(one, other) {
  const alike = one.length === other.length && one.every((id, at) => id === other[at]);
  return alike ? one : other;
}
