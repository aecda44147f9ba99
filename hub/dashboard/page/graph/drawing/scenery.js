// The layout of a view of a model, and the states of its spots.
import { displayState, tally } from "../fold/tally.js";
import { sceneOf } from "../layout/scene.js";
import { Index } from "./index.js";

/**
 * @typedef {import("../layout/scene.js").Spot} Spot
 * @typedef {import("../fold/view.js").View} View
 * @typedef {import("../fold/tally.js").Tally} Tally
 * @typedef {import("../model.js").GraphModel} GraphModel
 * @typedef {import("../types.js").Shown} Shown
 */

/** State shown for a group without waiting, failed or stopped nodes; the first present one. */
const USUAL = /** @type {const} */ (["running", "parked", "ready", "waiting", "done"]);
/** States to zoom to; the first present one. */
const ZOOM_STATES = /** @type {const} */ (["gate", "failed", "stopped", "running", "parked"]);

export class Scenery {
  /**
   * @param {GraphModel} model
   * @param {View} view
   * @param {import("../layout/scene.js").Sized} [sized] if it has been measured
   */
  constructor(model, view, sized) {
    this.model = model;
    this.view = view;
    this.scene = sceneOf(view, sized);
    this.index = new Index(this.scene, model.tree);
    /** @type {Map<string, Tally>} */
    this.tallies = new Map();
  }

  /** @param {string | null} key */
  spot(key) {
    return key === null ? undefined : this.scene.byKey.get(key);
  }

  /** @param {Spot} spot @returns {Shown} its own state, or the most important one of a group */
  stateOf(spot) {
    const { item } = spot;
    const progress = item.node && this.model.known.get(item.node.key);
    const inside = item.opens && !item.view ? this.tallyOf(spot) : null;
    if (progress) return inside?.sign === "gate" ? "gate" : displayState(progress);
    if (!inside) return "waiting";
    return inside.sign ?? USUAL.find((state) => inside.counts[state]) ?? "dropped";
  }

  /** @param {Spot} spot @returns {Tally} of the nodes in it */
  tallyOf(spot) {
    const known = this.tallies.get(spot.key);
    if (known) return known;
    const { item } = spot;
    const keys = item.kind === "node" ? item.members.slice(1) : item.members;
    const made = tally(keys.flatMap((key) => this.model.known.get(key) ?? []));
    this.tallies.set(spot.key, made);
    return made;
  }

  /**
   * @param {ReadonlySet<string>} keys of nodes that changed
   * @returns {Set<string>} keys of the spots that show them
   */
  invalidate(keys) {
    /** @type {Set<string>} */
    const touched = new Set();
    for (const key of keys) {
      for (const spot of this.index.spotsContaining(key)) {
        this.tallies.delete(spot.key);
        touched.add(spot.key);
      }
    }
    return touched;
  }

  /** The initial focus: a node that waits for approval, if any. */
  initialSpot() {
    const { spots } = this.scene;
    return (spots.find((spot) => this.stateOf(spot) === "gate") ?? spots[0])?.key ?? null;
  }

  /**
   * The spot to show first in a picture larger than the window: where the change waits, has failed,
   * or runs, else its beginning.
   */
  mainSpot() {
    const { spots } = this.scene;
    const states = spots.map((spot) => this.stateOf(spot));
    const at = ZOOM_STATES.map((state) => states.indexOf(state)).find((index) => index >= 0);
    return spots[at ?? 0];
  }

  gates() {
    return this.scene.spots.filter((spot) => !spot.item.view && this.stateOf(spot) === "gate");
  }

  /** @returns {string[]} keys of the nodes that wait for approval, else failed, else running */
  zoomTargets() {
    const all = [...this.model.known];
    const matches = ZOOM_STATES.map((state) =>
      all.filter(([, progress]) => displayState(progress) === state),
    );
    return (matches.find((some) => some.length) ?? []).map(([key]) => key);
  }
}
