/** Differences between two documents, place by place. Pure. */

/** @typedef {{place: string, from?: unknown, to?: unknown}} Difference */

/**
 * Without `from` the place is new; without `to` it was removed.
 * @param {unknown} before @param {unknown} after @param {string} [place]
 * @returns {Difference[]}
 */
export function differences(before, after, place = "") {
  if (isMap(before) && isMap(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    return names.flatMap((name) => {
      const here = place ? `${place}.${name}` : name;
      if (!(name in before)) return [{ place: here, to: after[name] }];
      if (!(name in after)) return [{ place: here, from: before[name] }];
      return differences(before[name], after[name], here);
    });
  }
  return deepEqual(before, after) ? [] : [{ place, from: before, to: after }];
}

/** @param {unknown} value @returns {value is Record<string, unknown>} */
function isMap(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

/**
 * Deep equality, ignoring the order of keys.
 * @param {unknown} a @param {unknown} b @returns {boolean}
 */
export function deepEqual(a, b) {
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((item, index) => deepEqual(item, b[index]));
  if (isMap(a) && isMap(b)) {
    const names = Object.keys(a);
    return (
      names.length === Object.keys(b).length &&
      names.every((name) => name in b && deepEqual(a[name], b[name]))
    );
  }
  return a === b;
}
