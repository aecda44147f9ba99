/**
 * YAML as the server reads it: core types, dates are strings. Parsing, serializing and searching.
 * Pure.
 */

import {
  Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  parseDocument,
  Scalar,
  visit,
} from "../vendor/yaml.js";

/**
 * @typedef {import("../vendor/yaml.js").Node} Node
 * @typedef {{from: number, to: number}} Range
 * code: DUPLICATE_KEY and others of the parser.
 * @typedef {Range & {reason: string, code: string}} Fault
 */

/** @typedef {import("yaml").DocumentOptions & import("yaml").SchemaOptions & import("yaml").ParseOptions} Options */

/**
 * Numbers such as 1e+300, which the server reads as strings unless they have a decimal point.
 * @type {import("yaml").ScalarTag}
 */
const LARGE = {
  tag: "tag:yaml.org,2002:float",
  default: true,
  identify: (value) => typeof value === "number" && /e/.test(String(value)),
  test: /^-?\d+(\.\d+)?e[-+]\d+$/,
  resolve: Number,
  stringify: ({ value }) => String(value).replace(/^(-?\d+)e/, "$1.0e"),
};

/**
 * Parser options without some tags and with others.
 * @param {RegExp} others @param {import("yaml").ScalarTag[]} more @returns {Options}
 */
function options(others, ...more) {
  return {
    version: "1.1",
    customTags: (tags) => [
      ...more,
      ...tags.filter((tag) => !others.test(typeof tag === "string" ? tag : tag.tag)),
    ],
    prettyErrors: false,
  };
}

const OPTIONS = options(/(timestamp|binary|omap|pairs|set)$/);
/** Serialized text has no merge keys: `<<` is a string. */
const WRITTEN = options(/(timestamp|binary|omap|pairs|set|merge)$/, LARGE);
/** Words that YAML 1.1 reads as booleans, but the server reads as strings when they are keys. */
const SWITCH = /^(?:y|n|yes|no|on|off)$/i;
/** Strings that other parsers misread although this one does not. */
const SPECIAL = /^(?:=|<<)$|[\x7f-\x9f\u2028\u2029\ufeff]/;
const UNSEEN = /[\x7f-\x9f\u2028\u2029\ufeff]/g;

/** @param {string} text */
export function read(text) {
  const document = parseDocument(text, OPTIONS);
  /** @type {Fault[]} */
  const faults = document.errors.map((error) => ({
    from: Math.min(error.pos[0], text.length),
    to: Math.min(error.pos[1], text.length),
    reason: error.message,
    code: error.code,
  }));
  return { root: document.contents, document, faults };
}

/** The value of a text; undefined if it cannot be parsed. @param {string} text @returns {any} */
export function parseValue(text) {
  const { document, faults } = read(text);
  if (faults.length > 0) return undefined;
  try {
    return new Plain(document).of(document.contents);
  } catch {
    return undefined; // too many or circular aliases: the server reports them
  }
}

/** Maximum number of values with aliases expanded, as on the server. */
const MAX_VALUES = 200_000;

/** Converts nodes to plain values; keys stay as written: `on` stays `on`. */
class Plain {
  /** @param {import("yaml").Document} document */
  constructor(document) {
    this.document = document;
    this.left = MAX_VALUES;
  }

  /** @param {unknown} node @returns {any} */
  of(node) {
    this.left -= 1;
    if (this.left < 0) throw new RangeError("too much");
    if (isAlias(node)) return this.of(node.resolve(this.document));
    if (isSeq(node)) return node.items.map((item) => this.of(item));
    if (isScalar(node)) return node.value;
    return isMap(node) ? this.ofMap(node) : undefined;
  }

  /** @param {import("yaml").YAMLMap} node */
  ofMap(node) {
    /** @type {Record<string, any>} */
    const merged = {};
    /** @type {Record<string, any>} */
    const own = {};
    for (const { key, value } of node.items) {
      if (keyOf(key) !== "<<") own[keyOf(key)] = this.of(value);
      else for (const item of [this.of(value)].flat().reverse()) Object.assign(merged, item);
    }
    return { ...merged, ...own };
  }
}

/** @param {unknown} key @returns {string} */
export function keyOf(key) {
  if (isScalar(key)) return String(key.source ?? key.value);
  return String(key);
}

