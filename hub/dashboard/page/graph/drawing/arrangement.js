// What the user has arranged in the graph of a stack, kept while another graph of it is shown.

/**
 * open: keys of expanded items. camera: null until the user moves it.
 *
 * @typedef {object} Arrangement
 * @property {import("../fold/view.js").By} by
 * @property {Set<string>} open
 * @property {import("./camera.js").Camera | null} camera
 */

/** @returns {Arrangement} */
export function newArrangement() {
  return { by: "auto", open: new Set(), camera: null };
}
