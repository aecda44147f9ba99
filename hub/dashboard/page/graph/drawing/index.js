// Lookup of the spot of a node and of the edges of a spot.
import { lineOf } from "../layout/scene.js";

/**
 * @typedef {import("../layout/scene.js").Scene} Scene
 * @typedef {import("../layout/scene.js").Spot} Spot
 * @typedef {import("../layout/scene.js").Line} Line
 * @typedef {import("../tree.js").Tree} Tree
 */

export class Index {
  /**
   * @param {Scene} scene
   * @param {Tree} tree
   */
  constructor(scene, tree) {
    this.scene = scene;
    this.tree = tree;
    /** @type {Map<string, Spot[]>} */
    this.holders = new Map();
    /** @type {Map<string, Line>} */
    this.lines = new Map();
    for (const spot of scene.spots) {
      for (const key of spot.item.members) {
        const existing = this.holders.get(key);
        if (existing) existing.push(spot);
        else this.holders.set(key, [spot]);
      }
    }
    for (const line of scene.lines.flat()) this.lines.set(`${line.from.key}>${line.to.key}`, line);
  }

  /**
   * @param {string} key of a node
   * @returns {readonly Spot[]} outermost first
   */
  spotsContaining(key) {
    return this.holders.get(key) ?? [];
  }

  /**
   * @param {string} key of a node
   * @returns {Spot | undefined} where it is drawn, or the group that contains it
   */
  spotOf(key) {
    return this.scene.byKey.get(key) ?? this.spotsContaining(key).at(-1);
  }

  /**
   * All edges of a spot, including those hidden by the transitive reduction.
   *
   * @param {string} key of a spot
   * @returns {Line[]}
   */
  linesOf(key) {
    const spot = this.scene.byKey.get(key);
    const node = spot?.item.node;
    if (!spot) return [];
    if (!node) {
      return [...spot.before, ...spot.after].flatMap(
        (other) =>
          this.lines.get(`${other.key}>${key}`) ?? this.lines.get(`${key}>${other.key}`) ?? [],
      );
    }
    return [
      ...node.before.flatMap((before) => this.#between(before, node.key)),
      ...node.after.flatMap((after) => this.#between(node.key, after)),
    ];
  }

  /**
   * @param {readonly string[]} keys of consecutive nodes
   * @returns {Line[]}
   */
  linesAlong(keys) {
    return keys.slice(1).flatMap((key, at) => this.#between(keys[at] ?? "", key));
  }

  /**
   * @param {string} before
   * @param {string} after
   * @returns {Line[]}
   */
  #between(before, after) {
    const [from, to] = [this.spotOf(before), this.spotOf(after)];
    if (!from || !to || from === to) return [];
    const drawn = this.lines.get(`${from.key}>${to.key}`);
    if (drawn) return [drawn];
    const made = lineOf(from, to, [
      [from.x + from.width, from.y + from.height / 2],
      [to.x, to.y + to.height / 2],
    ]);
    return [made];
  }
}
