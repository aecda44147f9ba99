// The cards: one for each visible near node, each expanded node, and the focused node.
import { intersects, NEAR, visibleRect } from "./camera.js";
import { Card } from "./cards.js";
import { element } from "./element.js";

/**
 * @typedef {import("../layout/scene.js").Spot} Spot
 * @typedef {import("./camera.js").Camera} Camera
 * @typedef {import("./camera.js").Size} Size
 * @typedef {import("./cards.js").CardState} CardState
 */

/** Cards are also made for nodes up to this many pixels outside the window. */
const AHEAD = 160;
/** Up to this number of nodes, cards exist at any distance, for assistive technology. */
const FEW = 200;

export class Deck {
  constructor() {
    this.root = element("div", "graph-world");
    /** @type {Map<string, Card>} */
    this.cards = new Map();
    /** Keys of cards to update. @type {Set<string>} */
    this.changed = new Set();
    /** Cards made and updated, for the benchmark. */
    this.made = 0;
    this.reported = 0;
  }

  clear() {
    this.root.replaceChildren();
    this.cards.clear();
  }

  /** Marks all cards for update. */
  invalidate() {
    for (const key of this.cards.keys()) this.changed.add(key);
  }

  /**
   * @param {readonly Spot[]} spots
   * @param {Camera} camera
   * @param {Size} size
   * @param {string | null} focused key of the spot in the tab order
   * @param {string | null} selected
   * @param {(spot: Spot) => CardState} describe
   */
  update(spots, camera, size, focused, selected, describe) {
    const moved = `translate(${camera.x}px, ${camera.y}px) scale(${camera.scale})`;
    if (this.root.style.transform !== moved) this.root.style.transform = moved;
    const { x, y, width, height } = visibleRect(camera, size);
    const more = AHEAD / camera.scale;
    const window = { x: x - more, y: y - more, width: width + 2 * more, height: height + 2 * more };
    const near = camera.scale >= NEAR || spots.length <= FEW;
    const large = camera.scale >= NEAR / 2;
    /** @type {Set<string>} */
    const keys = new Set();
    for (const spot of spots) {
      const special = spot.key === focused || spot.key === selected;
      const visible = (near || (large && spot.item.view !== null)) && intersects(spot, window);
      if (!special && !visible) continue;
      keys.add(spot.key);
      const card = this.cards.get(spot.key);
      if (!card) this.#make(spot).show(describe(spot));
      else if (this.changed.has(spot.key)) card.show(describe(spot));
      else continue;
      this.reported++;
    }
    this.changed.clear();
    for (const [key, card] of this.cards) {
      if (keys.has(key)) card.face.tabIndex = key === focused ? 0 : -1;
      else {
        card.root.remove();
        this.cards.delete(key);
      }
    }
  }

  /** @param {Spot} spot */
  #make(spot) {
    const card = new Card(spot);
    this.made++;
    this.cards.set(spot.key, card);
    this.root.append(card.root);
    return card;
  }
}
