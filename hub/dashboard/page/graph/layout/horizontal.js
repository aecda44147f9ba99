// Horizontal coordinates: a column for each layer, and a block of columns for a tall layer.

/** @typedef {import("./slots.js").Slot} Slot */

const BETWEEN_LAYERS = 56;
const BETWEEN_COLUMNS = 20;
const ROW_GAP = 16;
const LANE = 8;
/** Layers up to this height stay one column. */
const MIN_HEIGHT = 640;

/**
 * Sets `x` of each slot, and `y` within blocks.
 *
 * @param {Slot[][]} layers
 * @param {number} aspect desired ratio of width to height
 * @returns {Set<Slot[]>} layers that became blocks
 */
export function columns(layers, aspect) {
  const limit = bestHeight(layers, aspect);
  /** @type {Set<Slot[]>} */
  const blocks = new Set();
  let x = 0;
  for (const layer of layers) {
    const columns = wrapLayer(layer, limit);
    if (columns.length > 1) {
      blocks.add(layer);
      placeBlock(layer, columns);
    }
    for (const column of columns) {
      const width = maxWidth(column);
      for (const slot of column) slot.x = x;
      x += width + BETWEEN_COLUMNS;
    }
    x -= BETWEEN_COLUMNS;
    for (const slot of layer) {
      if (slot.box) continue;
      const first = columns[0]?.[0];
      slot.x = first ? first.x : x;
      slot.width = x - slot.x;
    }
    x += BETWEEN_LAYERS;
  }
  return blocks;
}

/**
 * @param {Slot[][]} layers
 * @param {number} aspect
 */
function bestHeight(layers, aspect) {
  const tallest = Math.max(MIN_HEIGHT, ...layers.map((layer) => heightOf(layer)));
  let best = tallest;
  let least = Infinity;
  for (let limit = MIN_HEIGHT; ; limit *= 1.15) {
    const height = Math.min(limit, tallest);
    let width = -BETWEEN_LAYERS;
    for (const layer of layers) {
      const count = Math.max(1, Math.ceil(heightOf(layer) / height));
      width += count * (maxWidth(layer) + BETWEEN_COLUMNS) + BETWEEN_LAYERS;
    }
    const deviation = Math.abs(Math.log(width / height / aspect));
    if (deviation < least) {
      least = deviation;
      best = limit;
    }
    if (limit >= tallest) return best;
  }
}

/** @param {Slot[]} slots */
function heightOf(slots) {
  let height = 0;
  for (const slot of slots) if (slot.box) height += slot.height + ROW_GAP;
  return height;
}

/** @param {Slot[]} slots */
function maxWidth(slots) {
  let width = 0;
  for (const slot of slots) if (slot.box && slot.width > width) width = slot.width;
  return width;
}

/**
 * @param {Slot[]} layer
 * @param {number} limit
 * @returns {Slot[][]} its nodes in columns of about the same height, none higher than the limit
 */
function wrapLayer(layer, limit) {
  const nodes = layer.filter((slot) => slot.box);
  const whole = heightOf(nodes);
  const count = Math.ceil(whole / limit);
  if (count <= 1) return [nodes];
  const each = whole / count;
  /** @type {Slot[][]} */
  const columns = [[]];
  let height = 0;
  for (const slot of nodes) {
    const takes = slot.height + ROW_GAP;
    if (height > 0 && height + takes / 2 > each * columns.length) columns.push([]);
    columns.at(-1)?.push(slot);
    height += takes;
  }
  return columns;
}

/**
 * Places the slots of a block; passing edges run in lanes above it.
 *
 * @param {Slot[]} layer
 * @param {Slot[][]} columns
 */
function placeBlock(layer, columns) {
  const height = Math.max(...columns.map((column) => heightOf(column))) - ROW_GAP;
  for (const column of columns) {
    let y = -height / 2;
    for (const slot of column) {
      slot.y = y + slot.height / 2;
      y += slot.height + ROW_GAP;
    }
  }
  let lane = -height / 2 - 2 * LANE;
  for (const slot of layer.filter((item) => !item.box).reverse()) {
    slot.y = lane;
    lane -= LANE;
  }
}
