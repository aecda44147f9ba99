// The two sides of a node: before and after its operation. Pure.

/**
 * @typedef {import("../types.js").GraphNode} GraphNode
 * @typedef {import("../types.js").Progress} Progress
 * @typedef {"pre" | "post"} Side
 */

/** @type {readonly Side[]} */
export const SIDES = ["pre", "post"];

const FINAL_STATES = new Set(["done", "failed", "stopped", "dropped"]);

/**
 * @param {Progress} progress
 * @param {Side} side
 * @returns {{ set: boolean, passed: boolean, holds: boolean, point: string }}
 */
export function sideOf({ state, phase, operation, breakpoints, hook }, side) {
  const match = breakpoints.find((point) => point.startsWith(`${side}-`) && !INSIDE.has(point));
  const holds = hook !== null && phase === side;
  // A node that has not started may still stop before its operation, even without a hook so far.
  const begun = state !== "waiting" && state !== "ready";
  const passed = FINAL_STATES.has(state) || (side === "pre" && begun && phase !== "pre");
  return { set: match !== undefined, passed, holds, point: match ?? `${side}-${operation}` };
}

const INSIDE = new Set(["pre-batch", "pre-scale-in"]);

/**
 * Whether a breakpoint can be set or cleared: the point is not passed and no hook waits there.
 *
 * @param {GraphNode} node
 * @param {Progress} progress
 * @param {Side} side
 */
export function canSetBreakpoint(node, progress, side) {
  const { passed, holds } = sideOf(progress, side);
  return node.name !== "" && !passed && !holds;
}
