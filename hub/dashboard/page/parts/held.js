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
