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
  return same(before, after) ? [] : [{ place, from: before, to: after }];
}

/** @param {unknown} value @returns {value is Record<string, unknown>} */
function isMap(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

/**
 * Deep equality, ignoring the order of keys.
 * @param {unknown} one @param {unknown} other @returns {boolean}
 */
export function same(one, other) {
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && one.every((item, index) => same(item, other[index]));
  if (isMap(one) && isMap(other)) {
    const names = Object.keys(one);
    return (
      names.length === Object.keys(other).length &&
      names.every((name) => name in other && same(one[name], other[name]))
    );
  }
  return one === other;
}
