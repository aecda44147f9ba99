/** A preview in display order. Pure. */

/**
 * @typedef {{resource_name: string, path: string, resource_type: string,
 *   changes: Record<string, {from?: unknown, to?: unknown}>, unknown: string[],
 *   certain: boolean, denied: string | null}} Planned
 * @typedef {{path: string, resource_name: string | null, point: string, mode: string,
 *   operation: string, certain: boolean, timeout_seconds: number | null, on_timeout: string,
 *   answer_by: string[], approvals: number}} Stop
 * @typedef {{resource_changes: Record<string, Planned[]>, stops: Stop[], stale: string[],
 *   plan_digest: string}} Preview
 * @typedef {{kind: string, title: string, resources: Planned[]}} Group
 * @typedef {{groups: Group[], unchanged: number, stops: Stop[], stale: string[], digest: string,
 *   destroys: string[], same: boolean}} Plan
 */

/** Kinds of changes and their titles, most destructive first. @type {[string, string][]} */
const KINDS = [
  ["deleted", "Deleted"],
  ["replaced", "Replaced"],
  ["updated", "Updated"],
  ["added", "Added"],
];
/** Kinds that destroy a physical resource. */
const DESTROYS = ["deleted", "replaced"];

/** @param {Preview} preview @returns {Plan} */
export function planned(preview) {
  const by = preview.resource_changes;
  const groups = KINDS.map(([kind, title]) => ({
    kind,
    title,
    resources: [...(by[kind] ?? [])].sort((a, b) => compared(a.path, b.path)),
  })).filter((one) => one.resources.length > 0);
  const destroys = groups
    .filter((one) => DESTROYS.includes(one.kind))
    .flatMap((one) => one.resources.map((resource) => resource.path));
  return {
    groups,
    unchanged: (by.unchanged ?? []).length,
    stops: preview.stops,
    stale: preview.stale,
    digest: preview.plan_digest,
    destroys,
    same: groups.length === 0,
  };
}

/**
 * Compares paths so that nested resources follow their parent.
 * @param {string} one @param {string} other
 */
function compared(one, other) {
  const a = one.split("/");
  const b = other.split("/");
  for (const [index, part] of a.entries()) {
    const against = b[index];
    if (against === undefined) return 1;
    if (part !== against) return part < against ? -1 : 1;
  }
  return a.length - b.length;
}

/** Nesting depth. @param {Planned} one */
export function depth(one) {
  return one.path.split("/").length - 1;
}

/**
 * What is uncertain about a planned resource; "" if nothing is.
 * @param {string} kind @param {Planned} one
 */
export function open(kind, one) {
  if (one.denied) return one.denied;
  if (one.certain) return "";
  if (kind === "updated")
    return "may be replaced or left unchanged, depending on values not known yet";
  if (kind === "deleted" || kind === "replaced")
    return "may not be needed, depending on values not known yet";
  return "depends on values not known yet";
}

/**
 * Property changes, including unknown values, without those that stay null.
 * @param {Planned} one @returns {Record<string, {from?: unknown, to?: unknown}>}
 */
export function changesOf(one) {
  const entries = Object.entries(one.changes).filter(
    ([, { from, to }]) => (from ?? to ?? null) !== null,
  );
  /** @type {Record<string, {from?: unknown, to?: unknown}>} */
  const found = Object.fromEntries(entries);
  for (const name of one.unknown) found[name] ??= {};
  return found;
}

/** A summary: "1 deleted, 2 added". @param {Plan} plan */
export function summary(plan) {
  const parts = plan.groups.map((one) => `${one.resources.length} ${one.title.toLowerCase()}`);
  if (plan.unchanged > 0) parts.push(`${plan.unchanged} unchanged`);
  if (parts.length === 0) return "No resources";
  return plan.same ? `No changes: ${parts.join(", ")}` : parts.join(", ");
}
