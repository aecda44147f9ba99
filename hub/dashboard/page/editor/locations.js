/** Maps the place of a finding to a position in the texts. Pure. */

import { find, read } from "./yaml.js";

/**
 * text: "template", "environment", "files/NAME"; "options" and "name" are form fields; "" is no
 * position. line: from 1; 0 if it is in no text.
 * @typedef {{text: string, from: number, to: number, line: number}} Spot
 * @typedef {{place: string, reason: string, remedy?: string, type?: string}} Finding
 * @typedef {{template: string, environment: string, files: Record<string, string>}} Texts
 */

const OPTIONS = /^(hooks\.(add|clear)|only|except|timeout_mins|tags|disable_rollback|moved)\b/;
const OF_ENVIRONMENT =
  /^(resource_registry|parameter_defaults|parameter_merge_strategies|event_sinks|encrypted_param_names)\b/;

/** @param {Finding} finding @param {Texts} texts @returns {Spot} */
export function positionOf(finding, texts) {
  const { place, reason } = finding;
  if (/^stack_name\b/.test(place)) return form("name");
  if (OPTIONS.test(place)) return form("options");
  const name = parameterOf(finding);
  if (name) return ofParameter(name, texts);
  const file = [...place.matchAll(/<([^<>]+)>/g)].at(-1)?.[1];
  if (file && file in texts.files) {
    const rest = place.slice(place.lastIndexOf(">") + 1).replace(/^\./, "");
    return within(`files/${file}`, texts, rest, reason);
  }
  const ofFile = Object.keys(texts.files).find((one) => place.startsWith(`files.${one}`));
  if (ofFile) return within(`files/${ofFile}`, texts, "", reason);
  return within(ofEnvironment(finding, texts) ? "environment" : "template", texts, place, reason);
}

/** @param {string} name @returns {Spot} */
function form(name) {
  return { text: name, from: 0, to: 0, line: 0 };
}

/** The parameter whose value a finding concerns, if any. @param {Finding} finding */
export function parameterOf({ place, reason }) {
  if (place !== "") return undefined;
  return (reason.match(/^The Parameter \((.+?)\) was not/) ??
    reason.match(/^Parameter '(.+?)' is invalid/))?.[1];
}

/** @param {string} name @param {Texts} texts */
function ofParameter(name, texts) {
  const places = [`parameters.${name}`, `parameter_defaults.${name}`];
  const given = places.find((one) => reaches(texts.environment, one));
  if (given) return within("environment", texts, given, "");
  return within("template", texts, `parameters.${name}`, "");
}

/** @param {Finding} finding @param {Texts} texts */
function ofEnvironment({ place, reason }, texts) {
  if (/^environment\b|\b(parsing|in the) environment\b|The environment\b/.test(reason)) return true;
  if (/\b(parsing|in the) template\b|^The template\b/.test(reason)) return false;
  if (OF_ENVIRONMENT.test(place)) return true;
  return /^hooks\b/.test(place) && reaches(texts.environment, place);
}

/** @param {string} text @param {string} place */
function reaches(text, place) {
  return find(parsed(text).root, place).left === "";
}

/** @param {string} name @param {Texts} texts @param {string} place @param {string} reason @returns {Spot} */
function within(name, texts, place, reason) {
  const text = textByName(texts, name);
  const line = Number(reason.match(/\bin line (\d+)/)?.[1] ?? 0);
  if (line > 0) return spot(name, text, lineRange(text, line));
  const { root } = parsed(text);
  const key = reason.match(/^Unknown Property (\S+)/)?.[1];
  const exact = key ? find(root, `${place}.${key}`, true) : { left: "none", from: 0, to: 0 };
  return spot(name, text, exact.left === "" ? exact : find(root, place));
}

/** @param {Texts} texts @param {string} name @returns {string} */
export function textByName(texts, name) {
  if (name === "template" || name === "environment") return texts[name];
  return texts.files[name.replace(/^files\//, "")] ?? "";
}

/** @param {string} name @param {string} text @param {{from: number, to: number}} range @returns {Spot} */
function spot(name, text, { from, to }) {
  const line = text.slice(0, from).split("\n").length;
  return { text: name, from, to: Math.max(from, to), line };
}

/** A line without its indentation. @param {string} text @param {number} line */
function lineRange(text, line) {
  const lines = text.split("\n");
  const index = Math.min(line, lines.length) - 1;
  const start = lines.slice(0, index).reduce((sum, one) => sum + one.length + 1, 0);
  const content = lines[index] ?? "";
  return { from: start + content.length - content.trimStart().length, to: start + content.length };
}

/** Syntax errors, found without the server. @param {Texts} texts */
export function syntaxErrors(texts) {
  const names = [
    "template",
    "environment",
    ...Object.keys(texts.files).map((one) => `files/${one}`),
  ];
  return names.flatMap((name) => {
    const text = textByName(texts, name);
    if (name.startsWith("files/") && !/\.(ya?ml|template)$/.test(name)) return [];
    if (text.length > LONGEST) return [];
    return parsed(text).faults.map((one) => ({
      finding: { place: "", reason: one.reason, remedy: "" },
      spot: spot(name, text, one),
    }));
  });
}

/** Longer texts are not parsed while typing; the server reports their errors. */
const LONGEST = 100_000;

/** @type {Map<string, ReturnType<typeof read>>} */
const known = new Map();
const MOST_KNOWN = 12;

/** @param {string} text */
function parsed(text) {
  let found = known.get(text);
  if (!found) {
    found = read(text);
    if (known.size >= MOST_KNOWN) known.clear();
    known.set(text, found);
  }
  return found;
}
