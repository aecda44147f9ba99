// The order within layers: few edges are to cross.

/** @typedef {import("./slots.js").Slot} Slot */

/** After so many sweeps that gained nothing, none will. */
const IDLE = 3;

/**
 * Sweeps to and fro, each slot to the mean of its neighbours; the order with the fewest crossings
 * is kept. Always the same for the same slots.
 *
 * @param {Slot[][]} layers whose orders are changed
 * @returns {number} crossings that are left between neighbouring layers
 */
export function order(layers) {
  const count = layers.reduce((sum, layer) => sum + layer.length, 0);
  const sweeps = count > 8000 ? 6 : count > 1500 ? 10 : 24;
  let idle = 0;
  let best = layers.map((layer) => [...layer]);
  let fewest = crossings(layers);
  for (let sweep = 0; sweep < sweeps && fewest > 0 && idle < IDLE; sweep++) {
    const forward = sweep % 2 === 0;
    for (const layer of forward ? layers : [...layers].reverse()) arrange(layer, forward);
    if (count <= 1500) exchange(layers);
    const left = crossings(layers);
    idle = left < fewest ? 0 : idle + 1;
    if (left >= fewest) continue;
    fewest = left;
    best = layers.map((layer) => [...layer]);
  }
  layers.forEach((layer, at) => {
    layer.splice(0, layer.length, ...(best[at] ?? []));
    number(layer);
  });
  return fewest;
}

/**
 * @param {Slot[]} layer
 * @param {boolean} forward by what comes before, or by what comes after
 */
function arrange(layer, forward) {
  for (const slot of layer) {
    const others = forward ? slot.before : slot.after;
    let sum = 0;
    for (const one of others) sum += one.at;
    slot.wish = others.length ? sum / others.length : slot.at;
  }
  layer.sort((one, other) => one.wish - other.wish || one.at - other.at);
  number(layer);
}

/** @param {Slot[]} layer */
function number(layer) {
  layer.forEach((slot, at) => {
    slot.at = at;
  });
}

/**
 * Neighbours change places where that leaves fewer crossings.
 *
 * @param {Slot[][]} layers
 */
function exchange(layers) {
  for (const layer of layers) {
    for (let at = 0; at + 1 < layer.length; at++) {
      const upper = /** @type {Slot} */ (layer[at]);
      const lower = /** @type {Slot} */ (layer[at + 1]);
      const now = between(upper.before, lower.before) + between(upper.after, lower.after);
      if (now === 0) continue;
      const then = between(lower.before, upper.before) + between(lower.after, upper.after);
      if (then >= now) continue;
      layer[at] = lower;
      layer[at + 1] = upper;
      lower.at = at;
      upper.at = at + 1;
    }
  }
}

/**
 * Crossings of the edges of two slots, the first above the second.
 *
 * @param {Slot[]} upper
 * @param {Slot[]} lower
 */
function between(upper, lower) {
  let found = 0;
  for (const one of upper) for (const other of lower) if (one.at > other.at) found++;
  return found;
}

/**
 * Crossings between neighbouring layers; n log n.
 *
 * @param {Slot[][]} layers
 */
export function crossings(layers) {
  let found = 0;
  layers.forEach((layer, at) => {
    const behind = layers[at + 1];
    if (behind) found += crossed(layer, at + 1, behind.length);
  });
  return found;
}

/**
 * @param {Slot[]} layer
 * @param {number} next the layer behind it
 * @param {number} width of that
 */
function crossed(layer, next, width) {
  // A tree of sums over the places of the layer behind: how many edges end at or below each.
  const sums = new Int32Array(width + 1);
  let found = 0;
  let ended = 0;
  for (const slot of layer) {
    const ends = slot.after.filter((one) => one.layer === next).map((one) => one.at);
    for (const end of ends) {
      let above = 0;
      for (let at = end + 1; at > 0; at -= at & -at) above += sums[at] ?? 0;
      found += ended - above;
    }
    for (const end of ends) {
      ended++;
      for (let at = end + 1; at <= width; at += at & -at) sums[at] = (sums[at] ?? 0) + 1;
    }
  }
  return found;
}
