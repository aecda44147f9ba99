// Keyboard input: moving along edges and within layers, and actions on the focused node.

/**
 * @typedef {import("./stage.js").Stage} Stage
 * @typedef {import("./pointer.js").Acts} Acts
 * @typedef {import("../layout/scene.js").Spot} Spot
 * @typedef {{ seek: () => void, critical: () => void, clear: () => void }} More
 */

const STEP = 80;

/** For the shortcut help. @type {readonly { key: string, does: string }[]} */
export const GRAPH_KEYS = [
  { key: "← →", does: "graph: move along edges" },
  { key: "↑ ↓", does: "graph: move within a layer" },
  { key: "Enter", does: "graph: select a node; expand or collapse a group" },
  { key: "b a", does: "graph: set or clear a breakpoint before or after the node" },
  { key: "u", does: "graph: expand or collapse" },
  { key: "i o", does: "graph: move into an expanded stack or group, and out" },
  { key: "w", does: "graph: zoom to waiting nodes" },
  { key: "f", does: "graph: fit the graph" },
  { key: "c", does: "graph: show the critical path" },
  { key: "+ −", does: "graph: zoom" },
  { key: "Shift ← ↑ → ↓", does: "graph: pan" },
  { key: "/", does: "graph: search" },
];

/**
 * @param {Stage} stage
 * @param {Acts} acts
 * @param {More} more
 * @returns {() => void} removes the listeners
 */
export function listenToKeys(stage, acts, more) {
  /** @type {Record<string, (spot: Spot | undefined) => void>} */
  const does = {
    ArrowRight: (spot) => go(stage, spot && nearest(spot, spot.after)),
    ArrowLeft: (spot) => go(stage, spot && nearest(spot, spot.before)),
    ArrowDown: (spot) => go(stage, spot && beside(stage, spot, 1)),
    ArrowUp: (spot) => go(stage, spot && beside(stage, spot, -1)),
    Home: () => go(stage, stage.scenery.scene.spots[0]),
    End: () => go(stage, stage.scenery.scene.spots.at(-1)),
    Enter: (spot) => {
      if (spot?.item.kind === "group") stage.toggle(spot.key);
      else if (spot) acts.select(spot.key);
    },
    b: (spot) => spot && acts.side(spot.key, "pre"),
    a: (spot) => spot && acts.side(spot.key, "post"),
    u: (spot) => spot && stage.toggle(spot.key),
    i: (spot) => go(stage, spot && stage.scenery.scene.spots.find((one) => one.around === spot)),
    o: (spot) => go(stage, spot?.around ?? undefined),
    "+": () => stage.zoom(1.25),
    "=": () => stage.zoom(1.25),
    "-": () => stage.zoom(0.8),
    f: () => stage.fit(),
    0: () => stage.fit(),
    w: () => {
      stage.fitWaiting();
      stage.focus(stage.focused, true);
    },
    c: () => more.critical(),
    "/": () => more.seek(),
    Escape: () => more.clear(),
  };
  does[" "] = /** @type {(spot: Spot | undefined) => void} */ (does.Enter);
  /** @type {Record<string, [number, number]>} */
  const pans = {
    ArrowRight: [-STEP, 0],
    ArrowLeft: [STEP, 0],
    ArrowDown: [0, -STEP],
    ArrowUp: [0, STEP],
  };
  const listen = (/** @type {KeyboardEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const pan = event.shiftKey ? pans[event.key] : undefined;
    const run = does[event.key];
    if (!pan && !run) return;
    event.preventDefault();
    event.stopPropagation();
    if (pan) stage.pan(...pan);
    else run?.(stage.scenery.spot(stage.focused));
  };
  const follow = (/** @type {FocusEvent} */ event) => {
    const card = event.target instanceof Element ? event.target.closest(".graph-node") : null;
    if (!(card instanceof HTMLElement) || card.dataset.key === stage.focused) return;
    stage.focused = card.dataset.key ?? null;
    stage.ask();
  };
  const ended = new AbortController();
  stage.host.addEventListener("keydown", listen, { signal: ended.signal });
  stage.host.addEventListener("focusin", follow, { signal: ended.signal });
  return () => ended.abort();
}

/**
 * @param {Stage} stage
 * @param {Spot | undefined} spot
 */
function go(stage, spot) {
  if (spot) stage.focus(spot.key, true);
}

/**
 * @param {Spot} spot
 * @param {readonly Spot[]} others
 */
function nearest(spot, others) {
  const off = (/** @type {Spot} */ one) => Math.hypot(one.x - spot.x, 2 * (one.y - spot.y));
  return [...others].sort((one, other) => off(one) - off(other))[0];
}

/**
 * The next node of the layer, top to bottom and column by column; at its end, the next layer.
 *
 * @param {Stage} stage
 * @param {Spot} spot
 * @param {1 | -1} way
 */
function beside(stage, spot, way) {
  const mates = stage.scenery.scene.spots
    .filter((one) => one.around === spot.around)
    .sort((one, other) => one.layer - other.layer || one.x - other.x || one.y - other.y);
  return mates[mates.indexOf(spot) + way];
}
