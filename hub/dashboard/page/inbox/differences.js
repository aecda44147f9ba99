/** What differs between a hook as it was seen and as it is. Pure. */

import { shown } from "../parts/changes.js";

/** @typedef {import("../api/documents.js").Hook} Hook */

/** What is inside is compared piece by piece, so deep. */
const DEEPEST = 3;

/** @param {Hook} was @param {Hook} is @returns {{place: string, was: string, is: string}[]} */
export function differences(was, is) {
  return between(about(was), about(is), "", 0);
}

/** What an answer is about. @param {Hook} hook */
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
    return [{ place, was: shown(was) || "nothing", is: shown(is) || "nothing" }];
  const names = [...new Set([...Object.keys(was), ...Object.keys(is)])];
  return names.flatMap((name) =>
    between(was[name], is[name], place ? `${place}.${name}` : name, depth + 1),
  );
}

/** @param {unknown} value */
function isMap(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
