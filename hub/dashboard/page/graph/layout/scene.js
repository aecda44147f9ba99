// The complete layout: each level of a view, with expanded items inside their boxes. Pure.
import { layoutLevel } from "./level.js";

/**
 * @typedef {import("../fold/view.js").View} View
 * @typedef {import("../fold/view.js").Item} Item
 *
 * @typedef {object} Spot where an item is drawn
 * @property {string} key
 * @property {Item} item
 * @property {number} x
 * @property {number} y
 * @property {number} width
 * @property {number} height
 * @property {number} depth nesting depth
 * @property {number} layer
 * @property {Spot | null} around
 * @property {Spot[]} before at its level
 * @property {Spot[]} after
 *
 * @typedef {object} Line an edge as it is drawn
 * @property {Spot} from
 * @property {Spot} to
 * @property {[x: number, y: number][]} points
 * @property {number} top
 * @property {number} bottom
 * @property {number} left
 * @property {number} right
 *
 * @typedef {object} Scene
 * @property {Spot[]} spots outer before inner
 * @property {Map<string, Spot>} byKey
 * @property {Line[][]} lines by depth
 * @property {number} width
 * @property {number} height
 */

export const NODE = { width: 196, height: 48 };
const GROUP = { width: 212, height: 72 };
const GATE = { width: 148, height: 48 };
const HEAD = 48;
const INSET = 24;

/**
 * Desired ratio of width to height. It does not depend on the window, so that a graph has the same
 * layout in every window, on the timeline and after a change of the window's size.
 */
const ASPECT = 1.6;

/**
 * @param {View} view
 * @param {Sized} [sized] its measures, if another thread has computed them
 * @returns {Scene}
 */
export function sceneOf(view, sized = measure(view)) {
  /** @type {Scene} */
  const scene = { spots: [], byKey: new Map(), lines: [], width: 0, height: 0 };
  put(scene, view, sized, 0, 0, null);
  return Object.assign(scene, { width: sized.placed.width, height: sized.placed.height });
}

/**
 * @typedef {object} Sized
 * @property {import("./level.js").Placed} placed
 * @property {Map<string, { width: number, height: number }>} sizes
 * @property {Map<string, Sized>} inside
 *
 * @typedef {object} OutlineItem what the layout needs to know of an item
 * @property {string} key
 * @property {Item["kind"]} kind
 * @property {{ name: string } | null} node
 * @property {boolean} opens
 * @property {Outline | null} view
 *
 * @typedef {object} Outline
 * @property {OutlineItem[]} items
 * @property {View["edges"]} edges
 */

/**
 * @param {View} view
 * @returns {Outline}
 */
export function outlineOf({ items, edges }) {
  return {
    items: items.map(({ key, kind, node, opens, view }) => ({
      key,
      kind,
      node: node && { name: node.name },
      opens,
      view: view && outlineOf(view),
    })),
    edges,
  };
}

/**
 * Places the items of each level: nearly all the time of a layout.
 *
 * @param {Outline} view
 * @returns {Sized}
 */
export function measure(view) {
  /** @type {Sized["inside"]} */
  const inside = new Map();
  /** @type {Sized["sizes"]} */
  const sizes = new Map();
  for (const item of view.items) {
    if (!item.view) {
      sizes.set(item.key, sizeOf(item));
      continue;
    }
    const sized = measure(item.view);
    inside.set(item.key, sized);
    sizes.set(item.key, {
      width: Math.max(sized.placed.width + 2 * INSET, GROUP.width),
      height: sized.placed.height + HEAD + INSET,
    });
  }
  const boxes = view.items.map((item) => {
    const size = /** @type {{ width: number, height: number }} */ (sizes.get(item.key));
    return { key: item.key, ...size };
  });
  return { placed: layoutLevel(boxes, view.edges, ASPECT), sizes, inside };
}

/** @param {OutlineItem} item */
function sizeOf({ kind, node, opens }) {
  if (kind === "group") return GROUP;
  if (node?.name === "") return GATE;
  return opens ? GROUP : NODE;
}

/**
 * @param {Scene} scene
 * @param {View} view
 * @param {Sized} sized
 * @param {number} left
 * @param {number} top
 * @param {Spot | null} around
 */
function put(scene, view, { placed, sizes, inside }, left, top, around) {
  const depth = around ? around.depth + 1 : 0;
  for (const item of view.items) {
    const { x = 0, y = 0, layer = 0 } = placed.places.get(item.key) ?? {};
    const { width, height } = sizes.get(item.key) ?? NODE;
    /** @type {Spot} */
    const spot = {
      key: item.key,
      item,
      x: left + x,
      y: top + y,
      width,
      height,
      depth,
      layer,
      around,
      before: [],
      after: [],
    };
    scene.spots.push(spot);
    scene.byKey.set(item.key, spot);
    const sized = inside.get(item.key);
    if (item.view && sized) put(scene, item.view, sized, spot.x + INSET, spot.y + HEAD, spot);
  }
  for (const { edge, points } of placed.routes) {
    const [from, to] = [scene.byKey.get(edge[0]), scene.byKey.get(edge[1])];
    if (!from || !to) continue;
    from.after.push(to);
    to.before.push(from);
    const moved = points.map(([x, y]) => /** @type {[number, number]} */ ([left + x, top + y]));
    while (scene.lines.length <= depth) scene.lines.push([]);
    scene.lines[depth]?.push(lineOf(from, to, moved));
  }
}

/**
 * @param {Spot} from
 * @param {Spot} to
 * @param {[x: number, y: number][]} points
 * @returns {Line}
 */
export function lineOf(from, to, points) {
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  return {
    from,
    to,
    points,
    left: Math.min(...xs),
    right: Math.max(...xs),
    top: Math.min(...ys),
    bottom: Math.max(...ys),
  };
}
