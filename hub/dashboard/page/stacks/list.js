/** Fetches the list of stacks and updates it from events. */

import { call, isAborted } from "../api/client.js";
import { listen } from "../api/live.js";
import { coalesced } from "../parts/coalesced.js";
import { batch, signal } from "../vendor/preact.js";
import { mergeStacks, rootStackOf, withAdded } from "./merge.js";
import { countsPath, linesPath, PAGE, pagePath } from "./query.js";

/** @typedef {import("./types.js").Line} Line */
/** @typedef {import("./types.js").Shown} Shown */
/** @typedef {import("./types.js").Counts} Counts */
/** @typedef {import("./query.js").StackQuery} StackQuery */
/** @template T @typedef {import("../vendor/preact.js").Signal<T>} Signal */

/** Minimum interval between two counts in milliseconds, as they scan all stacks of the project. */
const COUNTED = 2000;

/**
 * The list of a project. held: whether rows must keep their positions. `load` fetches a page,
 * `join` shows new stacks, `end` stops the updates.
 * @param {string} project @param {Signal<boolean>} held
 */
export function stackList(project, held) {
  /** @type {Signal<Shown | null>} */
  const shown = signal(null);
  /** @type {Signal<Counts | null>} */
  const counts = signal(null);
  const next = signal("");
  /** @type {Signal<unknown>} */
  const wrong = signal(null);
  const busy = signal(false);
  /** @type {Set<string>} */
  const queue = new Set();
  /** @type {StackQuery | null} */
  let query = null;
  let reading = new AbortController();
  let ended = false;
  let counted = 0;

  /** @param {StackQuery} wanted */
  async function load(wanted) {
    query = wanted;
    reading.abort();
    reading = new AbortController();
    const { signal: given } = reading;
    busy.value = true;
    try {
      const found = await call("GET", project, pagePath(wanted), undefined, { signal: given });
      batch(() => {
        shown.value = { rows: found.stacks, gone: new Set(), added: [] };
        next.value = found.next ?? "";
        counts.value = found.counts;
        wrong.value = null;
      });
    } catch (error) {
      if (!isAborted(error)) wrong.value = error;
    } finally {
      if (!given.aborted) busy.value = false;
    }
  }

  const look = coalesced(async () => {
    const ids = [...queue].slice(0, PAGE);
    const wanted = query;
    if (ended || ids.length === 0 || !wanted || !shown.value) return;
    for (const id of ids) queue.delete(id);
    try {
      const found = await call("GET", project, linesPath(ids));
      // Another page may have been loaded in the meantime.
      if (ended || wanted !== query || !shown.value) return;
      const fresh = mergeStacks(shown.value, ids, found.stacks, wanted);
      shown.value = held.peek() ? fresh : withAdded(fresh);
      wrong.value = null;
    } catch (error) {
      if (!ended) wrong.value = error;
    }
    if (queue.size > 0) look();
    count();
  });

  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  function count() {
    timer ??= setTimeout(recount, Math.max(0, counted + COUNTED - Date.now()));
  }
  async function recount() {
    const wanted = query;
    if (ended || !wanted) return;
    try {
      const found = await call("GET", project, countsPath(wanted));
      if (!ended && wanted === query) counts.value = found.counts;
    } catch {
      // The rows show the error if the server is not reachable.
    }
    counted = Date.now();
    timer = undefined;
  }

  const again = () => query && load(query);
  const stop = listen({
    event: (event) => {
      const id = rootStackOf(event);
      if (!id) return;
      queue.add(id);
      look();
    },
    resync: () => {
      if (!held.peek()) return again();
      for (const { id } of shown.value?.rows ?? []) queue.add(id);
      look();
    },
  });
  return {
    shown,
    counts,
    next,
    wrong,
    busy,
    load,
    again,
    join: () => {
      if (shown.value) shown.value = withAdded(shown.value);
    },
    end: () => {
      ended = true;
      reading.abort();
      clearTimeout(timer);
      stop();
    },
  };
}

/** @typedef {ReturnType<typeof stackList>} StackList */
