// Edges that say something: one that a longer way says as well is not drawn.
import { neighbours } from "./layers.js";

/** @typedef {import("./layers.js").Edge} Edge */

/** Beyond so many nodes all edges are kept: what is reached is a bit for each pair. */
const AT_MOST = 12_000;

/**
 * The transitive reduction.
 *
 * @param {ReadonlyMap<string, number>} layers as `layersOf` gives them
 * @param {readonly Edge[]} edges
 * @returns {Edge[]}
 */
export function essential(layers, edges) {
  const keys = [...layers.keys()];
  if (keys.length > AT_MOST) return [...edges];
  const { after } = neighbours(keys, edges);
  const place = new Map(keys.map((key, at) => [key, at]));
  const words = Math.ceil(keys.length / 32);
  /** @type {Uint32Array[]} */
  const reached = [];
  /** @type {Edge[]} */
  const kept = [];
  for (let at = keys.length - 1; at >= 0; at--) {
    const key = /** @type {string} */ (keys[at]);
    const own = new Uint32Array(words);
    const targets = [...new Set(after.get(key))].map((to) => place.get(to) ?? 0);
    // Nearest first: what lies behind one of them is known when a farther one is looked at.
    for (const to of targets.sort((one, other) => one - other)) {
      const word = to >>> 5;
      const bit = 1 << (to & 31);
      if (((own[word] ?? 0) & bit) !== 0) continue;
      kept.push([key, /** @type {string} */ (keys[to])]);
      const beyond = reached[to];
      for (let w = to >>> 5; beyond && w < words; w++) own[w] = (own[w] ?? 0) | (beyond[w] ?? 0);
      own[word] = (own[word] ?? 0) | bit;
    }
    reached[at] = own;
  }
  return kept.reverse();
}
