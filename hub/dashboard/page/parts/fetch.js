/** Fetches data for a component, again when it may have changed, and not too often. */

import { useEffect, useSignal } from "../vendor/preact.js";

/** @template T @typedef {import("../vendor/preact.js").Signal<T>} Signal */

/**
 * `data` is the last result, kept if a later fetch fails; `failure` is the error of the last fetch.
 * @template T
 * @param {() => Promise<T>} read
 * @param {readonly unknown[]} inputs a change of any of them starts a new fetch
 * @param {(again: () => void) => () => void} [when] subscribes to changes; returns a
 *   function that unsubscribes
 * @returns {{data: Signal<T | null>, failure: Signal<unknown>}}
 */
export function useFetch(read, inputs, when) {
  const data = useSignal(/** @type {T | null} */ (null));
  const failure = useSignal(/** @type {unknown} */ (null));
  useEffect(() => {
    let ended = false;
    const refetch = coalesce(async () => {
      if (ended) return;
      try {
        const result = await read();
        if (ended) return;
        data.value = result;
        failure.value = null;
      } catch (error) {
        if (!ended) failure.value = error;
      }
    });
    refetch();
    const stop = when?.(refetch);
    return () => {
      ended = true;
      stop?.();
    };
  }, [...inputs]);
  return { data, failure };
}

/** For `when` of `useFetch`: fetches at an interval while the page is visible. @param {number} milliseconds */
export function every(milliseconds) {
  return (/** @type {() => void} */ again) => {
    const timer = setInterval(() => {
      if (!document.hidden) again();
    }, milliseconds);
    return () => clearInterval(timer);
  };
}

/** Minimum pause between two runs, in milliseconds. */
const MIN_PAUSE = 100;
/** Maximum pause, for slow work. */
const MAX_PAUSE = 5000;

/**
 * Returns a function that schedules `work`: immediately the first time, later once per pause, which
 * grows with the duration of the work.
 * @param {() => Promise<void>} work must not throw
 */
export function coalesce(work) {
  let busy = false;
  let pending = false;
  let pause = 0;
  async function run() {
    pending = false;
    const began = performance.now();
    await work();
    pause = Math.min(MAX_PAUSE, Math.max(MIN_PAUSE, 2 * (performance.now() - began)));
    if (pending) setTimeout(run, pause);
    else busy = false;
  }
  return () => {
    pending = true;
    if (busy) return;
    busy = true;
    setTimeout(run, pause);
  };
}
