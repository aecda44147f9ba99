/** Maps the place of a finding to a position in the texts. Pure. */

import { find, read } from "./yaml.js";

/**
 * text: "template", "environment", "files/NAME"; "options" and "name" are form fields; "" is no
 * position. line: from 1; 0 if it is in no text.
 * @typedef {{text: string, from: number, to: number, line: number}} Spot
 * @typedef {{place: string, reason: string, remedy?: string, type?: string,
 *   quote?: string | null}} Finding
 * @typedef {{template: string, environment: string, files: Record<string, string>}} Texts
 */

const OPTIONS = /^(hooks\.(add|clear)|only|except|timeout_mins|tags|disable_rollback|moved)\b/;
const OF_ENVIRONMENT =
  /^(resource_registry|parameter_defaults|parameter_merge_strategies|event_sinks|encrypted_param_names|convergence|context)\b/;

/** @param {Finding} finding @param {Texts} texts @returns {Spot} */
export function positionOf(finding, texts) {
  const { place, reason } = finding;
  if (/^stack_name\b/.test(place)) return formPosition("name");
  if (OPTIONS.test(place)) return formPosition("options");
  const name = parameterOf(finding);
  if (name) return ofParameter(name, texts);
  const file = [...place.matchAll(/<([^<>]+)>/g)].at(-1)?.[1];
  if (file && file in texts.files) {
    const rest = place.slice(place.lastIndexOf(">") + 1).replace(/^\./, "");
    return positionIn(`files/${file}`, texts, rest, reason);
  }
  const ofFile = Object.keys(texts.files).find(
    (key) => place === key || place.startsWith(`files.${key}`),
  );
  if (ofFile) return positionIn(`files/${ofFile}`, texts, "", reason);
  return positionIn(
    ofEnvironment(finding, texts) ? "environment" : "template",
    texts,
    place,
    reason,
  );
}

/**
 * A warning of the server as a finding, with the position that the server found.
 * @typedef {{code: string, message: string, path: string, file: string | null,
 *   line: number | null, column: number | null, quote: string | null}} Warning
 * @param {Warning} warning @param {Texts} texts @returns {{finding: Finding, spot: Spot}}
 */
export function locateWarning({ code, message, path, file, line, quote }, texts) {
  const finding = { place: path, reason: message, type: code, quote };
  const name = file !== null && file in texts.files ? `files/${file}` : file;
  if (name === null || line === null) return { finding, spot: positionOf(finding, texts) };
  const text = textByName(texts, name);
  return { finding, spot: spot(name, text, lineRange(text, line)) };
}

/** @param {string} name @returns {Spot} */
function formPosition(name) {
  return { text: name, from: 0, to: 0, line: 0 };
}

/** The parameter whose value a finding concerns, if any. @param {Finding} finding */
export function parameterOf({ place, reason }) {
  const name = (reason.match(/^The Parameter \((.+?)\) was not/) ??
    reason.match(/^Parameter '(.+?)' is invalid/))?.[1];
  return place === "" || place === `parameters.${name}` ? name : undefined;
}

/** @param {string} name @param {Texts} texts */
function ofParameter(name, texts) {
  const places = [`parameters.${name}`, `parameter_defaults.${name}`];
  const inEnvironment = places.find((place) => reaches(texts.environment, place));
  if (inEnvironment) return positionIn("environment", texts, inEnvironment, "");
  return positionIn("template", texts, `parameters.${name}`, "");
}

/** @param {Finding} finding @param {Texts} texts */
function ofEnvironment({ place, reason }, texts) {
  if (/^environment\b|\b(parsing|in the) environment\b|The environment\b/.test(reason)) return true;
  if (/\b(parsing|in the) template\b|^The template\b/.test(reason)) return false;
  if (place === "environment" || OF_ENVIRONMENT.test(place)) return true;
  return /^hooks\b/.test(place) && reaches(texts.environment, place);
}

/** @param {string} text @param {string} place */
function reaches(text, place) {
  return find(parseCached(text).root, place).left === "";
}

/** @param {string} name @param {Texts} texts @param {string} place @param {string} reason @returns {Spot} */
function positionIn(name, texts, place, reason) {
  const text = textByName(texts, name);
  const line = Number(reason.match(/\bin line (\d+)/)?.[1] ?? 0);
  if (line > 0) return spot(name, text, lineRange(text, line));
  const { root } = parseCached(text);
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
  const start = lines.slice(0, index).reduce((sum, line) => sum + line.length + 1, 0);
  const content = lines[index] ?? "";
  return { from: start + content.length - content.trimStart().length, to: start + content.length };
}

/** Syntax errors, found without the server. @param {Texts} texts */
export function syntaxErrors(texts) {
  const names = [
    "template",
    "environment",
    ...Object.keys(texts.files).map((key) => `files/${key}`),
  ];
  return names.flatMap((name) => {
    const text = textByName(texts, name);
    if (name.startsWith("files/") && !/\.(ya?ml|template)$/.test(name)) return [];
    if (text.length > MAX_PARSED_LENGTH) return [];
    // The server accepts a key that is given twice, and warns of it.
    const faults = parseCached(text).faults.filter(({ code }) => code !== "DUPLICATE_KEY");
    return faults.map((fault) => ({
      finding: { place: "", reason: fault.reason, remedy: "" },
      spot: spot(name, text, fault),
    }));
  });
}

/** Longer texts are not parsed while typing; the server reports their errors. */
const MAX_PARSED_LENGTH = 100_000;

/** @type {Map<string, ReturnType<typeof read>>} */
const parseCache = new Map();
const MAX_CACHED = 12;

/** @param {string} text */
function parseCached(text) {
  let existing = parseCache.get(text);
  if (!existing) {
    existing = read(text);
    if (parseCache.size >= MAX_CACHED) parseCache.clear();
    parseCache.set(text, existing);
  }
  return existing;
}
