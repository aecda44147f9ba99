// The critical path: the longest path of unfinished work to the end. A path through a node that
// waits for approval is longer than any other, because the time of the answer is unknown.

/**
 * @typedef {import("../tree.js").Tree} Tree
 * @typedef {import("../types.js").Progress} Progress
 * @typedef {ReadonlyMap<string, Progress>} Known
 *
 * @typedef {{ gates: number, seconds: number, steps: number, from: string | null }} Way
 *
 * @typedef {object} CriticalPath
 * @property {string[]} keys from a node in progress or ready to the one that ends last
 * @property {number} seconds estimated from similar operations, without hooks
 */

/** Estimated seconds without any data. */
const DEFAULT_SECONDS = 1;

/**
 * @param {Tree} tree
 * @param {Known} known
 * @param {string} path of the stack
 * @param {number} now in milliseconds since 1970
 * @returns {CriticalPath}
 */
export function criticalPath(tree, known, path, now) {
  const keys = tree.stackGraphs.get(path)?.keys ?? [];
  const expected = expectedDurations(tree, known);
  const waiting = waitingNodes(tree, known);
  /** @type {Map<string, Way>} */
  const ways = new Map();
  /** @type {Set<string>} */
  const blocked = new Set();
  /** @type {string | null} */
  let last = null;
  for (const key of keys) {
    const progress = known.get(key);
    if (!progress || progress.state === "done") continue;
    const before = tree.nodes.get(key)?.before ?? [];
    const failed = progress.state === "failed" || progress.state === "stopped";
    if (failed || progress.state === "dropped" || before.some((item) => blocked.has(item))) {
      blocked.add(key);
      continue;
    }
    /** @type {Way} */
    let best = { gates: 0, seconds: 0, steps: 0, from: null };
    for (const item of before) {
      const existing = ways.get(item);
      if (existing && isLonger(existing, best)) best = { ...existing, from: item };
    }
    /** @type {Way} */
    const way = {
      gates: best.gates + (waiting.has(key) ? 1 : 0),
      seconds: best.seconds + remainingSeconds(progress, expected(key), now),
      steps: best.steps + 1,
      from: best.from,
    };
    ways.set(key, way);
    if (last === null || isLonger(way, ways.get(last) ?? null)) last = key;
  }
  /** @type {string[]} */
  const result = [];
  for (let key = last; key !== null; key = ways.get(key)?.from ?? null) result.unshift(key);
  return { keys: result, seconds: last === null ? 0 : (ways.get(last)?.seconds ?? 0) };
}

/**
 * @param {Way} a
 * @param {Way | null} b
 */
function isLonger(a, b) {
  if (!b) return true;
  if (a.gates !== b.gates) return a.gates > b.gates;
  return a.seconds > b.seconds || (a.seconds === b.seconds && a.steps > b.steps);
}

/**
 * Nodes that wait for approval, and the nodes that contain them.
 *
 * @param {Tree} tree
 * @param {Known} known
 */
function waitingNodes(tree, known) {
  /** @type {Set<string>} */
  const waiting = new Set();
  for (const [key, { hook }] of known) {
    if (!hook) continue;
    for (let at = /** @type {string | undefined} */ (key); at !== undefined; ) {
      waiting.add(at);
      at = tree.holder.get(tree.nodes.get(at)?.stack ?? "");
    }
  }
  return waiting;
}

/**
 * @param {Progress} progress
 * @param {number} seconds
 * @param {number} now
 */
function remainingSeconds(progress, seconds, now) {
  if (progress.phase === "post") return 0;
  if (!progress.started || progress.phase === "pre") return seconds;
  return Math.max(seconds - (now - Date.parse(progress.started)) / 1000, 0.05 * seconds);
}

/**
 * Estimates by the mean duration of the same operation on the same type, else of all nodes.
 *
 * @param {Tree} tree
 * @param {Known} known
 * @returns {(key: string) => number} seconds
 */
function expectedDurations(tree, known) {
  /** @type {Map<string, { sum: number, count: number }>} */
  const taken = new Map();
  for (const [key, { started, ended, state, operation }] of known) {
    if (state !== "done" || !started || !ended) continue;
    const seconds = (Date.parse(ended) - Date.parse(started)) / 1000;
    for (const mark of [`${tree.nodes.get(key)?.type}|${operation}`, ""]) {
      const existing = taken.get(mark) ?? { sum: 0, count: 0 };
      taken.set(mark, { sum: existing.sum + seconds, count: existing.count + 1 });
    }
  }
  return (key) => {
    const mark = `${tree.nodes.get(key)?.type}|${known.get(key)?.operation}`;
    const existing = taken.get(mark) ?? taken.get("");
    return existing ? Math.max(existing.sum / existing.count, 0.001) : DEFAULT_SECONDS;
  };
}
