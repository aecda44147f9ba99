/** Fetches the list of stacks and updates it from events. */

import { call, isAborted } from "../api/client.js";
import { listen } from "../api/live.js";
import { coalesce } from "../parts/fetch.js";
import { batch, signal } from "../vendor/preact.js";
import { mergeStacks, rootStackOf, withAdded } from "./merge.js";
import { countsPath, linesPath, PAGE, pagePath } from "./query.js";

/** @typedef {import("./types.js").Line} Line */
/** @typedef {import("./types.js").Shown} Shown */
/** @typedef {import("./types.js").Counts} Counts */
/** @typedef {import("./query.js").StackQuery} StackQuery */
/** @template T @typedef {import("../vendor/preact.js").Signal<T>} Signal */

/** Minimum interval between two counts in milliseconds, as they scan all stacks of the project. */
const COUNT_INTERVAL = 2000;

/**
 * The list of a project. held: whether rows must keep their positions. `load` fetches a page,
 * `showAdded` shows new stacks, `end` stops the updates.
 * @param {string} project @param {Signal<boolean>} held
 */
export function stackList(project, held) {
  /** @type {Signal<Shown | null>} */
  const shown = signal(null);
  /** @type {Signal<Counts | null>} */
  const counts = signal(null);
  const next = signal("");
  /** @type {Signal<unknown>} */
  const failure = signal(null);
  const busy = signal(false);
  /** @type {Set<string>} */
  const queue = new Set();
  /** @type {StackQuery | null} */
  let query = null;
  let reading = new AbortController();
  let ended = false;
  let counted = 0;

  /** @param {StackQuery} newQuery */
  async function load(newQuery) {
    query = newQuery;
    reading.abort();
    reading = new AbortController();
    const { signal: aborting } = reading;
    busy.value = true;
    try {
      const response = await call("GET", project, pagePath(newQuery), undefined, {
        signal: aborting,
      });
      batch(() => {
        shown.value = { rows: response.stacks, deleted: new Set(), added: [] };
        next.value = response.next ?? "";
        counts.value = response.counts;
        failure.value = null;
      });
    } catch (error) {
      if (!isAborted(error)) failure.value = error;
    } finally {
      if (!aborting.aborted) busy.value = false;
    }
  }

  const refresh = coalesce(async () => {
    const ids = [...queue].slice(0, PAGE);
    const current = query;
    if (ended || ids.length === 0 || !current || !shown.value) return;
    for (const id of ids) queue.delete(id);
    try {
      const response = await call("GET", project, linesPath(ids));
      // Another page may have been loaded in the meantime.
      if (ended || current !== query || !shown.value) return;
      const fresh = mergeStacks(shown.value, ids, response.stacks, current);
      shown.value = held.peek() ? fresh : withAdded(fresh);
      failure.value = null;
    } catch (error) {
      if (!ended) failure.value = error;
    }
    if (queue.size > 0) refresh();
    count();
  });

  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  function count() {
    timer ??= setTimeout(recount, Math.max(0, counted + COUNT_INTERVAL - Date.now()));
  }
  async function recount() {
    const current = query;
    if (ended || !current) return;
    try {
      const response = await call("GET", project, countsPath(current));
      if (!ended && current === query) counts.value = response.counts;
    } catch {
      // The rows show the error if the server is not reachable.
    }
    counted = Date.now();
    timer = undefined;
  }

  const reload = () => query && load(query);
  const stop = listen({
    event: (event) => {
      const id = rootStackOf(event);
      if (!id) return;
      queue.add(id);
      refresh();
    },
    resync: () => {
      if (!held.peek()) return reload();
      for (const { id } of shown.value?.rows ?? []) queue.add(id);
      refresh();
    },
  });
  return {
    shown,
    counts,
    next,
    failure,
    busy,
    load,
    again: reload,
    showAdded: () => {
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
