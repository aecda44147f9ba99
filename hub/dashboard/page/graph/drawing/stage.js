// The stage: layout, camera and focus. Drawn at most once per frame, and only after a change.
import { collapsedAncestors, countItems, viewOf } from "../fold/view.js";
import { measureInBackground } from "../layout/background.js";
import { drawBackdrop } from "./backdrop.js";
import { Beacons } from "./beacons.js";
import {
  boundingRect,
  clampCamera,
  fitCamera,
  NEAR,
  openingCamera,
  panToRect,
  READABLE,
  zoomCamera,
} from "./camera.js";
import { Deck } from "./deck.js";
import { element } from "./element.js";
import { Minimap } from "./minimap.js";
import { onTheme, paletteOf } from "./palette.js";
import { Scenery } from "./scenery.js";

/**
 * @typedef {import("../layout/scene.js").Spot} Spot
 * @typedef {import("../fold/view.js").By} By
 * @typedef {import("../model.js").GraphModel} GraphModel
 * @typedef {import("./arrangement.js").Arrangement} Arrangement
 * @typedef {import("./camera.js").Camera} Camera
 */

/** Milliseconds after the last movement until cards are rendered sharply. */
const SETTLE_TIME = 140;
/** Maximum number of items that are placed at once, in a few milliseconds; a worker places more. */
const FEW_ITEMS = 300;
/** Maximum number of nodes expanded automatically when zooming to waiting nodes. */
const MAX_UNFOLDED = 12;

export class Stage {
  /**
   * @param {HTMLElement} host
   * @param {GraphModel} model
   * @param {Arrangement} arrangement of the graph shown before; changed as the user changes it
   */
  constructor(host, model, arrangement) {
    this.host = host;
    this.model = model;
    this.arrangement = arrangement;
    /** @type {string | null} */
    this.selected = null;
    /** @type {string | null} */
    this.focused = null;
    /** Search results; null without a search. @type {ReadonlySet<string> | null} */
    this.found = null;
    /** @type {readonly string[]} */
    this.critical = [];
    this.editable = false;
    /** Observed states of resources with drift, by path. @type {ReadonlyMap<string, string>} */
    this.drift = new Map();
    /** Called after a change of scale, layout or node. */
    this.onChange = () => {};
    this.frame = 0;
    this.sharpening = 0;

    this.canvas = element("canvas", "graph-backdrop");
    this.canvas.setAttribute("aria-hidden", "true");
    this.deck = new Deck();
    this.beacons = new Beacons();
    this.minimap = new Minimap((x, y) => this.center(x, y, this.camera.scale));
    host.append(this.canvas, this.deck.root, this.beacons.root, this.minimap.canvas);
    this.palette = paletteOf(host);
    /** @type {Camera} */
    this.camera = { x: 0, y: 0, scale: 1 };
    this.size = { width: host.clientWidth, height: host.clientHeight };
    /** Number of the last layout that was requested. */
    this.layout = 0;
    /** What to do when it is displayed. @type {(() => void)[]} */
    this.afterLayout = [];
    this.scenery = new Scenery(model, { items: [], edges: [] });
    const { camera } = arrangement;
    this.build(() => {
      if (camera) this.setCamera(camera);
      else this.frameAtFirst();
    });

    const resized = new ResizeObserver(() => this.#resize());
    resized.observe(host);
    const endings = [
      model.listen((keys) => this.#update(keys)),
      onTheme(() => {
        this.palette = paletteOf(host);
        this.requestDraw();
      }),
      () => resized.disconnect(),
    ];
    this.destroy = () => {
      // The next graph of the stack shows the same part.
      if (!this.afterLayout.length) this.arrangement.camera ??= this.camera;
      this.layout = -1;
      for (const end of endings) end();
      cancelAnimationFrame(this.frame);
      clearTimeout(this.sharpening);
      host.replaceChildren();
    };
  }

  /**
   * Computes the layout with the current grouping. Until it is displayed, which for a large graph is
   * later, the previous one stays.
   *
   * @param {() => void} [then] called when it, or a later one, is displayed
   */
  build(then = () => {}) {
    const view = viewOf(this.model.tree, this.arrangement.by, this.arrangement.open);
    this.afterLayout.push(then);
    this.layout += 1;
    if (countItems(view) <= FEW_ITEMS) return this.#show(new Scenery(this.model, view));
    const { layout } = this;
    this.host.setAttribute("aria-busy", "true");
    measureInBackground(view).then((sized) => {
      if (layout === this.layout) this.#show(new Scenery(this.model, view, sized));
    });
  }

  /** @param {Scenery} scenery */
  #show(scenery) {
    this.scenery = scenery;
    this.host.removeAttribute("aria-busy");
    this.deck.clear();
    if (!scenery.spot(this.focused)) this.focused = scenery.initialSpot();
    this.minimap.outdated = true;
    this.requestDraw();
    this.onChange();
    for (const then of this.afterLayout.splice(0)) then();
  }

  /** Requests a redraw at the next frame. */
  requestDraw() {
    if (!this.frame) this.frame = requestAnimationFrame(() => this.draw());
  }

  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    const { camera, size, scenery, palette, found, selected, focused } = this;
    const { scene, index } = scenery;
    const near = camera.scale >= NEAR;
    this.host.toggleAttribute("data-far", !near);
    const stateOf = (/** @type {Spot} */ spot) => scenery.stateOf(spot);
    const chosen = selected === null ? [] : index.linesOf(selected);
    const critical = index.linesAlong(this.critical);
    drawBackdrop(this.canvas, {
      scene,
      camera,
      size,
      palette,
      near,
      stateOf,
      chosen,
      critical,
      found,
    });
    const describe = this.#describer();
    this.deck.update(scene.spots, camera, size, focused, selected, describe);
    this.beacons.show(near ? [] : scenery.gates(), camera, size);
    this.minimap.draw(scene, camera, size, palette, stateOf);
  }

