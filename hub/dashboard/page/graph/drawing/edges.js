// Drawing of edges.
import { intersects } from "./camera.js";

/**
 * @typedef {import("./backdrop.js").Picture} Picture
 * @typedef {import("./camera.js").Rect} Rect
 * @typedef {import("../layout/scene.js").Line} Line
 */

/** With more visible edges than this, edges are drawn fainter. */
const CROWD = 700;
/** Minimum scale at which edges have arrow heads. */
const POINTED = 0.4;

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Picture} picture
 * @param {Rect} window of the picture
 * @param {readonly Line[]} lines of one level
 */
export function drawEdges(context, picture, window, lines) {
  const { palette, camera, stateOf } = picture;
  const ahead = new Path2D();
  const passed = new Path2D();
  const cleanup = new Path2D();
  let count = 0;
  for (const line of lines) {
    if (!intersects(rectOf(line), window)) continue;
    count++;
    if (line.to.item.node?.direction === "cleanup") trace(cleanup, line);
    else trace(stateOf(line.from) === "done" ? passed : ahead, line);
  }
  const faint = count > CROWD ? Math.max(0.16, CROWD / count) : 1;
  context.lineWidth = Math.max(1.3, 0.8 / camera.scale);
  stroke(context, ahead, palette["line-strong"], 0.55 * faint);
  stroke(context, passed, palette.done, 0.6 * faint);
  context.setLineDash([7, 6]);
  stroke(context, cleanup, palette["line-strong"], 0.55 * faint);
  context.setLineDash([]);
  const depth = lines[0]?.from.depth;
  const strong = Math.max(2.4, 1.4 / camera.scale);
  overlay(context, picture, picture.critical, depth, palette.accent, 1.6 * strong, 0.75);
  overlay(context, picture, picture.chosen, depth, palette.focus, strong, 1);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Picture} picture
 * @param {readonly Line[]} lines
 * @param {number | undefined} depth
 * @param {string | undefined} color
 * @param {number} width
 * @param {number} alpha
 */
function overlay(context, { camera }, lines, depth, color, width, alpha) {
  const path = new Path2D();
  for (const line of lines) {
    if (line.from.depth !== depth) continue;
    trace(path, line);
    if (camera.scale >= POINTED) point(path, line);
  }
  context.lineWidth = width;
  stroke(context, path, color, alpha);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Path2D} path
 * @param {string | undefined} color
 * @param {number} alpha
 */
function stroke(context, path, color, alpha) {
  context.globalAlpha = alpha;
  context.strokeStyle = color ?? "";
  context.stroke(path);
  context.globalAlpha = 1;
}

/** @param {Line} line @returns {Rect} */
function rectOf({ left, right, top, bottom }) {
  // A straight edge has no height.
  return { x: left, y: top - 1, width: right - left + 1, height: bottom - top + 2 };
}

/**
 * @param {Path2D} path
 * @param {Line} line
 */
function trace(path, { points }) {
  let last = points[0];
  if (!last) return;
  path.moveTo(last[0], last[1]);
  points.slice(1).forEach(([x, y], at) => {
    const [fromX, fromY] = /** @type {[number, number]} */ (last);
    if (at % 2 === 1 || (y === fromY && x > fromX)) path.lineTo(x, y);
    else {
      const half = (x - fromX) / 2;
      path.bezierCurveTo(fromX + half, fromY, x - half, y, x, y);
    }
    last = [x, y];
  });
}

/**
 * @param {Path2D} path
 * @param {Line} line
 */
function point(path, { points }) {
  const end = points.at(-1);
  if (!end) return;
  const [x, y] = end;
  path.moveTo(x - 9, y - 5);
  path.lineTo(x - 1, y);
  path.lineTo(x - 9, y + 5);
}
