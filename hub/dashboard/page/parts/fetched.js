/** Fetching data for a component, and fetching it again when it may have changed. */

import { useEffect, useSignal } from "../vendor/preact.js";
import { coalesced } from "./coalesced.js";

/** @template T @typedef {import("../vendor/preact.js").Signal<T>} Signal */

/**
 * `found` is the last result, kept if a later fetch fails; `wrong` is the error of the last fetch.
 * @template T
 * @param {() => Promise<T>} read
 * @param {readonly unknown[]} inputs a change of any of them starts a new fetch
 * @param {(again: () => void) => () => void} [when] subscribes to changes; returns a
 *   function that unsubscribes
 * @returns {{found: Signal<T | null>, wrong: Signal<unknown>}}
 */
export function useFetched(read, inputs, when) {
  const found = useSignal(/** @type {T | null} */ (null));
  const wrong = useSignal(/** @type {unknown} */ (null));
  useEffect(() => {
    let ended = false;
    const again = coalesced(async () => {
      if (ended) return;
      try {
        const result = await read();
        if (ended) return;
        found.value = result;
        wrong.value = null;
      } catch (error) {
        if (!ended) wrong.value = error;
      }
    });
    again();
    const stop = when?.(again);
    return () => {
      ended = true;
      stop?.();
    };
  }, [...inputs]);
  return { found, wrong };
}
