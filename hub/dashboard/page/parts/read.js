/** What a part of the page shows of the API: read at first, and again when it may have changed. */

import { useEffect, useSignal } from "../vendor/preact.js";
import { repeated } from "./repeated.js";

/** @template T @typedef {import("../vendor/preact.js").Signal<T>} Signal */

/**
 * `found` is what was read last, and stays where a later reading fails; `wrong` is why it did.
 * @template T
 * @param {() => Promise<T>} read
 * @param {readonly unknown[]} inputs it is begun anew when one of them is another
 * @param {(again: () => void) => () => void} [when] has it read again, until what is returned is
 *   called
 * @returns {{found: Signal<T | null>, wrong: Signal<unknown>}}
 */
export function useRead(read, inputs, when) {
  const found = useSignal(/** @type {T | null} */ (null));
  const wrong = useSignal(/** @type {unknown} */ (null));
  useEffect(() => {
    let ended = false;
    const again = repeated(async () => {
      if (ended) return;
      try {
        const said = await read();
        if (ended) return;
        found.value = said;
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
