// Wraps long chains into lines, like text.

/** @typedef {import("./slots.js").Slot} Slot */

/** Ratio of actual to desired aspect from which the graph is wrapped. */
const TOO_WIDE = 4;
const BETWEEN_LINES = 56;

/**
 * Moves the layers of each line to its initialProgress, below the line before.
 *
 * @param {Slot[][]} layers with places
 * @param {number} aspect
 */
export function wrapLines(layers, aspect) {
  const whole = extent(layers);
  const height = whole.bottom - whole.top + BETWEEN_LINES;
  if (whole.width / height < TOO_WIDE * aspect) return;
  const count = Math.max(1, Math.round(Math.sqrt(whole.width / height / aspect)));
  /** @type {Slot[][][]} */
  const lines = [[]];
  for (const layer of layers) {
    const x = layer[0]?.x ?? 0;
    if (x >= (whole.width / count) * lines.length) lines.push([]);
    lines.at(-1)?.push(layer);
  }
  let below = whole.top;
  for (const line of lines) {
    const { left, top, bottom } = extent(line);
    for (const slot of line.flat()) {
      slot.x -= left;
      slot.y += below - top;
    }
    below += bottom - top + BETWEEN_LINES;
  }
}

/** @param {Slot[][]} layers */
function extent(layers) {
  let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const layer of layers) {
    for (const { x, y, width, height } of layer) {
      left = Math.min(left, x);
      right = Math.max(right, x + width);
      top = Math.min(top, y - height / 2);
      bottom = Math.max(bottom, y + height / 2);
    }
  }
  return { left, top, bottom, width: right - left };
}
