// Keyboard input: moving along edges and within layers, and actions on the focused node.

/**
 * @typedef {import("./stage.js").Stage} Stage
 * @typedef {import("./pointer.js").Acts} Acts
 * @typedef {import("../layout/scene.js").Spot} Spot
 * @typedef {{ seek: () => void, critical: () => void, clear: () => void }} More
 */

const STEP = 80;

/** For the shortcut help. @type {readonly { key: string, description: string }[]} */
export const GRAPH_KEYS = [
  { key: "← →", description: "graph: move along edges" },
  { key: "↑ ↓", description: "graph: move within a layer" },
  { key: "Enter", description: "graph: select a node; expand or collapse a group" },
  { key: "b a", description: "graph: set or clear a breakpoint before or after the node" },
  { key: "u", description: "graph: expand or collapse" },
  { key: "i o", description: "graph: move into an expanded stack or group, and out" },
  { key: "w", description: "graph: zoom to waiting nodes" },
  { key: "f", description: "graph: fit the graph" },
  { key: "c", description: "graph: show the critical path" },
  { key: "+ −", description: "graph: zoom" },
  { key: "Shift ← ↑ → ↓", description: "graph: pan" },
  { key: "/", description: "graph: search" },
];

/**
 * @param {Stage} stage
 * @param {Acts} acts
 * @param {More} more
 * @returns {() => void} removes the listeners
 */
export function listenToKeys(stage, acts, more) {
  /** @type {Record<string, (spot: Spot | undefined) => void>} */
  const actions = {
    ArrowRight: (spot) => focusSpot(stage, spot && nearest(spot, spot.after)),
    ArrowLeft: (spot) => focusSpot(stage, spot && nearest(spot, spot.before)),
    ArrowDown: (spot) => focusSpot(stage, spot && nextInLayer(stage, spot, 1)),
    ArrowUp: (spot) => focusSpot(stage, spot && nextInLayer(stage, spot, -1)),
    Home: () => focusSpot(stage, stage.scenery.scene.spots[0]),
    End: () => focusSpot(stage, stage.scenery.scene.spots.at(-1)),
    Enter: (spot) => {
      if (spot?.item.kind === "group") stage.toggle(spot.key);
      else if (spot) acts.select(spot.key);
    },
    b: (spot) => spot && acts.side(spot.key, "pre"),
    a: (spot) => spot && acts.side(spot.key, "post"),
    u: (spot) => spot && stage.toggle(spot.key),
    i: (spot) =>
      focusSpot(stage, spot && stage.scenery.scene.spots.find((item) => item.around === spot)),
    o: (spot) => focusSpot(stage, spot?.around ?? undefined),
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
  actions[" "] = /** @type {(spot: Spot | undefined) => void} */ (actions.Enter);
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
    const run = actions[event.key];
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
    stage.requestDraw();
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
function focusSpot(stage, spot) {
  if (spot) stage.focus(spot.key, true);
}

/**
 * @param {Spot} spot
 * @param {readonly Spot[]} others
 */
function nearest(spot, others) {
  const distance = (/** @type {Spot} */ item) => Math.hypot(item.x - spot.x, 2 * (item.y - spot.y));
  return [...others].sort((a, b) => distance(a) - distance(b))[0];
}

/**
 * The next node of the layer, top to bottom and column by column; at its end, the next layer.
 *
 * @param {Stage} stage
 * @param {Spot} spot
 * @param {1 | -1} way
 */
function nextInLayer(stage, spot, way) {
  const peers = stage.scenery.scene.spots
    .filter((item) => item.around === spot.around)
    .sort((a, b) => a.layer - b.layer || a.x - b.x || a.y - b.y);
  return peers[peers.indexOf(spot) + way];
}
