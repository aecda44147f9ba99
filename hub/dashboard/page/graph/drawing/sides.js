// The two sides of a node: before its operation, and after it. Pure.

/**
 * @typedef {import("../shapes.js").GraphNode} GraphNode
 * @typedef {import("../shapes.js").Progress} Progress
 * @typedef {"pre" | "post"} Side
 */

/** @type {readonly Side[]} */
export const SIDES = ["pre", "post"];

const OVER = new Set(["done", "failed", "stopped", "dropped"]);

/**
 * @param {Progress} progress
 * @param {Side} side
 * @returns {{ set: boolean, passed: boolean, holds: boolean, point: string }}
 */
export function sideOf({ state, phase, operation, breakpoints, hook }, side) {
  const found = breakpoints.find((point) => point.startsWith(`${side}-`) && !INSIDE.has(point));
  const holds = hook !== null && phase === side;
  // What has not begun may stop before it yet, though nothing told it to.
  const begun = state !== "waiting" && state !== "ready";
  const passed = OVER.has(state) || (side === "pre" && begun && phase !== "pre");
  return { set: found !== undefined, passed, holds, point: found ?? `${side}-${operation}` };
}

const INSIDE = new Set(["pre-batch", "pre-scale-in"]);

/**
 * Whether it makes sense to set or clear one: the point is still ahead, and no hook waits there.
 *
 * @param {GraphNode} node
 * @param {Progress} progress
 * @param {Side} side
 */
export function canSet(node, progress, side) {
  const { passed, holds } = sideOf(progress, side);
  return node.name !== "" && !passed && !holds;
}
