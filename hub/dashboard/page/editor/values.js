/**
 * Values of parameters in the text of an environment: set and taken away, with all else in the text
 * left as it is. Pure.
 */

import { isMap, isScalar } from "../vendor/yaml.js";
import { inline, keyOf, meaning, rangeOf, read } from "./yaml.js";

/** Of what was not there as the server shows hidden values. */
export const MASK = "******";
const SECTION = "parameters";

/** Values by name; undefined where the text cannot be read. @param {string} text @returns {Record<string, unknown> | undefined} */
export function valuesIn(text) {
  const found = meaning(text);
  if (found === undefined) return undefined;
  const section = found?.[SECTION];
  return section && typeof section === "object" && !Array.isArray(section) ? section : {};
}

/**
 * The text with a value of a parameter, or without (undefined). null: the text is such that it
 * has to be written by hand.
 * @param {string} text @param {string} name @param {unknown} value
 * @returns {string | null}
 */
export function withValue(text, name, value) {
  const { root, faults } = read(text);
  if (faults.length > 0) return null;
  if (root === null || (isScalar(root) && root.value === null)) return begun(text, name, value);
  if (!isMap(root)) return null;
  const section = root.items.find((one) => keyOf(one.key) === SECTION);
  if (!section) return begun(text, name, value);
  const values = section.value;
  if (!isMap(values) || values.items.length === 0)
    return isScalar(values) && values.value !== null ? null : refilled(text, section, name, value);
  const there = values.items.find((one) => keyOf(one.key) === name);
  if (there && value !== undefined) return replaced(text, there, value);
  if (there)
    return values.items.length === 1
      ? cut(text, section, root.flow)
      : cut(text, there, values.flow);
  if (value === undefined) return text;
  return added(text, values, name, value);
}

/** @typedef {import("../vendor/yaml.js").Pair<any, any>} Pair */

/** A section at the end. @param {string} text @param {string} name @param {unknown} value */
function begun(text, name, value) {
  if (value === undefined) return text;
  const before = text === "" || text.endsWith("\n") ? text : `${text}\n`;
  return `${before}${SECTION}:\n  ${entry(name, value)}\n`;
}

/** A section that is there and empty. @param {string} text @param {Pair} section @param {string} name @param {unknown} value */
function refilled(text, section, name, value) {
  if (value === undefined) return text;
  const key = rangeOf(section.key);
  const colon = text.indexOf(":", key.to) + 1;
  const to = Math.max(colon, isMap(section.value) ? rangeOf(section.value).to : colon);
  return `${text.slice(0, colon)}\n  ${entry(name, value)}${text.slice(to)}`;
}

/** @param {string} text @param {Pair} pair @param {unknown} value */
function replaced(text, pair, value) {
  const key = rangeOf(pair.key);
  const colon = text.indexOf(":", key.to) + 1;
  const old = pair.value;
  const { from, to } = old && !isNothing(old) ? rangeOf(old) : { from: colon, to: colon };
  const ended = text.slice(from, to).endsWith("\n") ? "\n" : "";
  const gap = from <= colon ? " " : "";
  // What an anchor or a tag says of the old value is not said of the new one.
  const start = text.slice(colon, from).trim() === "" ? from : colon;
  const space = start === colon ? " " : gap;
  return `${text.slice(0, start)}${space}${inline(value)}${ended}${text.slice(to)}`;
}

/** @param {any} node */
function isNothing(node) {
  return isScalar(node) && node.value === null && node.range?.[0] === node.range?.[1];
}

/** @param {string} text @param {any} values @param {string} name @param {unknown} value */
function added(text, values, name, value) {
  if (values.flow) {
    const end = rangeOf(values).to - 1;
    return `${text.slice(0, end).trimEnd()}, ${entry(name, value)}${text.slice(end)}`;
  }
  const last = values.items.at(-1);
  const indent = column(text, rangeOf(values.items[0].key).from);
  const to = lineEnd(text, lastOf(last));
  return `${text.slice(0, to)}\n${" ".repeat(indent)}${entry(name, value)}${text.slice(to)}`;
}

/** Take an entry away, with its line. @param {string} text @param {Pair} pair @param {boolean} [flow] */
function cut(text, pair, flow) {
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

/** Where an entry ends, without the break behind it. @param {Pair} pair */
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
