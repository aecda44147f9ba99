/** Converts form values to answer data and validates them. Pure. */

/** @typedef {import("./form.js").Control} Control */
/** @typedef {import("./form.js").Raws} Raws */
/** @typedef {import("./form.js").Raw} Raw */
/** @typedef {import("../api/client.js").Finding} Finding */
/** Errors by control path. @typedef {Record<string, string>} Wrongs */
/** value undefined: the field is omitted. @typedef {{value: unknown, errors: Wrongs}} Read */

const REQUIRED = "This field is required.";

/** @param {Control} form @param {Raws} raws @returns {Read} */
export function readForm(form, raws) {
  return form.kind === "group" ? readGroup(form, raws, true) : readOne(form, raws);
}

/** @param {Control} group @param {Raws} raws @param {boolean} needed @returns {Read} */
function readGroup(group, raws, needed) {
  /** @type {Record<string, unknown>} */
  const value = {};
  /** @type {Wrongs} */
  const errors = {};
  for (const child of group.children) {
    const read =
      child.kind === "group" ? readGroup(child, raws, child.required) : readOne(child, raws);
    Object.assign(errors, read.errors);
    if (read.value !== undefined) value[child.key] = read.value;
  }
  // An optional group without values is omitted, even if it has required fields.
  if (!needed && Object.keys(value).length === 0) return { value: undefined, errors: {} };
  return { value, errors };
}

/** @param {Control} of @param {Raws} raws @returns {Read} */
function readOne(of, raws) {
  const raw = raws[of.path] ?? of.initial;
  const blank = raw === undefined || raw === "" || (Array.isArray(raw) && raw.length === 0);
  if (blank && !of.required) return { value: undefined, errors: {} };
  try {
    const value = READ[of.kind]?.(of, raw, blank);
    return { value, errors: {} };
  } catch (error) {
    if (!(error instanceof InvalidValue)) throw error;
    return { value: undefined, errors: { [of.path]: error.message } };
  }
}

class InvalidValue extends Error {}

/** @type {Record<string, (of: Control, raw: Raw | undefined, blank: boolean) => unknown>} */
const READ = {
  text: readText,
  long: readText,
  number: (of, raw, blank) => readNumber(of.schema, String(raw ?? ""), blank),
  choice: (of, raw, blank) => {
    if (blank) throw new InvalidValue(REQUIRED);
    return of.options[Number(raw)];
  },
  choices: (of, raw) =>
    checkCount(
      of,
      [raw ?? []].flat().map((at) => of.options[Number(at)]),
    ),
  flag: readFlag,
  lines: (of, raw) => checkCount(of, readLines(of, String(raw ?? ""))),
  json: readJson,
};

/** @param {Control} of @param {Raw | undefined} raw @param {boolean} blank */
function readText(of, raw, blank) {
  const { minLength = 0, maxLength = Infinity, pattern } = of.schema;
  const text = String(raw ?? "");
  if (blank) throw new InvalidValue(REQUIRED);
  const long = [...text].length;
  if (long < minLength) throw new InvalidValue(`Enter at least ${minLength} characters.`);
  if (long > maxLength)
    throw new InvalidValue(`Enter at most ${maxLength} characters; you entered ${long}.`);
  if (pattern && !matchesPattern(pattern, text))
    throw new InvalidValue(`Enter text that matches ${pattern}.`);
  return text;
}

/** @param {string} pattern @param {string} text */
function matchesPattern(pattern, text) {
  try {
    return new RegExp(pattern, "u").test(text);
  } catch {
    // The pattern uses another dialect: the server validates it.
    return true;
  }
}

/** @param {import("./form.js").Schema} schema @param {string} text @param {boolean} blank */
function readNumber(schema, text, blank) {
  if (blank) throw new InvalidValue(REQUIRED);
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value))
    throw new InvalidValue(`"${text}" is not a number.`);
  const whole = [schema.type].flat().includes("integer");
  if (whole && !Number.isInteger(value)) throw new InvalidValue("Enter an integer.");
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema;
  if (value < minimum) throw new InvalidValue(`Enter ${minimum} or more.`);
  if (value > maximum) throw new InvalidValue(`Enter ${maximum} or less.`);
  if (value <= exclusiveMinimum) throw new InvalidValue(`Enter more than ${exclusiveMinimum}.`);
  if (value >= exclusiveMaximum) throw new InvalidValue(`Enter less than ${exclusiveMaximum}.`);
  return value;
}

/** @param {Control} of @param {Raw | undefined} raw */
function readFlag(of, raw) {
  const value = raw === true;
  /** @type {unknown[]} */
  const accepted = "const" in of.schema ? [of.schema.const] : (of.schema.enum ?? [true, false]);
  if (accepted.includes(value)) return value;
  if (!value && !of.required) return undefined;
  throw new InvalidValue(value ? "Clear this checkbox." : "Select this checkbox.");
}

/** @param {Control} of @param {string} text */
function readLines(of, text) {
  const result = text.split("\n").map((part) => part.trim());
  const items = of.schema.items ?? {};
  const filled = result.filter(Boolean);
  if ([items.type].flat().includes("string")) return filled;
  return filled.map((item) => readNumber(items, item, false));
}

/** @param {Control} of @param {unknown[]} values */
function checkCount(of, values) {
  const { minItems = 0, maxItems = Infinity } = of.schema;
  if (values.length < minItems)
    throw new InvalidValue(`At least ${minItems} required, got ${values.length}.`);
  if (values.length > maxItems)
    throw new InvalidValue(`At most ${maxItems} allowed, got ${values.length}.`);
  return values;
}

/** @param {Control} _ @param {Raw | undefined} raw @param {boolean} blank */
function readJson(_, raw, blank) {
  if (blank) throw new InvalidValue(REQUIRED);
  const read = parseJson(String(raw));
  if (read.error) throw new InvalidValue(read.error);
  return read.value;
}

/** @param {string} text @returns {{value?: unknown, error?: string}} */
export function parseJson(text) {
  try {
    return { value: JSON.parse(text) };
  } catch {
    const bare = /^[\s]*[A-Za-z]/.test(text);
    return { error: `Not valid JSON.${bare ? ' Put text in quotes, for example "large".' : ""}` };
  }
}

/**
 * Assigns the server's findings to controls; rest: findings of no control.
 * @param {string[]} paths of controls as the server names them
 * @param {readonly Finding[]} findings @returns {{errors: Wrongs, rest: Finding[]}}
 */
export function assignFindings(paths, findings) {
  /** @type {Wrongs} */
  const errors = {};
  const rest = [];
  for (const finding of findings) {
    const at = paths
      .filter((path) => finding.place === path || finding.place.startsWith(`${path}.`))
      .sort((a, b) => b.length - a.length)[0];
    if (at === undefined) rest.push(finding);
    else errors[at] = finding.reason;
  }
  return { errors, rest };
}

/** The paths of all controls of a form. @param {Control} form @returns {string[]} */
export function pathsOf(form) {
  return form.kind === "group" ? form.children.flatMap(pathsOf) : [form.path];
}
