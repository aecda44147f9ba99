/** A preview in display order. Pure. */

/**
 * @typedef {{resource_name: string, path: string, resource_type: string,
 *   changes: Record<string, {from?: unknown, to?: unknown}>, unknown: string[],
 *   certain: boolean, denied: string | null, replace_reason: string | null,
 *   moved_from: string | null, imported_id: string | null, adopted?: Adopted[]}} Planned
 * @typedef {{path: string, value: unknown, template: unknown, adopted_by: string,
 *   adopted_at: string}} Adopted
 * @typedef {{path: string, resource_name: string | null, point: string, mode: string,
 *   operation: string, certain: boolean, timeout_seconds: number | null, on_timeout: string,
 *   answer_by: string[], approvals: number}} Stop
 * @typedef {{path: string, reason: string, last_known_state: string | null}} UnknownState
 * @typedef {{resource_changes: Record<string, Planned[]>, stops: Stop[], out_of_date: string[],
 *   unknown_states?: UnknownState[], plan_digest: string}} Preview
 * @typedef {{kind: string, title: string, resources: Planned[]}} Group
 * @typedef {{groups: Group[], unchanged: number, stops: Stop[], outOfDate: string[],
 *   unknownStates: UnknownState[], digest: string, destroys: string[], same: boolean, adopted: {name: string, value: Adopted}[]}} Plan
 */

/** Kinds of changes and their titles, most destructive first; then resources without an expected
 * change that values not known yet can change. @type {[string, string][]} */
const KINDS = [
  ["deleted", "Deleted"],
  ["replaced", "Replaced"],
  ["updated", "Updated"],
  ["added", "Added"],
  ["uncertain", "May change"],
];
/** Kinds that destroy a physical resource. */
const DESTROYS = ["deleted", "replaced"];

/** @param {Preview} preview @returns {Plan} */
export function planOf(preview) {
  const unchanged = preview.resource_changes.unchanged ?? [];
  /** @type {Record<string, Planned[]>} */
  const changes = {
    ...preview.resource_changes,
    unchanged: unchanged.filter((planned) => planned.certain),
    uncertain: unchanged.filter((planned) => !planned.certain),
  };
  const groups = KINDS.map(([kind, title]) => ({
    kind,
    title,
    resources: [...(changes[kind] ?? [])].sort((a, b) => comparePaths(a.path, b.path)),
  })).filter((item) => item.resources.length > 0);
  const destroys = groups
    .filter((group) => DESTROYS.includes(group.kind))
    .flatMap((group) => group.resources.map((resource) => resource.path));
  return {
    groups,
    unchanged: (changes.unchanged ?? []).length,
    stops: preview.stops,
    outOfDate: preview.out_of_date,
    unknownStates: preview.unknown_states ?? [],
    digest: preview.plan_digest,
    destroys,
    same: groups.length === 0,
    adopted: Object.values(changes).flatMap((resources) => resources.flatMap(adoptedValues)),
  };
}

/**
 * The observed values that a resource keeps although its template has others, with their names.
 * @param {Planned} planned
 */
function adoptedValues({ path, adopted = [] }) {
  return adopted.map((value) => ({
    name: `${path}.${value.path.replace(/^\$\./, "")}`,
    value,
  }));
}

/**
 * Compares paths so that nested resources follow their parent.
 * @param {string} first @param {string} second
 */
function comparePaths(first, second) {
  const a = first.split("/");
  const b = second.split("/");
  for (const [index, part] of a.entries()) {
    const against = b[index];
    if (against === undefined) return 1;
    if (part !== against) return part < against ? -1 : 1;
  }
  return a.length - b.length;
}

/** Nesting depth. @param {Planned} planned */
export function depth(planned) {
  return planned.path.split("/").length - 1;
}

/**
 * The uncertainty of a planned resource; "" if there is none.
 * @param {string} kind @param {Planned} planned
 */
export function uncertainty(kind, planned) {
  if (planned.denied) return planned.denied;
  if (planned.certain) return "";
  if (kind === "updated")
    return "may be replaced or left unchanged, depending on values not known yet";
  if (kind === "deleted" || kind === "replaced")
    return "may not be needed, depending on values not known yet";
  if (kind === "uncertain") return "may be changed or replaced, depending on values not known yet";
  return "depends on values not known yet";
}

/**
 * Property changes, including unknown values, without those that stay null.
 * @param {Planned} planned @returns {Record<string, {from?: unknown, to?: unknown}>}
 */
export function changesOf(planned) {
  const entries = Object.entries(planned.changes).filter(
    ([, { from, to }]) => (from ?? to ?? null) !== null,
  );
  /** @type {Record<string, {from?: unknown, to?: unknown}>} */
  const result = Object.fromEntries(entries);
  for (const name of planned.unknown) result[name] ??= {};
  return result;
}

/** A summary: "1 deleted, 2 added". @param {Plan} plan */
export function summary(plan) {
  const parts = plan.groups.map(
    (group) => `${group.resources.length} ${group.title.toLowerCase()}`,
  );
  if (plan.unchanged > 0) parts.push(`${plan.unchanged} unchanged`);
  if (parts.length === 0) return "No resources";
  return plan.same ? `No changes: ${parts.join(", ")}` : parts.join(", ");
}
