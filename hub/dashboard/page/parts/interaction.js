/**
 * Detects whether the user is interacting with a list, so that live updates do not move its rows.
 */

import { useMemo, useSignal } from "../vendor/preact.js";

/**
 * held: whether the pointer is over the element or the focus inside it. Spread `on` on the element.
 * @returns {{held: import("../vendor/preact.js").Signal<boolean>, on: Record<string, (event: any) => void>}}
 */
export function useInteraction() {
  const hovered = useSignal(false);
  const inside = useSignal(false);
  const held = useSignal(false);
  return useMemo(() => {
    const update = () => {
      held.value = hovered.peek() || inside.peek();
    };
    /** @param {import("../vendor/preact.js").Signal<boolean>} which @param {boolean} value */
    const set = (which, value) => () => {
      which.value = value;
      update();
    };
    return {
      held,
      on: {
        onPointerEnter: set(hovered, true),
        onPointerLeave: set(hovered, false),
        onFocusIn: set(inside, true),
        /** @param {FocusEvent} event */
        onFocusOut: (event) => {
          const list = /** @type {Node} */ (event.currentTarget);
          inside.value = list.contains(/** @type {Node | null} */ (event.relatedTarget));
          update();
        },
      },
    };
  }, []);
}
