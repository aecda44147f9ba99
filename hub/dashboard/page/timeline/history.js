/** The events of a traversal and of its nested stacks, in order. */

import { isAborted } from "../api/client.js";
import { signal } from "../vendor/preact.js";

/** @typedef {import("../api/documents.js").CloudEvent} CloudEvent */
/** @typedef {import("../stack/watch.js").WatchedStack} WatchedStack */

/** Events per request. */
const PAGE = 1000;
/** Maximum number of events loaded. */
export const MAX_EVENTS = 20_000;

/** @param {string} project of the events */
export class History {
  /** @param {WatchedStack} watched @param {number} traversal */
  constructor(watched, traversal) {
    this.watched = watched;
    this.traversal = traversal;
    /** @type {import("../vendor/preact.js").Signal<CloudEvent[]>} */
    this.events = signal([]);
    /** Whether all events up to now are loaded. */
    this.whole = signal(false);
    /** @type {import("../vendor/preact.js").Signal<unknown>} */
    this.failure = signal(null);
    this.ended = false;
  }

  /** Loads the events. */
  async read() {
    this.failure.value = null;
    this.whole.value = false;
    try {
      /** @type {CloudEvent[]} */
      const result = [];
      let after = "";
      while (!this.ended && result.length < MAX_EVENTS) {
        const { events, next } = await this.watched.get(
          `/history?nested=true&traversal=${this.traversal}&limit=${PAGE}${after}`,
        );
        result.push(...events);
        if (next === null) break;
        after = `&after=${encodeURIComponent(next)}`;
      }
      this.events.value = result;
      this.whole.value = true;
    } catch (error) {
      if (!this.ended && !isAborted(error)) this.failure.value = error;
    }
  }

  close() {
    this.ended = true;
  }
}
