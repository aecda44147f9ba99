// Computes layouts in a thread of its own. background.js starts it.
import { measure } from "./scene.js";

addEventListener("message", ({ data: { job, outline } }) => {
  postMessage({ job, sized: measure(outline) });
});
