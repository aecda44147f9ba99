/** What is being written: the texts and the options, as they were and as they are. */

import { computed, signal } from "../vendor/preact.js";
import { same } from "./differences.js";
import { textNamed } from "./places.js";

/**
 * @typedef {import("./places.js").Texts} Texts
 *
 * rollback: whether a failure is rolled back. timeout: minutes as typed. only, except, tags: as
 * typed, with commas. add, clear: breakpoints for this change, `resource:point` each.
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

/** What a stack is asked about as, until it has a name. */
export const UNNAMED = `unnamed-${Math.random().toString(36).slice(2)}`;

/** @param {Written} first */
export function draftOf(first) {
  const begun = signal(first);
  const name = signal(first.name);
  const texts = signal(first.texts);
  const options = signal(first.options);
  const changed = computed(
    () =>
      name.value !== begun.value.name ||
      !same(texts.value, begun.value.texts) ||
      !same(options.value, begun.value.options),
  );
  return {
    begun,
    name,
    texts,
    options,
    changed,
    /** @param {string} which @param {string} text */
    write(which, text) {
      if (textNamed(texts.value, which) === text) return;
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

/** @param {Texts} texts @param {string} name @param {string | null} text null: without it @returns {Texts} */
export function withFile(texts, name, text) {
  const { [name]: _, ...others } = texts.files;
  return { ...texts, files: text === null ? others : { ...texts.files, [name]: text } };
}

/** @param {string} typed */
export function listed(typed) {
  return typed
    .split(/[,\n]/)
    .map((one) => one.trim())
    .filter(Boolean);
}

/**
 * What is sent. It stands for all that the stack is to be, and hidden values that are sent as they
 * are shown stay what they are.
 * @param {Written} written @param {boolean} isNew
 * @returns {Record<string, unknown>}
 */
export function requested({ name, texts, options }, isNew) {
  /** @type {Record<string, unknown>} */
  const body = {
    template: texts.template,
    files: texts.files,
    disable_rollback: !options.rollback,
    tags: listed(options.tags),
  };
  if (!isBlank(texts.environment)) body.environment = texts.environment;
  if (options.timeout.trim()) body.timeout_mins = options.timeout.trim();
  if (options.add.length + options.clear.length > 0)
    body.hooks = { add: options.add, clear: options.clear };
  if (isNew) return { stack_name: name || UNNAMED, ...body };
  if (listed(options.only).length > 0) body.only = listed(options.only);
  if (listed(options.except).length > 0) body.except = listed(options.except);
  return { ...body, keep_hidden: true };
}

/** Nothing but empty lines and comments. @param {string} text */
function isBlank(text) {
  return text.split("\n").every((line) => /^\s*(#.*)?$/.test(line));
}
