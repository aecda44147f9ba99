// Vertical coordinates: each slot as close to its neighbors as the order of its layer allows.

/** @typedef {import("./slots.js").Slot} Slot */

/** Vertical gap between boxes; passing edges need less. */
const GAP = 18;
const GAP_PASSING = 10;
/** Weight that keeps passing edges straight. */
const STRAIGHT = 6;
const ROUNDS = 8;

/**
 * Sets `y` of each slot. Within a layer, minimizes the sum of squared distances to the means of the
 * neighbors (pool adjacent violators), layer by layer in both directions.
 *
 * @param {Slot[][]} layers
 * @param {(layer: Slot[]) => boolean} isBlock whether a layer is a block, which moves as a whole
 */
export function placeVertically(layers, isBlock) {
  for (const layer of layers) if (!isBlock(layer)) stack(layer);
  for (let round = 0; round < ROUNDS; round++) {
    const way = round % 2 === 0 ? layers : [...layers].reverse();
    const both = round >= ROUNDS - 3;
    for (const layer of way) {
      if (isBlock(layer)) shift(layer, round % 2 === 0, both);
      else pull(layer, round % 2 === 0, both);
    }
  }
}

/** @param {Slot[]} layer */
function stack(layer) {
  let y = 0;
  layer.forEach((slot, at) => {
    const last = layer[at - 1];
    if (last) y += minDistance(last, slot);
    slot.y = y;
  });
  for (const slot of layer) slot.y -= y / 2;
}

/**
 * Minimum distance between the centers of two slots.
 *
 * @param {Slot} upper
 * @param {Slot} lower
 */
function minDistance(upper, lower) {
  const gap = upper.box && lower.box ? GAP : GAP_PASSING;
  return (upper.height + lower.height) / 2 + gap;
}

/**
 * @param {Slot} slot
 * @param {boolean} forward
 * @param {boolean} both
 * @returns {[wish: number, weight: number]}
 */
function desiredPosition(slot, forward, both) {
  const [toBox, toPassing] = slot.box ? [1, 2] : [2, STRAIGHT];
  let sum = 0;
  let weight = 0;
  if (both || forward) {
    for (const item of slot.before) {
      const heavy = item.box ? toBox : toPassing;
      sum += heavy * item.y;
      weight += heavy;
    }
  }
  if (both || !forward) {
    for (const item of slot.after) {
      const heavy = item.box ? toBox : toPassing;
      sum += heavy * item.y;
      weight += heavy;
    }
  }
  return weight ? [sum / weight, weight] : [slot.y, 0.2];
}

/**
 * @param {Slot[]} layer
 * @param {boolean} forward
 * @param {boolean} both
 */
function shift(layer, forward, both) {
  let sum = 0;
  let weights = 0;
  for (const slot of layer) {
    const [where, weight] = desiredPosition(slot, forward, both);
    sum += weight * (where - slot.y);
    weights += weight;
  }
  for (const slot of layer) slot.y += weights ? sum / weights : 0;
}

/**
 * @param {Slot[]} layer
 * @param {boolean} forward
 * @param {boolean} both
 */
function pull(layer, forward, both) {
  // After subtracting the gaps, positions only have to be monotonic: slots that would overtake each
  // other share the mean of their pool.
  /** @type {{ sum: number, weight: number, mean: number, slots: Slot[] }[]} */
  const pools = [];
  let offset = 0;
  layer.forEach((slot, at) => {
    const last = layer[at - 1];
    if (last) offset += minDistance(last, slot);
    slot.wish = offset;
    const [where, weight] = desiredPosition(slot, forward, both);
    let pool = { sum: weight * (where - offset), weight, mean: where - offset, slots: [slot] };
    for (let upper = pools.at(-1); upper && upper.mean > pool.mean; upper = pools.at(-1)) {
      pools.pop();
      const sum = upper.sum + pool.sum;
      const both = upper.weight + pool.weight;
      for (const slot of pool.slots) upper.slots.push(slot);
      pool = { sum, weight: both, mean: sum / both, slots: upper.slots };
    }
    pools.push(pool);
  });
  for (const pool of pools) for (const slot of pool.slots) slot.y = pool.mean + slot.wish;
}
