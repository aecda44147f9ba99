// Mouse, pen and touch: drag or wheel to pan, Ctrl and wheel or pinch to zoom.

/**
 * @typedef {import("./stage.js").Stage} Stage
 * @typedef {{ select: (key: string) => void, side: (key: string, side: "pre" | "post") => void }} Acts
 */

/** Pixels of movement from which a press is a drag. */
const DRAG = 5;
/** Zoom for each pixel that the wheel scrolls, as an exponent of e. */
const ZOOM_PER_PIXEL = 0.0088;

/**
 * @param {Stage} stage
 * @param {Acts} acts
 * @returns {() => void} removes the listeners
 */
export function listenToPointer(stage, acts) {
  const { host } = stage;
  const listeners = new AbortController();
  const { signal } = listeners;
  /** @type {Map<number, { x: number, y: number }>} */
  const down = new Map();
  let dragged = false;
  let moved = 0;

  host.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const pixels = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 18 : 1;
      const { x, y } = placeOf(host, event);
      if (event.ctrlKey || event.metaKey) {
        stage.zoom(Math.exp(-event.deltaY * pixels * ZOOM_PER_PIXEL), x, y);
      } else if (event.shiftKey && !event.deltaX) stage.pan(-event.deltaY * pixels, 0);
      else stage.pan(-event.deltaX * pixels, -event.deltaY * pixels);
    },
    { passive: false, signal },
  );
  host.addEventListener(
    "pointerdown",
    (event) => {
      if (event.button > 1) return;
      if (!down.size) {
        dragged = false;
        moved = 0;
      }
      down.set(event.pointerId, placeOf(host, event));
    },
    { signal },
  );
  host.addEventListener(
    "pointermove",
    (event) => {
      const last = down.get(event.pointerId);
      if (!last || !event.buttons) return;
      const now = placeOf(host, event);
      moved += Math.hypot(now.x - last.x, now.y - last.y);
      if (!dragged && moved < DRAG) return;
      if (!dragged) {
        dragged = true;
        host.setPointerCapture(event.pointerId);
        host.toggleAttribute("data-dragged", true);
      }
      const other = [...down].find(([id]) => id !== event.pointerId)?.[1];
      if (other) {
        const lastDistance = Math.hypot(last.x - other.x, last.y - other.y);
        const distance = Math.hypot(now.x - other.x, now.y - other.y);
        const middle = { x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 };
        if (lastDistance > 0) stage.zoom(distance / lastDistance, middle.x, middle.y);
        stage.pan((now.x - last.x) / 2, (now.y - last.y) / 2);
      } else stage.pan(now.x - last.x, now.y - last.y);
      down.set(event.pointerId, now);
    },
    { signal },
  );
  const up = (/** @type {PointerEvent} */ event) => {
    down.delete(event.pointerId);
    if (!down.size) host.toggleAttribute("data-dragged", false);
  };
  host.addEventListener("pointerup", up, { signal });
  host.addEventListener("pointercancel", up, { signal });
  host.addEventListener(
    "click",
    (event) => {
      if (dragged) {
        dragged = false;
        event.preventDefault();
        return;
      }
      const pressed = event.target instanceof Element ? event.target.closest("button") : null;
      const key = keyAt(stage, event);
      if (key === null) return;
      const action = pressed?.dataset.action;
      if (action === "pre" || action === "post") acts.side(key, action);
      else if (action === "fold" || stage.scenery.spot(key)?.item.kind === "group") {
        stage.toggle(key);
      } else {
        stage.focus(key, false);
        acts.select(key);
      }
    },
    { signal },
  );
  host.addEventListener(
    "dblclick",
    (event) => {
      const key = keyAt(stage, event);
      const item = stage.scenery.spot(key)?.item;
      if (key !== null && item?.kind === "node" && item.opens) stage.toggle(key);
      const { x, y } = placeOf(host, event);
      if (key === null) stage.zoom(1.6, x, y);
    },
    { signal },
  );
  return () => listeners.abort();
}

/**
 * @param {HTMLElement} host
 * @param {MouseEvent} event
 */
function placeOf(host, event) {
  const { left, top } = host.getBoundingClientRect();
  return { x: event.clientX - left, y: event.clientY - top };
}

/**
 * Key of the node under the pointer, also if it is drawn as a shape.
 *
 * @param {Stage} stage
 * @param {MouseEvent} event
 * @returns {string | null}
 */
function keyAt(stage, event) {
  const card = event.target instanceof Element ? event.target.closest(".graph-node") : null;
  if (card instanceof HTMLElement && card.dataset.key !== undefined) return card.dataset.key;
  if (event.target instanceof Element && event.target.closest(".graph-minimap")) return null;
  const { x, y, scale } = stage.camera;
  const place = placeOf(stage.host, event);
  const [left, top] = [(place.x - x) / scale, (place.y - y) / scale];
  const hit = stage.scenery.scene.spots.filter(
    (spot) =>
      !spot.item.view &&
      left >= spot.x &&
      top >= spot.y &&
      left <= spot.x + spot.width &&
      top <= spot.y + spot.height,
  );
  return hit.at(-1)?.key ?? null;
}
