// Beacons: pulses around distant nodes that wait for approval.
import { element } from "./element.js";

/**
 * @typedef {import("../layout/scene.js").Spot} Spot
 * @typedef {import("./camera.js").Camera} Camera
 * @typedef {import("./camera.js").Size} Size
 */

/** No beacons are shown if there would be more than this. */
const MAX_BEACONS = 80;

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
      const [width, height] = [spot.width * scale, spot.height * scale];
      const [left, top] = [x + spot.x * scale, y + spot.y * scale];
      if (left < -width || top < -height || left > size.width || top > size.height) continue;
      places.push({ left, top, width, height });
      if (places.length > MAX_BEACONS) break;
    }
    const all = places.length > MAX_BEACONS ? [] : places;
    while (this.root.childElementCount > all.length) this.root.lastElementChild?.remove();
    while (this.root.childElementCount < all.length) this.root.append(element("i", "graph-beacon"));
    all.forEach(({ left, top, width, height }, at) => {
      const { style } = /** @type {HTMLElement} */ (this.root.children[at]);
      style.transform = `translate(${left}px, ${top}px)`;
      style.width = `${width}px`;
      style.height = `${height}px`;
    });
  }
}
