// Transitive reduction: removes edges that a longer path implies.

/**
 * @typedef {import("./layers.js").Edge} Edge
 * @typedef {import("./layers.js").Neighbors} Neighbors
 */

/** Above this number of bits, no edge is removed. */
const MAX_STEPS = 400_000_000;

/**
 * The transitive reduction. Only an edge that spans several layers can be implied by a longer path,
 * so reachability is tracked for the targets of those edges alone, one bit each.
 *
 * @param {ReadonlyMap<string, number>} layers as `layersOf` gives them
 * @param {Neighbors} neighbors
 * @returns {Edge[]} each once
 */
export function transitiveReduction(layers, { after }) {
  const isLong = (/** @type {string} */ from, /** @type {string} */ to) =>
    (layers.get(to) ?? 0) - (layers.get(from) ?? 0) > 1;
  /** @type {Map<string, number>} */
  const ends = new Map();
  for (const [from, targets] of after) {
    for (const to of targets) if (isLong(from, to) && !ends.has(to)) ends.set(to, ends.size);
  }
  const words = Math.ceil(ends.size / 32);
  const reduces = ends.size * layers.size < MAX_STEPS;
  /** @type {Map<string, Uint32Array>} */
  const reached = new Map();
  /** @type {Edge[]} */
  const kept = [];
  for (const from of [...layers.keys()].reverse()) {
    const targets = new Set(after.get(from));
    const own = new Uint32Array(reduces ? words : 0);
    for (const to of targets) {
      const beyond = reached.get(to);
      for (let w = 0; beyond && w < own.length; w++) own[w] = (own[w] ?? 0) | (beyond[w] ?? 0);
    }
    for (const to of targets) {
      const end = ends.get(to);
      if (end === undefined || !has(own, end) || !isLong(from, to)) kept.push([from, to]);
    }
    for (const to of targets) {
      const end = ends.get(to);
      if (end !== undefined && own.length)
        own[end >>> 5] = (own[end >>> 5] ?? 0) | (1 << (end & 31));
    }
    reached.set(from, own);
  }
  return kept.reverse();
}

/**
 * @param {Uint32Array} bits
 * @param {number} at
 */
function has(bits, at) {
  return ((bits[at >>> 5] ?? 0) & (1 << (at & 31))) !== 0;
}