/** A value as block-style YAML; multi-line strings keep their lines. @param {unknown} value */
export function toYaml(value) {
  if (isEmpty(value)) return "";
  const document = new Document(value, WRITTEN);
  visit(document, {
    Scalar(_, node) {
      if (typeof node.value === "string" && SPECIAL.test(node.value)) node.type = "QUOTE_DOUBLE";
    },
    Map(_, node) {
      node.flow = isShort(node);
    },
    Pair(_, pair) {
      if (isScalar(pair.key) && typeof pair.key.value === "string" && SWITCH.test(pair.key.value)) {
        const key = new Scalar(/^(?:y|yes|on)$/i.test(pair.key.value));
        key.source = pair.key.value;
        pair.key = key;
      }
    },
  });
  separateSections(document.contents);
  return escapeInvisible(document.toString({ lineWidth: 0, flowCollectionPadding: false }));
}

/** Escapes invisible characters and Unicode line breaks. @param {string} text */
function escapeInvisible(text) {
  return text.replace(UNSEEN, (item) => `\\u${item.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Functions written in one line: `{get_param: size}`. */
const SHORT = /^(get_param|get_resource|get_attr|get_file|Ref)$/;

/** @param {import("yaml").YAMLMap} node */
function isShort(node) {
  const [only, another] = node.items;
  if (!only || another || !isScalar(only.key) || !SHORT.test(String(only.key.value))) return false;
  const parts = isSeq(only.value) ? only.value.items : [only.value];
  return parts.every((part) => isScalar(part) && !/[\n\r]/.test(String(part.value)));
}

/** Adds an empty line before each multi-line section. @param {unknown} root */
function separateSections(root) {
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

/** A value as one line of YAML. @param {unknown} value */
export function inline(value) {
  if (value !== null && typeof value === "object") return escapeInvisible(JSON.stringify(value));
  if (typeof value === "string" && (/[\n\r]/.test(value) || SPECIAL.test(value)))
    return escapeInvisible(JSON.stringify(value));
  return new Document(value, WRITTEN).toString({ lineWidth: 0 }).replace(/\n$/, "");
}

/** @param {Node | null | undefined} node @returns {Range} */
export function rangeOf(node) {
  const [from, to] = node?.range ?? [0, 0, 0];
  return { from, to };
}

/**
 * Finds a place such as `resources.web.properties.size`, as far as it exists. left: the rest of the
 * place that was not found; `<file>...` if it continues in a file. byKey: return the key even if
 * the value is a scalar.
 * @param {unknown} root @param {string} place @param {boolean} [byKey]
 * @returns {Range & {left: string}}
 */
export function find(root, place, byKey = false) {
  return step(root, place, { from: 0, to: 0 }, byKey);
}

/** @param {unknown} node @param {string} place @param {Range} here @param {boolean} byKey @returns {Range & {left: string}} */
function step(node, place, here, byKey) {
  const best = { ...here, left: place };
  if (place === "" || place.startsWith("<")) return best;
  /** @type {(Range & {left: string})[]} */
  const all = [best];
  if (isMap(node)) {
    for (const pair of node.items) {
      const left = restAfter(place, keyOf(pair.key));
      if (left === null) continue;
      const key = /** @type {Node} */ (pair.key);
      const value = /** @type {Node | null} */ (pair.value);
      const byValue = !byKey && left === "" && isScalar(value) && value.value !== null;
      all.push(step(value, left, rangeOf(byValue ? value : key), byKey));
    }
  }
  if (isSeq(node)) {
    const match = place.match(/^\.?\[?(\d+)\]?/);
    const item = match ? node.items[Number(match[1])] : undefined;
    if (match && item !== undefined) {
      const left = trimPlace(place.slice(match[0].length));
      all.push(step(item, left, rangeOf(/** @type {Node} */ (item)), byKey));
    }
  }
  return all.reduce((a, b) => (b.left.length < a.left.length ? b : a));
}

/**
 * The rest of a place after a name; null if it begins differently.
 * @param {string} place @param {string} name
 */
function restAfter(place, name) {
  if (name === "" || !place.startsWith(name)) return null;
  const left = place.slice(name.length);
  return left === "" || /^[.[<]/.test(left) ? trimPlace(left) : null;
}

/** @param {string} left */
function trimPlace(left) {
  return left.replace(/^\./, "");
}
