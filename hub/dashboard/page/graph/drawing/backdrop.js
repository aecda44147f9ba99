// The canvas: edges, backgrounds of expanded stacks, and distant nodes; redrawn each frame.
import { SHAPES } from "../../parts/icon.js";
import { groupTitle } from "../labels.js";
import { intersects, NAMED, visibleRect } from "./camera.js";
import { drawEdges } from "./edges.js";

/**
 * @typedef {import("./camera.js").Camera} Camera
 * @typedef {import("./camera.js").Size} Size
 * @typedef {import("./palette.js").Palette} Palette
 * @typedef {import("../layout/scene.js").Scene} Scene
 * @typedef {import("../layout/scene.js").Spot} Spot
 * @typedef {import("../layout/scene.js").Line} Line
 * @typedef {import("../types.js").Shown} Shown
 *
 * @typedef {object} Picture
 * @property {Scene} scene
 * @property {Camera} camera
 * @property {Size} size
 * @property {Palette} palette
 * @property {boolean} near nodes are drawn as elements
 * @property {(spot: Spot) => Shown} stateOf
 * @property {Line[]} chosen edges of the selected node
 * @property {Line[]} critical
 * @property {ReadonlySet<string> | null} found search results; null without a search
 */

const ROUND = 9;
/** Minimum height on the screen, in pixels, at which an icon is recognizable. */
const READABLE = 11;

/** @type {Map<string, Path2D>} */
const glyphs = new Map();

/** @param {string} name */
function glyph(name) {
  const made = glyphs.get(name) ?? new Path2D(SHAPES[name]);
  glyphs.set(name, made);
  return made;
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Picture} picture
 */
export function drawBackdrop(canvas, picture) {
  const { camera, size, scene } = picture;
  const context = canvas.getContext("2d", { alpha: true });
  if (!context) return;
  const density = devicePixelRatio || 1;
  const [width, height] = [Math.round(size.width * density), Math.round(size.height * density)];
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, width, height);
  const scale = camera.scale * density;
  context.setTransform(scale, 0, 0, scale, camera.x * density, camera.y * density);
  const window = visibleRect(camera, size);
  const visible = scene.spots.filter((spot) => intersects(spot, window));
  const depths = Math.max(scene.lines.length, ...visible.map((spot) => spot.depth + 1));
  for (let depth = 0; depth < depths; depth++) {
    drawEdges(context, picture, window, scene.lines[depth] ?? []);
    for (const spot of visible) {
      if (spot.depth !== depth) continue;
      if (spot.item.view) drawFrame(context, picture, spot);
      else if (!picture.near) drawShape(context, picture, spot);
    }
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Picture} picture
 * @param {Spot} spot
 */
function drawFrame(context, { palette, stateOf, camera }, spot) {
  context.beginPath();
  context.roundRect(spot.x, spot.y, spot.width, spot.height, 1.5 * ROUND);
  context.fillStyle = palette[spot.depth % 2 ? "raised" : "sunken"] ?? "";
  context.fill();
  context.lineWidth = Math.max(1, 0.7 / camera.scale);
  context.strokeStyle = palette[spot.item.node ? stateOf(spot) : "line-strong"] ?? "";
  context.stroke();
}

/** How much of a distant node is filled, by state. @type {Record<Shown, number>} */
const FILLED = {
  gate: 1,
  failed: 1,
  stopped: 0.9,
  running: 1,
  parked: 0.5,
  ready: 0.3,
  waiting: 0,
  done: 0.62,
  dropped: 0,
};

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Picture} picture
 * @param {Spot} spot
 */
function drawShape(context, picture, spot) {
  const { palette, camera, stateOf, found } = picture;
  const state = stateOf(spot);
  const color = palette[state] ?? "";
  const { x, y, width, height } = spot;
  const faint = found && !spot.item.members.some((key) => found.has(key));
  context.globalAlpha = faint ? 0.25 : 1;
  context.beginPath();
  context.roundRect(x, y, width, height, ROUND);
  context.fillStyle = palette.raised ?? "";
  context.fill();
  context.globalAlpha *= FILLED[state];
  context.fillStyle = color;
  context.fill();
  context.globalAlpha = faint ? 0.25 : 1;
  context.lineWidth = Math.max(1.5, 0.9 / camera.scale);
  context.strokeStyle = color;
  if (spot.item.node?.direction === "cleanup") context.setLineDash([10, 7]);
  context.stroke();
  context.setLineDash([]);
  if (state === "failed") drawCross(context, palette.raised ?? "", spot, camera.scale);
  const large = height * camera.scale >= READABLE;
  if (large) drawSign(context, FILLED[state] > 0.55 ? (palette.raised ?? "") : color, state, spot);
  if (camera.scale >= NAMED) drawName(context, picture, state, spot);
  context.globalAlpha = 1;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {string} color
 * @param {Spot} spot
 * @param {number} scale
 */
function drawCross(context, color, { x, y, width, height }, scale) {
  if (height * scale >= READABLE) return;
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x + width, y + height);
  context.moveTo(x + width, y);
  context.lineTo(x, y + height);
  context.strokeStyle = color;
  context.stroke();
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {string} color
 * @param {Shown} state
 * @param {Spot} spot
 */
function drawSign(context, color, state, { x, y, height }) {
  const size = (0.62 * height) / 16;
  context.save();
  context.translate(x + 0.22 * height, y + 0.19 * height);
  context.scale(size, size);
  context.fillStyle = color;
  context.fill(glyph(state), "evenodd");
  context.restore();
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Picture} picture
 * @param {Shown} state
 * @param {Spot} spot
 */
function drawName(context, { palette }, state, { item, x, y, width, height }) {
  const left = x + 1.06 * Math.min(height, 60);
  context.font = `600 19px ${palette.font}`;
  context.textBaseline = "middle";
  context.fillStyle = palette[FILLED[state] > 0.55 ? "raised" : "text"] ?? "";
  const room = Math.max(1, Math.floor((x + width - left - 6) / 11.6));
  const text = item.kind === "group" ? groupTitle(item) : item.title || "stack";
  context.fillText(text.length > room ? `${text.slice(0, room - 1)}…` : text, left, y + height / 2);
}
