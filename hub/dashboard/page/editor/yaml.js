/** YAML as the server reads it: core types, dates are text. Texts are read, written, searched. Pure. */

import { Document, isMap, isScalar, isSeq, parseDocument, Scalar, visit } from "../vendor/yaml.js";

/**
 * @typedef {import("../vendor/yaml.js").Node} Node
 * @typedef {{from: number, to: number}} Range
 * @typedef {Range & {reason: string}} Fault
 */

/** @type {import("yaml").DocumentOptions & import("yaml").SchemaOptions & import("yaml").ParseOptions} */
const OPTIONS = {
  version: "1.1",
  customTags: (tags) =>
    tags.filter(
      (one) => typeof one === "string" || !/:(timestamp|binary|omap|pairs|set)$/.test(one.tag),
    ),
  prettyErrors: false,
};
/** Words that are taken for true or false, but as keys are text to the server. */
const SWITCH = /^(?:y|n|yes|no|on|off)$/i;
/** Text that another reader takes for something else, though ours does not. */
const SPECIAL = /^(?:=|<<)$/;

/** @param {string} text */
export function read(text) {
  const document = parseDocument(text, OPTIONS);
  /** @type {Fault[]} */
  const faults = document.errors.map((one) => ({
    from: Math.min(one.pos[0], text.length),
    to: Math.min(one.pos[1], text.length),
    reason: one.message,
  }));
  return { root: document.contents, document, faults };
}

/** What a text says; undefined where it cannot be read. @param {string} text @returns {any} */
export function meaning(text) {
  const { document, faults } = read(text);
  if (faults.length > 0) return undefined;
  try {
    return plain(document.contents, 0);
  } catch {
    return undefined; // aliases that multiply, or lead in a circle: the server says so
  }
}

/** Levels, as many as the server takes. */
const DEEPEST = 200;

/** With the keys as they are written: `on` stays `on`. @param {unknown} node @param {number} depth @returns {any} */
function plain(node, depth) {
  if (depth > DEEPEST) throw new RangeError("too deep");
  if (isMap(node)) {
    /** @type {Record<string, any>} */
    const found = {};
    for (const pair of node.items) found[keyOf(pair.key)] = plain(pair.value, depth + 1);
    return found;
  }
  if (isSeq(node)) return node.items.map((one) => plain(one, depth + 1));
  if (isScalar(node)) return node.value;
  return undefined;
}

/** @param {unknown} key @returns {string} */
export function keyOf(key) {
  if (isScalar(key)) return String(key.source ?? key.value);
  return String(key);
}

/** A value as a text in block style; what has lines keeps them. @param {unknown} value */
export function written(value) {
  if (isEmpty(value)) return "";
  const document = new Document(value, OPTIONS);
  visit(document, {
    Scalar(_, node) {
      if (typeof node.value === "string" && SPECIAL.test(node.value)) node.type = "QUOTE_DOUBLE";
    },
    Pair(_, pair) {
      if (isScalar(pair.key) && typeof pair.key.value === "string" && SWITCH.test(pair.key.value)) {
        const key = new Scalar(/^(?:y|yes|on)$/i.test(pair.key.value));
        key.source = pair.key.value;
        pair.key = key;
      }
    },
  });
  apart(document.contents);
  return document.toString({ lineWidth: 0, flowCollectionPadding: false });
}

/** An empty line before each section of more than a line. @param {unknown} root */
function apart(root) {
  if (!isMap(root)) return;
  for (const [index, pair] of root.items.entries()) {
    const many = isMap(pair.value) || isSeq(pair.value);
    if (index > 0 && many && isScalar(pair.key)) pair.key.spaceBefore = true;
  }
}

/** @param {unknown} value */
function isEmpty(value) {
  return value == null || (typeof value === "object" && Object.keys(value).length === 0);
}

/** A value in one line, for a place inside a text. @param {unknown} value */
export function inline(value) {
  if (value !== null && typeof value === "object") return JSON.stringify(value);
  if (typeof value === "string" && (/[\n\r]/.test(value) || SPECIAL.test(value)))
    return JSON.stringify(value);
  return new Document(value, OPTIONS).toString({ lineWidth: 0 }).trimEnd();
}

/** @param {Node | null | undefined} node @returns {Range} */
export function rangeOf(node) {
  const [from, to] = node?.range ?? [0, 0, 0];
  return { from, to };
}

/**
 * Where something is in a text, by a place such as `resources.web.properties.size`: as far as the
 * place leads. left: what of the place is not there; `<file>...` where it goes on in a file.
 * @param {unknown} root @param {string} place
 * @returns {Range & {left: string}}
 */
export function find(root, place) {
  return step(root, place, { from: 0, to: 0 });
}

/** @param {unknown} node @param {string} place @param {Range} here @returns {Range & {left: string}} */
function step(node, place, here) {
  const best = { ...here, left: place };
  if (place === "" || place.startsWith("<")) return best;
  /** @type {(Range & {left: string})[]} */
  const all = [best];
  if (isMap(node)) {
    for (const pair of node.items) {
      const left = after(place, keyOf(pair.key));
      if (left === null) continue;
      const key = /** @type {Node} */ (pair.key);
      const value = /** @type {Node | null} */ (pair.value);
      const marked = left === "" && isScalar(value) && value.value !== null ? value : key;
      all.push(step(value, left, rangeOf(marked)));
    }
  }
  if (isSeq(node)) {
    const found = place.match(/^\.?\[?(\d+)\]?/);
    const item = found ? node.items[Number(found[1])] : undefined;
    if (found && item !== undefined)
      all.push(
        step(item, trimmed(place.slice(found[0].length)), rangeOf(/** @type {Node} */ (item))),
      );
  }
  return all.reduce((one, other) => (other.left.length < one.left.length ? other : one));
}

/** What follows a name at the beginning of a place; null: it begins otherwise. @param {string} place @param {string} name */
function after(place, name) {
  if (name === "" || !place.startsWith(name)) return null;
  const left = place.slice(name.length);
  return left === "" || /^[.[<]/.test(left) ? trimmed(left) : null;
}

/** @param {string} left */
function trimmed(left) {
  return left.replace(/^\./, "");
}