  #describer() {
    const { scenery, model, selected, found, editable, drift } = this;
    const critical = new Set(this.critical);
    return (/** @type {Spot} */ spot) => ({
      progress: spot.item.node ? (model.known.get(spot.item.node.key) ?? null) : null,
      state: scenery.stateOf(spot),
      tally: scenery.tallyOf(spot),
      selected: spot.key === selected,
      critical: critical.has(spot.key),
      faint: found !== null && !spot.item.members.some((key) => found.has(key)),
      editable,
      drift: driftOf(spot, drift),
    });
  }

  /** @param {ReadonlySet<string> | null} keys */
  #update(keys) {
    if (keys === null) {
      this.selected = null;
      this.groupBy(this.arrangement.by);
      return;
    }
    for (const key of this.scenery.invalidate(keys)) this.deck.changed.add(key);
    this.minimap.outdated = true;
    this.requestDraw();
    this.onChange();
  }

  #resize() {
    const { clientWidth: width, clientHeight: height } = this.host;
    if (width === this.size.width && height === this.size.height) return;
    if (width === 0 || height === 0) return; // not displayed any more
    this.size = { width, height };
    if (this.arrangement.camera) return this.requestDraw();
    this.frameAtFirst();
  }

  /** @param {Camera} camera */
  setCamera(camera) {
    this.camera = clampCamera(camera, this.size, this.scenery.scene);
    this.arrangement.camera = this.camera;
    this.deck.root.style.willChange = "transform";
    clearTimeout(this.sharpening);
    this.sharpening = setTimeout(() => {
      this.deck.root.style.willChange = "";
    }, SETTLE_TIME);
    this.requestDraw();
    this.onChange();
  }

  /** @param {number} x @param {number} y pixels of the window */
  pan(x, y) {
    this.setCamera({ ...this.camera, x: this.camera.x + x, y: this.camera.y + y });
  }

  /** @param {number} factor @param {number} [x] in the window @param {number} [y] */
  zoom(factor, x = this.size.width / 2, y = this.size.height / 2) {
    this.setCamera(zoomCamera(this.camera, factor, x, y));
  }

  /** @param {number} x @param {number} y of the picture @param {number} scale */
  center(x, y, scale) {
    this.setCamera({
      scale,
      x: this.size.width / 2 - x * scale,
      y: this.size.height / 2 - y * scale,
    });
  }

  /** Shows the whole picture, however small. */
  fit() {
    const { width, height } = this.scenery.scene;
    this.setCamera(fitCamera({ x: 0, y: 0, width, height }, this.size));
  }

  /** Shows the picture at a readable scale, until the user moves it. */
  frameAtFirst() {
    const { scene } = this.scenery;
    const rect = this.scenery.mainSpot() ?? { x: 0, y: 0, width: 0, height: 0 };
    this.setCamera(openingCamera(scene, this.size, rect));
    this.arrangement.camera = null;
  }

  /** Zooms to the nodes that wait for approval, else to failed, else to running nodes. */
  fitWaiting() {
    const keys = this.scenery.zoomTargets();
    const [first] = keys;
    if (first === undefined) return this.fit();
    this.expandTo(keys.length <= MAX_UNFOLDED ? keys : [], () => {
      const { index } = this.scenery;
      const spots = [...new Set(keys.flatMap((key) => index.spotOf(key) ?? []))];
      this.setCamera(fitCamera(boundingRect(spots), this.size));
      this.focus(index.spotOf(first)?.key ?? null, false);
    });
  }

  /**
   * Expands all groups and nested stacks that contain the nodes.
   *
   * @param {readonly string[]} keys
   * @param {() => void} then called when they are displayed
   */
  expandTo(keys, then) {
    const { tree } = this.model;
    const { by, open } = this.arrangement;
    const before = open.size;
    for (const key of keys) {
      for (
        let closed = collapsedAncestors(viewOf(tree, by, open), key);
        closed.length;
        closed = collapsedAncestors(viewOf(tree, by, open), key)
      ) {
        for (const item of closed) open.add(item);
      }
    }
    if (open.size > before) this.build(then);
    else if (this.afterLayout.length) this.afterLayout.push(then);
    else then();
  }

  /**
   * Expands and pans so that a node is readable.
   *
   * @param {string} key
   */
  reveal(key) {
    this.expandTo([key], () => {
      const spot = this.scenery.spot(key);
      if (!spot) return;
      const far = this.camera.scale < NEAR;
      if (far) this.center(spot.x + spot.width / 2, spot.y + spot.height / 2, READABLE);
      else this.setCamera(panToRect(this.camera, this.size, spot));
      this.focus(key, false);
    });
  }

  /**
   * Expands or collapses a group or a nested stack; its position on the screen stays.
   *
   * @param {string} key
   */
  toggle(key) {
    const before = this.scenery.spot(key);
    if (!before?.item.opens) return;
    const { open } = this.arrangement;
    if (!open.delete(key)) open.add(key);
    const had = this.host.contains(document.activeElement);
    this.build(() => {
      const after = this.scenery.spot(key);
      if (!after) return;
      const { scale } = this.camera;
      this.pan((before.x - after.x) * scale, (before.y - after.y) * scale);
      this.setCamera(panToRect(this.camera, this.size, after));
      this.focus(key, had);
    });
  }

  /** @param {By} by */
  groupBy(by) {
    Object.assign(this.arrangement, { by, open: new Set() });
    this.build(() => this.frameAtFirst());
  }

  /**
   * @param {string | null} key of a spot
   * @param {boolean} take whether to move the keyboard focus as well
   */
  focus(key, take) {
    const spot = this.scenery.spot(key);
    if (!spot) return;
    this.focused = spot.key;
    if (take) this.setCamera(panToRect(this.camera, this.size, spot));
    this.draw(); // now: its card must exist to receive the focus
    if (take) this.deck.cards.get(spot.key)?.face.focus({ preventScroll: true });
  }

  /** @param {Partial<Pick<Stage, "selected" | "found" | "critical" | "editable" | "drift">>} what */
  set(what) {
    Object.assign(this, what);
    this.deck.invalidate();
    this.requestDraw();
  }
}

/**
 * @param {Spot} spot
 * @param {ReadonlyMap<string, string>} drift
 * @returns {string | null} a cleanup node is about another physical resource
 */
function driftOf({ item: { node } }, drift) {
  return node && node.direction === "forward" ? (drift.get(node.path) ?? null) : null;
}
