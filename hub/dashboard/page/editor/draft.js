/** The draft of a change: texts and options, initial and current. */

import { computed, signal } from "../vendor/preact.js";
import { deepEqual } from "./differences.js";
import { textByName } from "./locations.js";

/**
 * @typedef {import("./locations.js").Texts} Texts
 *
 * rollback: on failure. timeout: minutes as typed. only, except, tags: as typed, comma-separated.
 * add, clear: breakpoints for this change, `resource:point` each.
 * @typedef {{rollback: boolean, timeout: string, tags: string, only: string, except: string,
 *   add: string[], clear: string[]}} Options
 *
 * @typedef {{name: string, texts: Texts, options: Options}} Written
 * @typedef {ReturnType<typeof draftOf>} Draft
 */

/** @type {Options} */
export const NO_OPTIONS = {
  rollback: false,
  timeout: "",
  tags: "",
  only: "",
  except: "",
  add: [],
  clear: [],
};

/** Placeholder name for previews of a stack without a name. */
const UNNAMED = `unnamed-${Math.random().toString(36).slice(2)}`;

/** @param {Written} first @param {Written} [written] what the draft has by now */
export function draftOf(first, written = first) {
  const initial = signal(first);
  const name = signal(written.name);
  const texts = signal(written.texts);
  const options = signal(written.options);
  const changed = computed(
    () =>
      name.value !== initial.value.name ||
      !deepEqual(texts.value, initial.value.texts) ||
      !deepEqual(options.value, initial.value.options),
  );
  return {
    initial,
    name,
    texts,
    options,
    changed,
    /** @param {string} which @param {string} text */
    write(which, text) {
      if (textByName(texts.value, which) === text) return;
      if (which === "template" || which === "environment")
        texts.value = { ...texts.value, [which]: text };
      else texts.value = withFile(texts.value, which.replace(/^files\//, ""), text);
    },
    /** @param {Partial<Options>} some */
    choose(some) {
      options.value = { ...options.value, ...some };
    },
  };
}

/** @param {Texts} texts @param {string} name @param {string | null} text null: removes the file @returns {Texts} */
export function withFile(texts, name, text) {
  const { [name]: _, ...others } = texts.files;
  return { ...texts, files: text === null ? others : { ...texts.files, [name]: text } };
}

/** @param {string} typed */
function splitList(typed) {
  return typed
    .split(/[,\n]/)
    .map((part) => part.trim())
    .filter(Boolean);
}

/**
 * The request body. It describes the complete stack; hidden values sent as masked keep their
 * values.
 * @param {Written} written @param {boolean} isNew
 * @returns {Record<string, unknown>}
 */
export function requestBody({ name, texts, options }, isNew) {
  /** @type {Record<string, unknown>} */
  const body = {
    template: texts.template,
    files: texts.files,
    disable_rollback: !options.rollback,
    tags: splitList(options.tags),
  };
  if (!isBlank(texts.environment)) body.environment = texts.environment;
  if (options.timeout.trim()) body.timeout_mins = options.timeout.trim();
  if (options.add.length + options.clear.length > 0)
    body.hooks = { add: options.add, clear: options.clear };
  if (isNew) return { stack_name: name || UNNAMED, ...body };
  if (splitList(options.only).length > 0) body.only = splitList(options.only);
  if (splitList(options.except).length > 0) body.except = splitList(options.except);
  return { ...body, keep_hidden: true };
}

/** Whether a text has only empty lines and comments. @param {string} text */
function isBlank(text) {
  return text.split("\n").every((line) => /^\s*(#.*)?$/.test(line));
}
