// The order within layers, with few edge crossings.

/** @typedef {import("./slots.js").Slot} Slot */

/** Sweeps without improvement after which the search stops. */
const IDLE = 3;
/** Up to this number of slots, crossings are reduced more thoroughly. */
const SMALL = 1500;

/**
 * Starts from a spectral order and from the given order, and sweeps in both directions, moving each
 * slot to the mean of its neighbors. Keeps the order with the fewest crossings. Deterministic.
 *
 * @param {Slot[][]} layers whose orders are changed
 * @returns {number} remaining crossings between adjacent layers
 */
export function order(layers) {
  const count = layers.reduce((sum, layer) => sum + layer.length, 0);
  const initial = copyLayers(layers);
  align(layers, count);
  let best = sweep(layers, count);
  if (best.crossings > 0 && count <= SMALL) {
    applyOrder(layers, initial);
    const other = sweep(layers, count);
    if (other.crossings < best.crossings) best = other;
  }
  applyOrder(layers, best.order);
  return best.crossings;
}

/**
 * @param {Slot[][]} layers
 * @param {number} count of slots
 */
function sweep(layers, count) {
  const sweeps = count > 8000 ? 2 : count > SMALL ? 6 : 24;
  let idle = 0;
  let best = { crossings: crossings(layers), order: copyLayers(layers) };
  for (let sweep = 0; sweep < sweeps && best.crossings > 0 && idle < IDLE; sweep++) {
    const forward = sweep % 2 === 0;
    for (const layer of forward ? layers : [...layers].reverse()) arrange(layer, forward);
    if (count <= SMALL) exchange(layers);
    else if (forward) continue; // counting costs as much as sweeping
    const left = crossings(layers);
    idle = left < best.crossings ? 0 : idle + 1;
    if (left < best.crossings) best = { crossings: left, order: copyLayers(layers) };
  }
  return best;
}

/** @param {Slot[][]} layers */
function copyLayers(layers) {
  return layers.map((layer) => [...layer]);
}

/**
 * @param {Slot[][]} layers
 * @param {Slot[][]} order
 */
function applyOrder(layers, order) {
  layers.forEach((layer, at) => {
    layer.splice(0, layer.length, ...(order[at] ?? []));
    number(layer);
  });
}

/**
 * Spectral order: moves each slot repeatedly to the mean of its neighbors and normalizes (power
 * iteration toward the second eigenvector of the graph).
 *
 * @param {Slot[][]} layers
 * @param {number} count of slots
 */
function align(layers, count) {
  const slots = layers.flat();
  for (const slot of slots) slot.y = slot.at / Math.max(layers[slot.layer]?.length ?? 1, 1) - 0.5;
  for (let round = count > 8000 ? 12 : 40; round > 0; round--) {
    let [sum, weights] = [0, 0];
    for (const slot of slots) {
      let mean = 0;
      for (const item of slot.before) mean += item.y;
      for (const item of slot.after) mean += item.y;
      const weight = slot.before.length + slot.after.length;
      slot.wish = weight ? 0.5 * slot.y + (0.5 * mean) / weight : slot.y;
      sum += weight * slot.wish;
      weights += weight;
    }
    let most = 1e-9;
    for (const slot of slots) {
      slot.y = slot.wish - (weights ? sum / weights : 0);
      most = Math.max(most, Math.abs(slot.y));
    }
    for (const slot of slots) slot.y /= most;
  }
  for (const layer of layers) {
    layer.sort((a, b) => a.y - b.y || a.at - b.at);
    number(layer);
  }
}

/**
 * @param {Slot[]} layer
 * @param {boolean} forward whether to use the predecessors or the successors
 */
function arrange(layer, forward) {
  for (const slot of layer) {
    const others = forward ? slot.before : slot.after;
    let sum = 0;
    for (const other of others) sum += other.at;
    slot.wish = others.length ? sum / others.length : slot.at;
  }
  layer.sort((a, b) => a.wish - b.wish || a.at - b.at);
  number(layer);
}

/** @param {Slot[]} layer */
function number(layer) {
  layer.forEach((slot, at) => {
    slot.at = at;
  });
}

/**
 * Swaps adjacent slots where that reduces crossings.
 *
 * @param {Slot[][]} layers
 */
function exchange(layers) {
  for (const layer of layers) {
    for (let at = 0; at + 1 < layer.length; at++) {
      const upper = /** @type {Slot} */ (layer[at]);
      const lower = /** @type {Slot} */ (layer[at + 1]);
      const now =
        crossingsBetween(upper.before, lower.before) + crossingsBetween(upper.after, lower.after);
      if (now === 0) continue;
      const then =
        crossingsBetween(lower.before, upper.before) + crossingsBetween(lower.after, upper.after);
      if (then >= now) continue;
      layer[at] = lower;
      layer[at + 1] = upper;
      lower.at = at;
      upper.at = at + 1;
    }
  }
}

/**
 * Crossings between the edges of two slots, the first above the second.
 *
 * @param {Slot[]} upper
 * @param {Slot[]} lower
 */
function crossingsBetween(upper, lower) {
  let count = 0;
  for (const item of upper) for (const other of lower) if (item.at > other.at) count++;
  return count;
}

/**
 * Crossings between adjacent layers, in n log n.
 *
 * @param {Slot[][]} layers
 */
export function crossings(layers) {
  let count = 0;
  layers.forEach((layer, at) => {
    const behind = layers[at + 1];
    if (behind) count += countCrossings(layer, at + 1, behind.length);
  });
  return count;
}

/**
 * @param {Slot[]} layer
 * @param {number} next index of the next layer
 * @param {number} width number of slots in the next layer
 */
function countCrossings(layer, next, width) {
  // A Fenwick tree over the positions of the next layer: number of edges that end at or above each.
  const sums = new Int32Array(width + 1);
  let count = 0;
  let ended = 0;
  for (const { after } of layer) {
    for (const end of after) {
      if (end.layer !== next) continue;
      let above = 0;
      for (let at = end.at + 1; at > 0; at -= at & -at) above += sums[at] ?? 0;
      count += ended - above;
    }
    for (const end of after) {
      if (end.layer !== next) continue;
      ended++;
      for (let at = end.at + 1; at <= width; at += at & -at) sums[at] = (sums[at] ?? 0) + 1;
    }
  }
  return count;
}
