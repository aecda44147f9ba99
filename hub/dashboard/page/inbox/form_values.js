/** Converts form values to answer data and validates them. Pure. */

/** @typedef {import("./form.js").Control} Control */
/** @typedef {import("./form.js").Raws} Raws */
/** @typedef {import("./form.js").Raw} Raw */
/** @typedef {import("../api/client.js").Finding} Finding */
/** Errors by control path. @typedef {Record<string, string>} Wrongs */
/** value undefined: the field is omitted. @typedef {{value: unknown, wrongs: Wrongs}} Read */

const NEEDED = "This field is required.";

/** @param {Control} form @param {Raws} raws @returns {Read} */
export function readForm(form, raws) {
  return form.kind === "group" ? readGroup(form, raws, true) : readOne(form, raws);
}

/** @param {Control} group @param {Raws} raws @param {boolean} needed @returns {Read} */
function readGroup(group, raws, needed) {
  /** @type {Record<string, unknown>} */
  const value = {};
  /** @type {Wrongs} */
  const wrongs = {};
  for (const one of group.children) {
    const read = one.kind === "group" ? readGroup(one, raws, one.required) : readOne(one, raws);
    Object.assign(wrongs, read.wrongs);
    if (read.value !== undefined) value[one.key] = read.value;
  }
  // An optional group without values is omitted, whatever its required fields.
  if (!needed && Object.keys(value).length === 0) return { value: undefined, wrongs: {} };
  return { value, wrongs };
}

/** @param {Control} of @param {Raws} raws @returns {Read} */
function readOne(of, raws) {
  const raw = raws[of.path] ?? of.initial;
  const blank = raw === undefined || raw === "" || (Array.isArray(raw) && raw.length === 0);
  if (blank && !of.required) return { value: undefined, wrongs: {} };
  try {
    const value = READ[of.kind]?.(of, raw, blank);
    return { value, wrongs: {} };
  } catch (error) {
    if (!(error instanceof Wrong)) throw error;
    return { value: undefined, wrongs: { [of.path]: error.message } };
  }
}

class Wrong extends Error {}

/** @type {Record<string, (of: Control, raw: Raw | undefined, blank: boolean) => unknown>} */
const READ = {
  text: readText,
  long: readText,
  number: (of, raw, blank) => readNumber(of.schema, String(raw ?? ""), blank),
  choice: (of, raw, blank) => {
    if (blank) throw new Wrong(NEEDED);
    return of.options[Number(raw)];
  },
  choices: (of, raw) =>
    counted(
      of,
      [raw ?? []].flat().map((at) => of.options[Number(at)]),
    ),
  flag: readFlag,
  lines: (of, raw) => counted(of, lines(of, String(raw ?? ""))),
  json: readJson,
};

/** @param {Control} of @param {Raw | undefined} raw @param {boolean} blank */
function readText(of, raw, blank) {
  const { minLength = 0, maxLength = Infinity, pattern } = of.schema;
  const text = String(raw ?? "");
  if (blank) throw new Wrong(NEEDED);
  const long = [...text].length;
  if (long < minLength) throw new Wrong(`Enter at least ${minLength} characters.`);
  if (long > maxLength)
    throw new Wrong(`Enter at most ${maxLength} characters; you entered ${long}.`);
  if (pattern && !fits(pattern, text)) throw new Wrong(`Enter text that matches ${pattern}.`);
  return text;
}

/** @param {string} pattern @param {string} text */
function fits(pattern, text) {
  try {
    return new RegExp(pattern, "u").test(text);
  } catch {
    // The pattern uses another dialect: the server validates it.
    return true;
  }
}

/** @param {import("./form.js").Schema} schema @param {string} text @param {boolean} blank */
function readNumber(schema, text, blank) {
  if (blank) throw new Wrong(NEEDED);
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value)) throw new Wrong(`"${text}" is not a number.`);
  const whole = [schema.type].flat().includes("integer");
  if (whole && !Number.isInteger(value)) throw new Wrong("Enter an integer.");
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema;
  if (value < minimum) throw new Wrong(`Enter ${minimum} or more.`);
  if (value > maximum) throw new Wrong(`Enter ${maximum} or less.`);
  if (value <= exclusiveMinimum) throw new Wrong(`Enter more than ${exclusiveMinimum}.`);
  if (value >= exclusiveMaximum) throw new Wrong(`Enter less than ${exclusiveMaximum}.`);
  return value;
}

/** @param {Control} of @param {Raw | undefined} raw */
function readFlag(of, raw) {
  const value = raw === true;
  /** @type {unknown[]} */
  const wanted = "const" in of.schema ? [of.schema.const] : (of.schema.enum ?? [true, false]);
  if (wanted.includes(value)) return value;
  if (!value && !of.required) return undefined;
  throw new Wrong(value ? "Clear this checkbox." : "Select this checkbox.");
}

/** @param {Control} of @param {string} text */
function lines(of, text) {
  const found = text.split("\n").map((one) => one.trim());
  const items = of.schema.items ?? {};
  const filled = found.filter(Boolean);
  if ([items.type].flat().includes("string")) return filled;
  return filled.map((one) => readNumber(items, one, false));
}

/** @param {Control} of @param {unknown[]} values */
function counted(of, values) {
  const { minItems = 0, maxItems = Infinity } = of.schema;
  if (values.length < minItems)
    throw new Wrong(`At least ${minItems} required, got ${values.length}.`);
  if (values.length > maxItems)
    throw new Wrong(`At most ${maxItems} allowed, got ${values.length}.`);
  return values;
}

/** @param {Control} _ @param {Raw | undefined} raw @param {boolean} blank */
function readJson(_, raw, blank) {
  if (blank) throw new Wrong(NEEDED);
  const read = parseJson(String(raw));
  if (read.wrong) throw new Wrong(read.wrong);
  return read.value;
}

/** @param {string} text @returns {{value?: unknown, wrong?: string}} */
export function parseJson(text) {
  try {
    return { value: JSON.parse(text) };
  } catch {
    const bare = /^[\s]*[A-Za-z]/.test(text);
    return { wrong: `Not valid JSON.${bare ? ' Put text in quotes, for example "large".' : ""}` };
  }
}

/**
 * Assigns the server's findings to controls; rest: findings of no control.
 * @param {string[]} paths of controls as the server names them
 * @param {readonly Finding[]} findings @returns {{wrongs: Wrongs, rest: Finding[]}}
 */
export function placed(paths, findings) {
  /** @type {Wrongs} */
  const wrongs = {};
  const rest = [];
  for (const one of findings) {
    const at = paths
      .filter((path) => one.place === path || one.place.startsWith(`${path}.`))
      .sort((a, b) => b.length - a.length)[0];
    if (at === undefined) rest.push(one);
    else wrongs[at] = one.reason;
  }
  return { wrongs, rest };
}

/** The paths of all controls of a form. @param {Control} form @returns {string[]} */
export function pathsOf(form) {
  return form.kind === "group" ? form.children.flatMap(pathsOf) : [form.path];
}
