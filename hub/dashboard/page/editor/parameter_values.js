/**
 * Edits parameter values in the text of an environment and leaves the rest of the text unchanged.
 * Pure.
 */

import { isMap, isScalar } from "../vendor/yaml.js";
import { inline, keyOf, parseValue, rangeOf, read } from "./yaml.js";

/** What the server sends in place of a hidden value. */
export const MASK = "******";
const SECTION = "parameters";

/**
 * Values by name; undefined if the text cannot be parsed.
 * @param {string} text @returns {Record<string, unknown> | undefined}
 */
export function parameterValues(text) {
  const { root, faults } = read(text);
  if (root === null && faults.length === 0) return {}; // empty, or only comments
  const result = parseValue(text);
  if (result === undefined) return undefined;
  const section = result?.[SECTION];
  return section && typeof section === "object" && !Array.isArray(section) ? section : {};
}

/**
 * The text with a parameter set, or removed (undefined). null: the text has a form that must be
 * edited by hand.
 * @param {string} text @param {string} name @param {unknown} value
 * @returns {string | null}
 */
export function withValue(text, name, value) {
  const { root, faults } = read(text);
  if (faults.length > 0) return null;
  if (root === null || (isScalar(root) && root.value === null))
    return appendSection(text, name, value);
  if (!isMap(root)) return null;
  const section = root.items.find((item) => keyOf(item.key) === SECTION);
  if (!section) return appendSection(text, name, value);
  const values = section.value;
  if (!isMap(values) || values.items.length === 0)
    return isScalar(values) && values.value !== null
      ? null
      : fillSection(text, section, name, value);
  const existing = values.items.find((item) => keyOf(item.key) === name);
  if (existing && value !== undefined) return replaceValue(text, existing, value);
  if (existing)
    return values.items.length === 1
      ? removeEntry(text, section, root.flow)
      : removeEntry(text, existing, values.flow);
  if (value === undefined) return text;
  return addEntry(text, values, name, value);
}

/** @typedef {import("../vendor/yaml.js").Pair<any, any>} Pair */

/** Appends the section. @param {string} text @param {string} name @param {unknown} value */
function appendSection(text, name, value) {
  if (value === undefined) return text;
  const before = text === "" || text.endsWith("\n") ? text : `${text}\n`;
  return `${before}${SECTION}:\n  ${entry(name, value)}\n`;
}

/**
 * Fills an empty section.
 * @param {string} text @param {Pair} section @param {string} name @param {unknown} value
 */
function fillSection(text, section, name, value) {
  if (value === undefined) return text;
  const key = rangeOf(section.key);
  const colon = text.indexOf(":", key.to) + 1;
  const to = Math.max(colon, isMap(section.value) ? rangeOf(section.value).to : colon);
  return `${text.slice(0, colon)}\n  ${entry(name, value)}${text.slice(to)}`;
}

/** @param {string} text @param {Pair} pair @param {unknown} value */
function replaceValue(text, pair, value) {
  const key = rangeOf(pair.key);
  const colon = text.indexOf(":", key.to) + 1;
  const old = pair.value;
  const { from, to } = old && !isNothing(old) ? rangeOf(old) : { from: colon, to: colon };
  const ended = text.slice(from, to).endsWith("\n") ? "\n" : "";
  const gap = from <= colon ? " " : "";
  // Drop the anchor or tag of the old value.
  const start = text.slice(colon, from).trim() === "" ? from : colon;
  const space = start === colon ? " " : gap;
  return `${text.slice(0, start)}${space}${inline(value)}${ended}${text.slice(to)}`;
}

/** @param {any} node */
function isNothing(node) {
  return isScalar(node) && node.value === null && node.range?.[0] === node.range?.[1];
}

/** @param {string} text @param {any} values @param {string} name @param {unknown} value */
function addEntry(text, values, name, value) {
  if (values.flow) {
    const end = rangeOf(values).to - 1;
    return `${text.slice(0, end).trimEnd()}, ${entry(name, value)}${text.slice(end)}`;
  }
  const last = values.items.at(-1);
  const indent = column(text, rangeOf(values.items[0].key).from);
  const to = lineEnd(text, lastOf(last));
  return `${text.slice(0, to)}\n${" ".repeat(indent)}${entry(name, value)}${text.slice(to)}`;
}

/**
 * Removes an entry with its line.
 * @param {string} text @param {Pair} pair @param {boolean} [flow]
 */
function removeEntry(text, pair, flow) {
  const { from } = rangeOf(pair.key);
  const to = lastOf(pair);
  if (flow) {
    const next = text.slice(to).match(/^\s*,\s*/);
    if (next) return text.slice(0, from) + text.slice(to + next[0].length);
    return text.slice(0, from).replace(/,\s*$/, "") + text.slice(to);
  }
  const begin = text.lastIndexOf("\n", from - 1) + 1;
  return text.slice(0, begin) + text.slice(Math.min(lineEnd(text, to) + 1, text.length));
}

/** End of an entry, without the line break. @param {Pair} pair */
function lastOf(pair) {
  return Math.max(rangeOf(pair.key).to, rangeOf(pair.value).to);
}

/** @param {string} text @param {number} at */
function lineEnd(text, at) {
  const back = at > 0 && text[at - 1] === "\n" ? at - 1 : at;
  const end = text.indexOf("\n", back);
  return end < 0 ? text.length : end;
}

/** @param {string} text @param {number} at */
function column(text, at) {
  return at - (text.lastIndexOf("\n", at - 1) + 1);
}

/** @param {string} name @param {unknown} value */
function entry(name, value) {
  return `${inline(name)}: ${inline(value)}`;
}
