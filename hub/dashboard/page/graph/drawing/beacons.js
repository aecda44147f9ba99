// Beacons: from afar, what waits at a gate is still seen.
import { element } from "./element.js";

/**
 * @typedef {import("../layout/scene.js").Spot} Spot
 * @typedef {import("./camera.js").Camera} Camera
 * @typedef {import("./camera.js").Size} Size
 */

/** With more than these at once, nothing would stand out. */
const AT_MOST = 80;

export class Beacons {
  constructor() {
    this.root = element("div", "graph-beacons");
    this.root.setAttribute("aria-hidden", "true");
  }

  /**
   * @param {readonly Spot[]} spots
   * @param {Camera} camera
   * @param {Size} size
   */
  show(spots, { x, y, scale }, size) {
    const places = [];
    for (const spot of spots) {
      const left = x + (spot.x + spot.width / 2) * scale;
      const top = y + (spot.y + spot.height / 2) * scale;
      if (left < 0 || top < 0 || left > size.width || top > size.height) continue;
      places.push([left, top]);
      if (places.length > AT_MOST) break;
    }
    const all = places.length > AT_MOST ? [] : places;
    while (this.root.childElementCount > all.length) this.root.lastElementChild?.remove();
    while (this.root.childElementCount < all.length) this.root.append(element("i", "graph-beacon"));
    all.forEach(([left, top], at) => {
      const beacon = /** @type {HTMLElement} */ (this.root.children[at]);
      beacon.style.transform = `translate(${left}px, ${top}px)`;
    });
  }
}
