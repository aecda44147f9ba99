/**
 * Drafts of the editor in the window's storage: a draft survives a reload and a crash of the
 * browser. Another user does not see it. Values that are or may be hidden are not stored.
 */

import { fieldsOf } from "./fields.js";
import { MASK, parameterValues, withValue } from "./parameter_values.js";
import { parseValue } from "./yaml.js";

/**
 * base: the stack that the draft changes; null for a new stack. complete: false if values or the
 * latest environment were not stored. at: when the draft was stored.
 * @typedef {import("./draft.js").Written} Written
 * @typedef {{owner: string, at: string, written: Written, complete: boolean,
 *   base: import("./loading.js").Loaded | null}} StoredDraft
 */

/** The start of the storage keys. */
const KEY = "headgate.editor";

/** @param {string} project @param {string} id of the stack; "" for a new one */
function keyOf(project, id) {
  return `${KEY}/${project}/${id}`;
}

/** @param {string} project @param {string} id @param {string} owner @returns {StoredDraft | null} */
export function findStoredDraft(project, id, owner) {
  try {
    const found = JSON.parse(sessionStorage.getItem(keyOf(project, id)) ?? "null");
    return found?.owner === owner ? found : null;
  } catch {
    return null;
  }
}

/** @param {string} project @param {string} id of the stack; "" for a new one */
export function removeStoredDraft(project, id) {
  try {
    sessionStorage.removeItem(keyOf(project, id));
  } catch {
    // Without permission nothing is stored.
  }
}

/**
 * Stores the versions of one draft. first: the texts before any change, without hidden values.
 * @param {string} project @param {Written} first
 */
export function draftStore(project, first) {
  let environment = first.texts.environment;
  return {
    /**
     * Whether the draft was stored completely, so that a reload loses nothing.
     * @param {string} owner @param {string} at @param {Written} written
     * @param {import("./loading.js").Loaded | null} base
     */
    store(owner, at, written, base) {
      const key = keyOf(project, base?.id ?? "");
      const template = parseValue(written.texts.template);
      const fields = fieldsOf(template);
      const secret = fields.some(({ hidden, fallback }) => hidden && fallback !== undefined);
      const shown = new Set(fields.filter(({ hidden }) => !hidden).map(({ name }) => name));
      const masked = parameterValues(base?.first.texts.environment ?? "") ?? {};
      // If it is not known which values are hidden, the environment before is stored.
      if (template !== undefined)
        environment = withoutValues(written.texts.environment, shown, masked) ?? environment;
      const complete = environment === written.texts.environment;
      const stored = { ...written, texts: { ...written.texts, environment } };
      try {
        sessionStorage.removeItem(key);
        if (secret) return false;
        const text = JSON.stringify({ owner, at, written: stored, complete, base });
        sessionStorage.setItem(key, text);
        return complete;
      } catch {
        // Without room or permission, the draft lasts as long as the page.
        return false;
      }
    },
  };
}

/**
 * An environment without the values of all parameters but those in `shown`; those that the server
 * has are masked again. null: the text must be edited by hand, or has defaults, which can be those
 * of hidden parameters in other files.
 * @param {string} environment @param {ReadonlySet<string>} shown
 * @param {Record<string, unknown>} masked the values of the stack
 */
function withoutValues(environment, shown, masked) {
  const values = parameterValues(environment);
  if (values === undefined || parseValue(environment)?.parameter_defaults) return null;
  /** @type {string | null} */
  let result = environment;
  for (const [name, value] of Object.entries(values)) {
    if (value === MASK || (shown.has(name) && masked[name] !== MASK)) continue;
    result = withValue(result, name, masked[name] === MASK ? MASK : undefined);
    if (result === null) return null;
  }
  return result;
}
