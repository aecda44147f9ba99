// The minimap: the whole graph and the visible part.

import { visibleRect } from "./camera.js";
import { element } from "./element.js";

/**
 * @typedef {import("../layout/scene.js").Scene} Scene
 * @typedef {import("../layout/scene.js").Spot} Spot
 * @typedef {import("../types.js").Shown} Shown
 * @typedef {import("./camera.js").Camera} Camera
 * @typedef {import("./camera.js").Size} Size
 */

const WIDTH = 168;
const HEIGHT = 112;

export class Minimap {
  /** @param {(x: number, y: number) => void} go to a point of the picture */
  constructor(go) {
    this.canvas = element("canvas", "graph-minimap");
    this.canvas.setAttribute("aria-hidden", "true");
    this.kept = document.createElement("canvas");
    this.outdated = true;
    this.scale = 1;
    this.colors = "";
    const point = (/** @type {PointerEvent} */ event) => {
      if (!(event.buttons & 1)) return;
      event.stopPropagation();
      go(event.offsetX / this.scale, event.offsetY / this.scale);
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      point(event);
    });
    this.canvas.addEventListener("pointermove", point);
  }

  /**
   * @param {Scene} scene
   * @param {Camera} camera
   * @param {Size} size
   * @param {Record<string, string>} palette
   * @param {(spot: Spot) => Shown} stateOf
   */
  draw(scene, camera, size, palette, stateOf) {
    const window = visibleRect(camera, size);
    const whole = window.width >= scene.width * 0.98 && window.height >= scene.height * 0.98;
    this.canvas.hidden = whole || size.width < 480;
    if (this.canvas.hidden) return;
    const density = devicePixelRatio || 1;
    this.scale = Math.min(WIDTH / scene.width, HEIGHT / scene.height);
    const [width, height] = [scene.width * this.scale, scene.height * this.scale];
    const pixels = { width: Math.ceil(width * density), height: Math.ceil(height * density) };
    const colors = `${palette.ground}${palette.done}${pixels.width}x${pixels.height}`;
    if (this.outdated || colors !== this.colors) {
      this.#paint(scene, palette, stateOf, pixels, this.scale * density);
      this.colors = colors;
      this.outdated = false;
    }
    if (this.canvas.width !== pixels.width || this.canvas.height !== pixels.height) {
      Object.assign(this.canvas, pixels);
      Object.assign(this.canvas.style, { width: `${width}px`, height: `${height}px` });
    }
    const context = this.canvas.getContext("2d");
    if (!context) return;
    context.clearRect(0, 0, pixels.width, pixels.height);
    context.drawImage(this.kept, 0, 0);
    const by = this.scale * density;
    context.strokeStyle = palette.focus ?? "";
    context.lineWidth = 1.5 * density;
    context.strokeRect(window.x * by, window.y * by, window.width * by, window.height * by);
  }

  /**
   * @param {Scene} scene
   * @param {Record<string, string>} palette
   * @param {(spot: Spot) => Shown} stateOf
   * @param {Size} pixels
   * @param {number} scale
   */
  #paint(scene, palette, stateOf, pixels, scale) {
    Object.assign(this.kept, pixels);
    const context = this.kept.getContext("2d");
    if (!context) return;
    const minimum = 1.2;
    for (const spot of scene.spots) {
      const state = stateOf(spot);
      context.fillStyle = palette[spot.item.view ? "sunken" : state] ?? "";
      context.globalAlpha = state === "waiting" || state === "dropped" ? 0.4 : 0.9;
      const width = Math.max(spot.width * scale, minimum);
      const height = Math.max(spot.height * scale, minimum);
      context.fillRect(spot.x * scale, spot.y * scale, width, height);
    }
  }
}
