/** The list of stacks as it is read, and read again where something happened. */

import { call, isAborted } from "../api/client.js";
import { listen } from "../api/live.js";
import { repeated } from "../parts/repeated.js";
import { batch, signal } from "../vendor/preact.js";
import { countsPath, linesPath, PAGE, pagePath } from "./asked.js";
import { joined, looked, meant } from "./fold.js";

/** @typedef {import("./shapes.js").Line} Line */
/** @typedef {import("./shapes.js").Shown} Shown */
/** @typedef {import("./shapes.js").Counts} Counts */
/** @typedef {import("./asked.js").Asked} Asked */
/** @template T @typedef {import("../vendor/preact.js").Signal<T>} Signal */

/** Counts look at every stack of the project: at most so often, in milliseconds. */
const COUNTED = 2000;

/**
 * The list of a project. held: whether rows may not move now. `load` reads a page of it, `join`
 * shows what is new; call `end` when nobody looks any more.
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
  /** @type {Asked | null} */
  let asked = null;
  let reading = new AbortController();
  let ended = false;
  let counted = 0;

  /** @param {Asked} wanted */
  async function load(wanted) {
    asked = wanted;
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

  const look = repeated(async () => {
    const ids = [...queue].slice(0, PAGE);
    const wanted = asked;
    if (ended || ids.length === 0 || !wanted || !shown.value) return;
    for (const id of ids) queue.delete(id);
    try {
      const found = await call("GET", project, linesPath(ids));
      // Another page may be shown by now, which was read later than this.
      if (ended || wanted !== asked || !shown.value) return;
      const fresh = looked(shown.value, ids, found.stacks, wanted);
      shown.value = held.peek() ? fresh : joined(fresh);
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
    const wanted = asked;
    if (ended || !wanted) return;
    try {
      const found = await call("GET", project, countsPath(wanted));
      if (!ended && wanted === asked) counts.value = found.counts;
    } catch {
      // The rows say it, if the server is not there.
    }
    counted = Date.now();
    timer = undefined;
  }

  const again = () => asked && load(asked);
  const stop = listen({
    event: (event) => {
      const id = meant(event);
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
      if (shown.value) shown.value = joined(shown.value);
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
