// Slots: positions of nodes in their layers, and of edges that pass through a layer.

/**
 * @typedef {import("./layers.js").Edge} Edge
 * @typedef {import("./layers.js").Neighbors} Neighbors
 * @typedef {object} Box a box to place
 * @property {string} key
 * @property {number} width
 * @property {number} height
 *
 * @typedef {object} Slot
 * @property {Box | null} box null: an edge passes through
 * @property {number} layer
 * @property {number} at position in the layer
 * @property {number} wish desired position; scratch value within one step
 * @property {number} x of its left side
 * @property {number} y of its middle
 * @property {number} width
 * @property {number} height
 * @property {Slot[]} before
 * @property {Slot[]} after
 *
 * @typedef {object} Slots
 * @property {Slot[][]} layers
 * @property {Map<string, Slot>} byKey
 * @property {{ edge: Edge, slots: Slot[] }[]} routes each edge with the slots it goes through
 */

/** With more passing slots per node than this, long edges are drawn straight. */
const PASSINGS = 4;

/**
 * @param {readonly Box[]} boxes
 * @param {ReadonlyMap<string, number>} layerOf
 * @param {readonly Edge[]} edges
 * @param {Neighbors} neighbors
 * @returns {Slots}
 */
export function slotsOf(boxes, layerOf, edges, neighbors) {
  /** @type {Slot[][]} */
  const layers = [];
  /** @type {Map<string, Slot>} */
  const byKey = new Map();
  for (const box of firstSeen(boxes, neighbors)) {
    byKey.set(box.key, slot(layers, box, layerOf.get(box.key) ?? 0));
  }
  const between = edges.map(([from, to]) => (layerOf.get(to) ?? 0) - (layerOf.get(from) ?? 0) - 1);
  const passings = between.reduce((sum, item) => sum + Math.max(item, 0), 0);
  const bend = passings <= PASSINGS * boxes.length + 200;
  /** @type {Slots["routes"]} */
  const routes = [];
  for (const edge of edges) {
    const [from, to] = [byKey.get(edge[0]), byKey.get(edge[1])];
    if (!from || !to) continue;
    const slots = [from];
    for (let layer = from.layer + 1; bend && layer < to.layer; layer++) {
      slots.push(slot(layers, null, layer));
    }
    slots.push(to);
    slots.forEach((slot, at) => {
      const following = slots[at + 1];
      if (!following) return;
      slot.after.push(following);
      following.before.push(slot);
    });
    routes.push({ edge, slots });
  }
  return { layers, byKey, routes };
}

/**
 * Initial order: depth-first along the edges, so that connected nodes are close.
 *
 * @param {readonly Box[]} boxes
 * @param {Neighbors} neighbors
 */
function firstSeen(boxes, { after, before }) {
  const keys = boxes.map((box) => box.key);
  const byKey = new Map(boxes.map((box) => [box.key, box]));
  /** @type {Set<string>} */
  const seen = new Set();
  for (const start of keys) {
    if (before.get(start)?.length) continue;
    const stack = [start];
    for (let key = stack.pop(); key !== undefined; key = stack.pop()) {
      if (seen.has(key)) continue;
      seen.add(key);
      const next = after.get(key) ?? [];
      for (let at = next.length; at-- > 0; ) stack.push(/** @type {string} */ (next[at]));
    }
  }
  for (const key of keys) seen.add(key);
  return [...seen].map((key) => /** @type {Box} */ (byKey.get(key)));
}

/**
 * @param {Slot[][]} layers
 * @param {Box | null} box
 * @param {number} layer
 */
function slot(layers, box, layer) {
  while (layers.length <= layer) layers.push([]);
  const peers = /** @type {Slot[]} */ (layers[layer]);
  /** @type {Slot} */
  const made = {
    box,
    layer,
    at: peers.length,
    wish: 0,
    x: 0,
    y: 0,
    width: box?.width ?? 0,
    height: box?.height ?? 0,
    before: [],
    after: [],
  };
  peers.push(made);
  return made;
}
