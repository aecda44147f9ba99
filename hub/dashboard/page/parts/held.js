/** Lists that change by themselves do not move under who is about to press something in them. */

import { useMemo, useSignal } from "../vendor/preact.js";

/**
 * Whether the pointer is over something, or the focus inside of it; `on` goes to its element.
 * @returns {{held: import("../vendor/preact.js").Signal<boolean>, on: Record<string, (event: any) => void>}}
 */
export function useHeld() {
  const over = useSignal(false);
  const inside = useSignal(false);
  const held = useSignal(false);
  return useMemo(() => {
    const settle = () => {
      held.value = over.peek() || inside.peek();
    };
    /** @param {import("../vendor/preact.js").Signal<boolean>} which @param {boolean} value */
    const set = (which, value) => () => {
      which.value = value;
      settle();
    };
    return {
      held,
      on: {
        onPointerEnter: set(over, true),
        onPointerLeave: set(over, false),
        onFocusIn: set(inside, true),
        /** @param {FocusEvent} event */
        onFocusOut: (event) => {
          const list = /** @type {Node} */ (event.currentTarget);
          inside.value = list.contains(/** @type {Node | null} */ (event.relatedTarget));
          settle();
        },
      },
    };
  }, []);
}

/**
 * What a list shows when it was read anew: while it is held every row stays where it is, and
 * `more` says how many are to come.
 * @template {{id: string}} T
 * @param {readonly T[]} shown @param {readonly T[]} fresh @param {boolean} held
 * @returns {{rows: T[], more: number}}
 */
export function steady(shown, fresh, held) {
  if (!held || shown.length === 0) return { rows: [...fresh], more: 0 };
  const found = new Map(fresh.map((one) => [one.id, one]));
  const known = new Set(shown.map((one) => one.id));
  return {
    rows: shown.map((one) => found.get(one.id) ?? one),
    more: fresh.filter((one) => !known.has(one.id)).length,
  };
}
