// The critical path: the longest way of unfinished work to the end. What are we waiting for?

/**
 * @typedef {import("../tree.js").Tree} Tree
 * @typedef {import("../shapes.js").Progress} Progress
 * @typedef {ReadonlyMap<string, Progress>} Known
 *
 * @typedef {object} CriticalPath
 * @property {string[]} keys from what is under way, or could begin, to what ends last
 * @property {number} seconds that it may take, from what alike took before; hooks not counted
 */

/** Seconds for what nothing is known of. */
const GUESS = 1;

/**
 * @param {Tree} tree
 * @param {Known} known
 * @param {string} path of the stack
 * @param {number} now in ms
 * @returns {CriticalPath}
 */
export function criticalPath(tree, known, path, now) {
  const keys = tree.walks.get(path)?.keys ?? [];
  const expected = expectations(tree, known);
  /** @type {Map<string, { seconds: number, steps: number, from: string | null }>} */
  const ways = new Map();
  /** @type {Set<string>} */
  const barred = new Set();
  /** @type {string | null} */
  let last = null;
  for (const key of keys) {
    const progress = known.get(key);
    if (!progress || progress.state === "done") continue;
    const before = tree.nodes.get(key)?.before ?? [];
    const failed = progress.state === "failed" || progress.state === "stopped";
    if (failed || progress.state === "dropped" || before.some((one) => barred.has(one))) {
      barred.add(key);
      continue;
    }
    const best = before
      .map((one) => /** @type {const} */ ([one, ways.get(one)]))
      .reduce(
        (found, [one, way]) => (way && longer(way, found.way) ? { from: one, way } : found),
        /** @type {{ from: string | null, way: { seconds: number, steps: number } | null }} */ ({
          from: null,
          way: null,
        }),
      );
    const seconds = (best.way?.seconds ?? 0) + left(progress, expected(key), now);
    const way = { seconds, steps: (best.way?.steps ?? 0) + 1, from: best.from };
    ways.set(key, way);
    if (last === null || longer(way, ways.get(last) ?? null)) last = key;
  }
  /** @type {string[]} */
  const found = [];
  for (let key = last; key !== null; key = ways.get(key)?.from ?? null) found.unshift(key);
  return { keys: found, seconds: last === null ? 0 : (ways.get(last)?.seconds ?? 0) };
}

/**
 * @param {{ seconds: number, steps: number }} one
 * @param {{ seconds: number, steps: number } | null} other
 */
function longer(one, other) {
  if (!other) return true;
  return one.seconds > other.seconds || (one.seconds === other.seconds && one.steps > other.steps);
}

/**
 * @param {Progress} progress
 * @param {number} seconds
 * @param {number} now
 */
function left(progress, seconds, now) {
  if (progress.phase === "post") return 0;
  if (!progress.started || progress.phase === "pre") return seconds;
  return Math.max(seconds - (now - Date.parse(progress.started)) / 1000, 0.05 * seconds);
}

/**
 * What the same operation on the same type took, else what any took.
 *
 * @param {Tree} tree
 * @param {Known} known
 * @returns {(key: string) => number} seconds
 */
function expectations(tree, known) {
  /** @type {Map<string, { sum: number, count: number }>} */
  const taken = new Map();
  for (const [key, { started, ended, state, operation }] of known) {
    if (state !== "done" || !started || !ended) continue;
    const seconds = (Date.parse(ended) - Date.parse(started)) / 1000;
    for (const mark of [`${tree.nodes.get(key)?.type}|${operation}`, ""]) {
      const found = taken.get(mark) ?? { sum: 0, count: 0 };
      taken.set(mark, { sum: found.sum + seconds, count: found.count + 1 });
    }
  }
  return (key) => {
    const mark = `${tree.nodes.get(key)?.type}|${known.get(key)?.operation}`;
    const found = taken.get(mark) ?? taken.get("");
    return found ? Math.max(found.sum / found.count, 0.001) : GUESS;
  };
}
