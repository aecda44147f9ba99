// Layer assignment: one layer after the last dependency.

/**
 * @typedef {readonly [string, string]} Edge from, to
 * @typedef {{ after: Map<string, string[]>, before: Map<string, string[]> }} Neighbors
 */

/**
 * The longest path from a node without dependencies. A cycle, which no plan has, is cut at its
 * first node.
 *
 * @param {readonly string[]} keys
 * @param {Neighbors} neighbors
 * @returns {Map<string, number>} in topological order
 */
export function layersOf(keys, { after, before }) {
  /** @type {Map<string, number>} */
  const left = new Map(keys.map((key) => [key, before.get(key)?.length ?? 0]));
  /** @type {Map<string, number>} */
  const layers = new Map();
  const next = keys.filter((key) => left.get(key) === 0);
  for (let taken = 0; layers.size < left.size; taken++) {
    const key = next[taken] ?? keys.find((key) => !layers.has(key));
    if (key === undefined) break;
    if (next[taken] === undefined) next.push(key);
    if (layers.has(key)) continue;
    let layer = 0;
    for (const item of before.get(key) ?? []) layer = Math.max(layer, (layers.get(item) ?? -1) + 1);
    layers.set(key, layer);
    for (const item of after.get(key) ?? []) {
      const rest = (left.get(item) ?? 0) - 1;
      left.set(item, rest);
      if (rest === 0) next.push(item);
    }
  }
  return layers;
}

/**
 * Successors and predecessors of each node.
 *
 * @param {readonly string[]} keys
 * @param {readonly Edge[]} edges edges of other keys are ignored
 * @returns {Neighbors}
 */
export function neighbors(keys, edges) {
  /** @type {Map<string, string[]>} */
  const after = new Map();
  /** @type {Map<string, string[]>} */
  const before = new Map();
  for (const key of keys) {
    after.set(key, []);
    before.set(key, []);
  }
  for (const [from, to] of edges) {
    if (from === to || !after.has(from) || !before.has(to)) continue;
    after.get(from)?.push(to);
    before.get(to)?.push(from);
  }
  return { after, before };
}
