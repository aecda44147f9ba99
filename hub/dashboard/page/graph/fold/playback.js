// The graph after any number of events, with the changes of each event stored for both directions.
import { fold, initialProgress } from "./events.js";

/**
 * @typedef {import("../tree.js").Tree} Tree
 * @typedef {import("../types.js").EventDocument} EventDocument
 * @typedef {import("../types.js").Progress} Progress
 * @typedef {{ key: string, before: Progress, after: Progress }} Change at most one per key and step
 */

export class Playback {
  /**
   * @param {Tree} tree
   * @param {readonly EventDocument[]} events from the start of the traversal, in order
   */
  constructor(tree, events) {
    /** The nodes after `at` events. */
    this.now = initialProgress(tree);
    this.at = 0;
    /** @type {Change[][]} */
    this.steps = [];
    for (const event of events) this.#add(tree, event);
  }

  get length() {
    return this.steps.length;
  }

  /**
   * @param {Tree} tree
   * @param {EventDocument} event
   */
  #add(tree, event) {
    /** @type {Change[]} */
    const step = [];
    for (const [key, after] of fold(tree, this.now, event).changes) {
      const before = /** @type {Progress} */ (this.now.get(key));
      step.push({ key, before, after });
      this.now.set(key, after);
    }
    this.steps.push(step);
    this.at = this.steps.length;
  }

  /**
   * Moves to the state after a number of events.
   *
   * @param {number} count
   * @returns {Set<string>} the keys that may have changed
   */
  seek(count) {
    const target = Math.max(0, Math.min(count, this.length));
    /** @type {Set<string>} */
    const touched = new Set();
    for (; this.at < target; this.at++) {
      for (const { key, after } of this.steps[this.at] ?? []) {
        this.now.set(key, after);
        touched.add(key);
      }
    }
    for (; this.at > target; this.at--) {
      for (const { key, before } of this.steps[this.at - 1] ?? []) {
        this.now.set(key, before);
        touched.add(key);
      }
    }
    return touched;
  }
}
