/** Differences between two versions of a hook. Pure. */

import { shown } from "../parts/changes.js";

/** @typedef {import("../api/documents.js").Hook} Hook */

/** Depth to which values are compared key by key. */
const DEEPEST = 3;

/** @param {Hook} was @param {Hook} is @returns {{place: string, was: string, is: string}[]} */
export function differences(was, is) {
  return between(about(was), about(is), "", 0);
}

/** The parts of a hook that a decision depends on. @param {Hook} hook */
function about(hook) {
  const { path, point, resource, change, answers } = hook;
  return { path, point, resource, change, answers };
}

/**
 * @param {any} was @param {any} is @param {string} place @param {number} depth
 * @returns {{place: string, was: string, is: string}[]}
 */
function between(was, is, place, depth) {
  if (JSON.stringify(was) === JSON.stringify(is)) return [];
  if (depth >= DEEPEST || !isMap(was) || !isMap(is))
    return [{ place, was: shown(was) || "none", is: shown(is) || "none" }];
  const names = [...new Set([...Object.keys(was), ...Object.keys(is)])];
  return names.flatMap((name) =>
    between(was[name], is[name], place ? `${place}.${name}` : name, depth + 1),
  );
}

/** @param {unknown} value */
function isMap(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
