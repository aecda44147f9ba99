// Layout of one level of a graph: positions of boxes and routes of edges. Pure and deterministic.
import { columns } from "./horizontal.js";
import { layersOf, neighbors } from "./layers.js";
import { order } from "./order.js";
import { slotsOf } from "./slots.js";
import { transitiveReduction } from "./transitive_reduction.js";
import { placeVertically } from "./vertical.js";

/**
 * @typedef {import("./layers.js").Edge} Edge
 * @typedef {import("./slots.js").Box} Box
 *
 * @typedef {object} Place
 * @property {number} x of the left side
 * @property {number} y of the upper side
 * @property {number} layer
 *
 * @typedef {object} Route
 * @property {Edge} edge
 * @property {[x: number, y: number][]} points from the right side of one box to the left side of
 *   the other; in between, pairs of points where it enters and leaves a layer
 *
 * @typedef {object} Placed
 * @property {Map<string, Place>} places
 * @property {Route[]} routes edges after the transitive reduction
 * @property {number} width
 * @property {number} height
 * @property {number} crossings
 */

/**
 * @param {readonly Box[]} boxes
 * @param {readonly Edge[]} edges
 * @param {number} aspect desired ratio of width to height
 * @returns {Placed}
 */
export function layoutLevel(boxes, edges, aspect) {
  const keys = boxes.map((box) => box.key);
  const around = neighbors(keys, edges);
  const layerOf = layersOf(keys, around);
  const drawn = transitiveReduction(layerOf, around);
  const { layers, byKey, routes } = slotsOf(boxes, layerOf, drawn, around);
  const crossings = order(layers);
  const blocks = columns(layers, aspect);
  placeVertically(layers, (layer) => blocks.has(layer));
  const slots = layers.flat();
  const top = least(slots.map((slot) => slot.y - slot.height / 2));
  for (const slot of slots) slot.y -= top;
  /** @type {Map<string, Place>} */
  const places = new Map();
  for (const [key, slot] of byKey) {
    places.set(key, { x: slot.x, y: slot.y - slot.height / 2, layer: slot.layer });
  }
  return {
    places,
    routes: routes.map(({ edge, slots }) => ({ edge, points: pointsOf(slots) })),
    width: -least(slots.map((slot) => -slot.x - slot.width)),
    height: -least(slots.map((slot) => -slot.y - slot.height / 2)),
    crossings,
  };
}

/** @param {number[]} values */
function least(values) {
  return values.length ? values.reduce((a, b) => Math.min(a, b)) : 0;
}

/**
 * @param {import("./slots.js").Slot[]} slots
 * @returns {Route["points"]}
 */
function pointsOf(slots) {
  const last = slots.length - 1;
  return slots.flatMap((slot, at) => {
    /** @type {Route["points"]} */
    const points = [];
    if (at > 0) points.push([slot.x, slot.y]);
    if (at < last) points.push([slot.x + slot.width, slot.y]);
    return points;
  });
}
