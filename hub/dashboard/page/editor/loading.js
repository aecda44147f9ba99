/** Loads the definition of a stack for editing. */

import { call } from "../api/client.js";
import { linesPath } from "../stacks/query.js";
import { NO_OPTIONS } from "./draft.js";
import { orderKeys } from "./key_order.js";
import { toYaml } from "./yaml.js";

/**
 * waiting: number of waiting hooks. version: of the template. by, at: its author and time. within:
 * the root stack of a nested stack.
 * @typedef {{name: string, id: string, status: string, action: string, reason: string,
 *   waiting: number, version: number, by: string, at: string, document: {template: any,
 *   environment: any, files: Record<string, string>}, first: import("./draft.js").Written,
 *   within: {id: string, name: string} | null}} Loaded
 */

/** @param {string} name @param {string} id */
export function pathOf(name, id) {
  return `/stacks/${encodeURIComponent(name)}/${encodeURIComponent(id)}`;
}

/** Throws Problem. @param {string} project @param {string} name @param {string} id @returns {Promise<Loaded>} */
export async function loadStack(project, name, id) {
  const path = pathOf(name, id);
  const [{ stack }, newest, { stacks }] = await Promise.all([
    call("GET", project, `${path}?resolve_outputs=false`),
    newestVersion(project, path),
    call("GET", project, linesPath([id])),
  ]);
  const version = await call("GET", project, `${path}/versions/${newest.version}`);
  const [action = "", status = ""] = splitStatus(stack.stack_status);
  return {
    name: stack.stack_name,
    id: stack.id,
    action,
    status,
    waiting: stacks[0]?.hooks_waiting ?? 0,
    reason: stack.stack_status_reason ?? "",
    version: newest.version,
    by: newest.requested_by,
    at: newest.created_at,
    document: version,
    within: stack.parent === null ? null : await fetchRootStack(project, stack.root),
    first: { name: stack.stack_name, texts: textsOf(version), options: optionsOf(stack) },
  };
}

/** @param {string} project @param {string} id @returns {Promise<{id: string, name: string}>} */
async function fetchRootStack(project, id) {
  const { stacks } = await call("GET", project, `/overview?stack=${encodeURIComponent(id)}`);
  return stacks[0] ?? { id, name: id };
}

/** @param {string} project @param {string} path @returns {Promise<{version: number, requested_by: string, created_at: string}>} */
async function newestVersion(project, path) {
  const { versions } = await call("GET", project, `${path}/versions?limit=1`);
  return versions.find((/** @type {any} */ version) => version.current) ?? versions[0];
}

/**
 * The texts of a version: the submitted source if it is kept, else serialized.
 * @param {{template: any, environment: any, files: Record<string, string>, source?: string | null}} version
 * @returns {import("./locations.js").Texts}
 */
function textsOf(version) {
  return {
    template: version.source ?? toYaml(orderKeys(version.template)),
    environment: toYaml(orderKeys(withoutEmptySections(version.environment))),
    files: version.files,
  };
}

/** Removes empty sections. @param {Record<string, any>} environment */
function withoutEmptySections(environment) {
  return Object.fromEntries(
    Object.entries(environment).filter(
      ([, section]) => section !== null && Object.keys(section).length > 0,
    ),
  );
}

/** @param {any} stack @returns {import("./draft.js").Options} */
function optionsOf(stack) {
  return {
    ...NO_OPTIONS,
    rollback: !stack.disable_rollback,
    timeout: stack.timeout_mins === null ? "" : String(stack.timeout_mins),
    tags: (stack.tags ?? []).join(", "),
  };
}

/** Splits CREATE_IN_PROGRESS into action and status. @param {string} whole */
function splitStatus(whole) {
  const at = whole.indexOf("_");
  return [whole.slice(0, at), whole.slice(at + 1)];
}
