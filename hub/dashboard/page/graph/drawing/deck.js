// The cards on the stage: one for each node that is seen near by, for what is unfolded, and for who is
// in focus.
import { meet, NEAR, seen } from "./camera.js";
import { Card } from "./cards.js";
import { element } from "./element.js";

/**
 * @typedef {import("../layout/scene.js").Spot} Spot
 * @typedef {import("./camera.js").Camera} Camera
 * @typedef {import("./camera.js").Size} Size
 * @typedef {import("./cards.js").Told} Told
 */

/** Cards are made for what is so near to the window, in its pixels. */
const AHEAD = 160;
/** So few have cards from afar as well, for who does not see what is drawn behind them. */
const FEW = 200;

export class Deck {
  constructor() {
    this.root = element("div", "graph-world");
    /** @type {Map<string, Card>} */
    this.cards = new Map();
    /** Of which something changed. @type {Set<string>} */
    this.changed = new Set();
    /** How many were made, and how often one was told anew: the bench looks at it. */
    this.made = 0;
    this.told = 0;
  }

  clear() {
    this.root.replaceChildren();
    this.cards.clear();
  }

  /** All are to be told anew. */
  touch() {
    for (const key of this.cards.keys()) this.changed.add(key);
  }

  /**
   * @param {readonly Spot[]} spots
   * @param {Camera} camera
   * @param {Size} size
   * @param {string | null} focused can be reached by Tab; arrow keys go on from there
   * @param {string | null} selected
   * @param {(spot: Spot) => Told} tell
   */
  deal(spots, camera, size, focused, selected, tell) {
    const moved = `translate(${camera.x}px, ${camera.y}px) scale(${camera.scale})`;
    if (this.root.style.transform !== moved) this.root.style.transform = moved;
    const { x, y, width, height } = seen(camera, size);
    const more = AHEAD / camera.scale;
    const window = { x: x - more, y: y - more, width: width + 2 * more, height: height + 2 * more };
    const near = camera.scale >= NEAR || spots.length <= FEW;
    const large = camera.scale >= NEAR / 2;
    /** @type {Set<string>} */
    const wanted = new Set();
    for (const spot of spots) {
      const special = spot.key === focused || spot.key === selected;
      const visible = (near || (large && spot.item.view !== null)) && meet(spot, window);
      if (!special && !visible) continue;
      wanted.add(spot.key);
      const card = this.cards.get(spot.key);
      if (!card) this.#make(spot).show(tell(spot));
      else if (this.changed.has(spot.key)) card.show(tell(spot));
      else continue;
      this.told++;
    }
    this.changed.clear();
    for (const [key, card] of this.cards) {
      if (wanted.has(key)) card.face.tabIndex = key === focused ? 0 : -1;
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
