// The visible part of the picture: an offset and a scale. Pure.

/**
 * @typedef {object} Camera
 * @property {number} x of the picture's corner in the window
 * @property {number} y
 * @property {number} scale
 *
 * @typedef {{ width: number, height: number }} Size
 * @typedef {{ x: number, y: number, width: number, height: number }} Rect
 */

const MIN_SCALE = 0.02;
const MAX_SCALE = 2;
/** Minimum scale at which nodes are drawn as elements; below it, as shapes. */
export const NEAR = 0.55;
/** Minimum scale at which shapes show their names. */
export const NAMED = 0.28;
/** Minimum scale at which a graph opens: its labels are readable. */
export const READABLE = 0.75;
const MARGIN = 28;

/**
 * The camera that shows all of a rectangle, at most at scale `most`.
 *
 * @param {Rect} rect of the picture
 * @param {Size} size of the window
 * @param {number} [most]
 * @returns {Camera}
 */
export function fitCamera(rect, size, most = 1) {
  const room = { width: size.width - 2 * MARGIN, height: size.height - 2 * MARGIN };
  const fits = Math.min(
    room.width / Math.max(rect.width, 1),
    room.height / Math.max(rect.height, 1),
  );
  const scale = Math.min(Math.max(fits, MIN_SCALE), most);
  return {
    scale,
    x: (size.width - rect.width * scale) / 2 - rect.x * scale,
    y: (size.height - rect.height * scale) / 2 - rect.y * scale,
  };
}

/**
 * The camera with which a graph opens: all of the picture if it is readable, else a readable part of
 * it around a rectangle.
 *
 * @param {Size} scene
 * @param {Size} size of the window
 * @param {Rect} rect to show
 * @returns {Camera}
 */
export function openingCamera(scene, size, rect) {
  const { scale } = fitCamera({ x: 0, y: 0, ...scene }, size);
  const readable = Math.max(scale, READABLE);
  return {
    scale: readable,
    x: openingOffset(scene.width * readable, size.width, (rect.x + rect.width / 2) * readable),
    y: openingOffset(scene.height * readable, size.height, (rect.y + rect.height / 2) * readable),
  };
}

/**
 * @param {number} length of the picture
 * @param {number} room of the window
 * @param {number} middle of what to show
 */
function openingOffset(length, room, middle) {
  if (length <= room - 2 * MARGIN) return (room - length) / 2;
  return Math.min(Math.max(room / 2 - middle, room - MARGIN - length), MARGIN);
}

/**
 * Zooms around a point of the window.
 *
 * @param {Camera} camera
 * @param {number} factor
 * @param {number} x in the window
 * @param {number} y
 * @returns {Camera}
 */
export function zoomCamera(camera, factor, x, y) {
  const scale = Math.min(Math.max(camera.scale * factor, MIN_SCALE), MAX_SCALE);
  const by = scale / camera.scale;
  return { scale, x: x - (x - camera.x) * by, y: y - (y - camera.y) * by };
}

/**
 * @param {Camera} camera
 * @param {Size} size of the window
 * @returns {Rect} the visible part of the picture
 */
export function visibleRect({ x, y, scale }, size) {
  return { x: -x / scale, y: -y / scale, width: size.width / scale, height: size.height / scale };
}

/**
 * Limits panning so that part of the picture stays visible.
 *
 * @param {Camera} camera
 * @param {Size} size of the window
 * @param {Size} scene
 * @returns {Camera}
 */
export function clampCamera({ x, y, scale }, size, scene) {
  const keep = 80;
  return {
    scale,
    x: Math.min(Math.max(x, keep - scene.width * scale), size.width - keep),
    y: Math.min(Math.max(y, keep - scene.height * scale), size.height - keep),
  };
}

/**
 * Pans as little as necessary to show a rectangle.
 *
 * @param {Camera} camera
 * @param {Size} size
 * @param {Rect} rect
 * @returns {Camera}
 */
export function panToRect({ x, y, scale }, size, rect) {
  return {
    scale,
    x: clampOffset(x, size.width, rect.x * scale, rect.width * scale),
    y: clampOffset(y, size.height, rect.y * scale, rect.height * scale),
  };
}

/**
 * @param {number} offset
 * @param {number} room
 * @param {number} begin
 * @param {number} length
 */
function clampOffset(offset, room, begin, length) {
  const [from, to] = [offset + begin, offset + begin + length];
  if (from < MARGIN || length > room - 2 * MARGIN) return offset + MARGIN - from;
  return to > room - MARGIN ? offset + room - MARGIN - to : offset;
}

/**
 * @param {Rect} a
 * @param {Rect} b
 */
export function intersects(a, b) {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

/**
 * @param {readonly Rect[]} rects
 * @returns {Rect} around all of them
 */
export function boundingRect(rects) {
  const x = Math.min(...rects.map((rect) => rect.x));
  const y = Math.min(...rects.map((rect) => rect.y));
  const right = Math.max(...rects.map((rect) => rect.x + rect.width));
  const bottom = Math.max(...rects.map((rect) => rect.y + rect.height));
  return { x, y, width: right - x, height: bottom - y };
}
