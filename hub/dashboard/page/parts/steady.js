/**
 * What a list shows while it changes by itself. Nothing moves under a pointer, or away from the
 * focus: while somebody is at the list, rows keep their places, new ones come at its end, and those
 * that belong further up are held back. Pure.
 */

/**
 * @param {readonly string[]} shown the rows as they stand
 * @param {readonly string[]} wanted the rows as they should stand
 * @param {boolean} busy whether somebody is at the list
 * @returns {{rows: readonly string[], held: number}} held: how many are held back
 */
export function steady(shown, wanted, busy) {
  if (!busy || shown.length === 0) return { rows: same(shown, wanted), held: 0 };
  const there = new Set(shown);
  let end = wanted.length;
  while (end > 0 && !there.has(wanted[end - 1] ?? "")) end -= 1;
  const appended = wanted.slice(end);
  const held = wanted.slice(0, end).filter((id) => !there.has(id)).length;
  return { rows: same(shown, [...shown, ...appended]), held };
}

/**
 * The same for rows that were read anew; those that are gone stay as they were.
 * @template {{id: string}} T
 * @param {readonly T[]} shown @param {readonly T[]} fresh @param {boolean} busy
 * @returns {{rows: T[], held: number}}
 */
export function steadyRows(shown, fresh, busy) {
  const ids = (/** @type {readonly T[]} */ rows) => rows.map((one) => one.id);
  const { rows, held } = steady(ids(shown), ids(fresh), busy);
  const found = new Map([...shown, ...fresh].map((one) => [one.id, one]));
  return { rows: rows.flatMap((id) => found.get(id) ?? []), held };
}

/** The first where both are alike, so that who compares them sees that nothing changed. @param {readonly string[]} one @param {readonly string[]} other */
function same(one, other) {
  const alike = one.length === other.length && one.every((id, at) => id === other[at]);
  return alike ? one : other;
}
