// The graph at any of its events: the same fold, remembered step by step, to and fro.
import { beginning, fold } from "./events.js";

/**
 * @typedef {import("../tree.js").Tree} Tree
 * @typedef {import("../shapes.js").EventDocument} EventDocument
 * @typedef {import("../shapes.js").Progress} Progress
 * @typedef {{ key: string, before: Progress, after: Progress }} Change of which a step has one for a key
 */

export class Playback {
  /**
   * @param {Tree} tree
   * @param {readonly EventDocument[]} events from the beginning of the traversal on, in their order
   */
  constructor(tree, events) {
    /** The nodes after so many events as `at` says. */
    this.now = beginning(tree);
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
   * Go to where so many events have happened.
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
