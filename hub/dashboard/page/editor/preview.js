/**
 * Validates the draft on the server while the user types. A newer request aborts the one before.
 */

import { call, isAborted, Problem } from "../api/client.js";
import { connection } from "../api/live.js";
import { state as signedIn } from "../api/session.js";
import { computed, effect, signal } from "../vendor/preact.js";
import { requestBody } from "./draft.js";
import { locateWarning, positionOf, syntaxErrors } from "./locations.js";
import { planOf } from "./plan.js";

/**
 * @typedef {import("./plan.js").Plan} Plan
 * @typedef {import("./locations.js").Spot} Spot
 * @typedef {import("./locations.js").Finding} Finding
 *
 * problem: why there is no plan, if not because of findings. warnings: about the plan's request.
 * @typedef {{of: unknown, plan: Plan | null, findings: {finding: Finding, spot: Spot}[],
 *   warnings: {finding: Finding, spot: Spot}[], problem: unknown}} Answer
 */

/** Pause in typing before a request, in milliseconds. */
const PAUSE = 250;
/** Delay after an event of the stack, in milliseconds. */
const LATER = 1000;

/**
 * path: of the preview request. allowed: whether the user may update the stack, which a preview
 * requires. Call `stop` at the end.
 * @param {{project: string, method: string, path: string, draft: import("./draft.js").Draft,
 *   isNew: boolean, allowed: boolean}} what
 */
export function livePreview({ project, method, path, draft, isNew, allowed }) {
  const body = computed(() =>
    requestBody(
      { name: draft.name.value, texts: draft.texts.value, options: draft.options.value },
      isNew,
    ),
  );
  /** The latest response. @type {import("../vendor/preact.js").Signal<Answer>} */
  const answer = signal({ of: null, plan: null, findings: [], warnings: [], problem: null });
  const isCurrent = computed(() => answer.value.of === body.value);
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  /** @type {AbortController | null} */
  let pending = null;

  async function fetchPlan() {
    timer = undefined;
    pending?.abort();
    const request = new AbortController();
    pending = request;
    const requestBody = body.value;
    const texts = draft.texts.value;
    try {
      const response = await call(method, project, path, requestBody, { signal: request.signal });
      if (request.signal.aborted) return;
      const preview = isNew ? response.stack : response;
      const warnings = locateWarnings(preview.warnings, texts);
      answer.value = {
        of: requestBody,
        plan: planOf(preview),
        findings: [],
        warnings,
        problem: null,
      };
    } catch (error) {
      if (isAborted(error) || request.signal.aborted) return;
      answer.value = { of: requestBody, plan: null, ...problemsOf(error, texts) };
    }
  }

  /** @param {number} pause */
  function schedule(pause) {
    if (!allowed) return;
    clearTimeout(timer);
    timer = setTimeout(fetchPlan, pause);
  }

  let first = true;
  const ends = [
    effect(() => {
      body.value;
      pending?.abort();
      schedule(first ? 0 : PAUSE);
      first = false;
    }),
    effect(() => {
      const back = signedIn.value === "in" && connection.value.state === "live";
      if (back && isOver(answer.peek())) schedule(0);
    }),
  ];
  return {
    answer,
    body,
    isCurrent,
    /** Syntax errors are shown before the server responds. */
    findings: computed(() => {
      if (isCurrent.value) return answer.value.findings;
      return syntaxErrors(draft.texts.value);
    }),
    warnings: computed(() => (isCurrent.value ? answer.value.warnings : [])),
    again: () => schedule(0),
    later: () => {
      if (allowed) timer ??= setTimeout(fetchPlan, LATER);
    },
    stop() {
      for (const end of ends) end();
      clearTimeout(timer);
      pending?.abort();
    },
  };
}

/** Whether the session ended or the server was unreachable. @param {Answer} answer */
function isOver(answer) {
  return answer.problem instanceof Problem && [0, 401].includes(answer.problem.status);
}

/**
 * @param {import("./locations.js").Warning[]} warnings @param {import("./locations.js").Texts} texts
 */
function locateWarnings(warnings, texts) {
  return warnings.map((warning) => locateWarning(warning, texts));
}

/** @param {unknown} error @param {import("./locations.js").Texts} texts */
function problemsOf(error, texts) {
  const sent = error instanceof Problem ? error.details.warnings : undefined;
  const warnings = locateWarnings(sent ?? [], texts);
  if (error instanceof Problem && error.type === "StackExists") {
    const finding = { place: "stack_name", reason: error.message };
    const findings = [{ finding, spot: positionOf(finding, texts) }];
    return { findings, warnings, problem: null };
  }
  if (!(error instanceof Problem) || error.status !== 400 || error.findings.length === 0)
    return { findings: [], warnings, problem: error };
  const findings = error.findings.map((finding) => ({ finding, spot: positionOf(finding, texts) }));
  return { findings, warnings, problem: null };
}
