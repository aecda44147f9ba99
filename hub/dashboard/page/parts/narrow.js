/** Whether the window is as narrow as that of a phone. */

import { signal } from "../vendor/preact.js";

/** The same limit as in the styles. */
const query = matchMedia("(max-width: 48rem)");

export const narrow = signal(query.matches);
query.addEventListener("change", () => {
  narrow.value = query.matches;
});
