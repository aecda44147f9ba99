/**
 * What would come of what is being written: asked of the server as one types. The last question
 * wins; the one before is given up.
 */

import { call, isAborted, Problem } from "../api/client.js";
import { connection } from "../api/live.js";
import { state as signedIn } from "../api/session.js";
import { computed, effect, signal } from "../vendor/preact.js";
import { requested } from "./draft.js";
import { faultsIn, spotOf } from "./places.js";
import { planned } from "./plan.js";

/**
 * @typedef {import("./plan.js").Plan} Plan
 * @typedef {import("./places.js").Spot} Spot
 * @typedef {import("./places.js").Finding} Finding
 *
 * problem: why there is no plan, other than by findings.
 * @typedef {{of: unknown, plan: Plan | null, findings: {finding: Finding, spot: Spot}[],
 *   problem: unknown}} Answer
 */

/** How long one pauses in typing before it is asked, in milliseconds. */
const PAUSE = 250;
/** The stack itself goes on: how long until it is asked again. */
const LATER = 1000;

/**
 * path: where it is asked. Call `stop` at the end.
 * @param {{project: string, method: string, path: string, draft: import("./draft.js").Draft,
 *   isNew: boolean}} what
 */
export function checking({ project, method, path, draft, isNew }) {
  const body = computed(() =>
    requested(
      { name: draft.name.value, texts: draft.texts.value, options: draft.options.value },
      isNew,
    ),
  );
  /** The newest that was answered. @type {import("../vendor/preact.js").Signal<Answer>} */
  const answer = signal({ of: null, plan: null, findings: [], problem: null });
  const isCurrent = computed(() => answer.value.of === body.value);
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  /** @type {AbortController | null} */
  let asking = null;

  async function ask() {
    timer = undefined;
    asking?.abort();
    asking = new AbortController();
    const { signal: given } = asking;
    const of = body.value;
    const texts = draft.texts.value;
    try {
      const said = await call(method, project, path, of, { signal: given });
      if (given.aborted) return;
      const preview = isNew ? said.stack : said;
      answer.value = { of, plan: planned(preview), findings: [], problem: null };
    } catch (error) {
      if (isAborted(error) || given.aborted) return;
      answer.value = { of, plan: null, ...told(error, texts) };
    }
  }

  /** @param {number} pause */
  function soon(pause) {
    clearTimeout(timer);
    timer = setTimeout(ask, pause);
  }

  let first = true;
  const ends = [
    effect(() => {
      body.value;
      asking?.abort();
      soon(first ? 0 : PAUSE);
      first = false;
    }),
    effect(() => {
      const back = signedIn.value === "in" && connection.value.state === "live";
      if (back && isOver(answer.peek())) soon(0);
    }),
  ];
  return {
    answer,
    body,
    isCurrent,
    /** What cannot be read is known before it is answered. */
    findings: computed(() => {
      if (isCurrent.value) return answer.value.findings;
      return faultsIn(draft.texts.value);
    }),
    again: () => soon(0),
    later: () => {
      timer ??= setTimeout(ask, LATER);
    },
    stop() {
      for (const end of ends) end();
      clearTimeout(timer);
      asking?.abort();
    },
  };
}

/** The session ended, or the server was not there. @param {Answer} answer */
function isOver(answer) {
  return answer.problem instanceof Problem && [0, 401].includes(answer.problem.status);
}

/** @param {unknown} error @param {import("./places.js").Texts} texts */
function told(error, texts) {
  if (error instanceof Problem && error.type === "StackExists") {
    const finding = { place: "stack_name", reason: error.message };
    return { findings: [{ finding, spot: spotOf(finding, texts) }], problem: null };
  }
  if (!(error instanceof Problem) || error.status !== 400 || error.findings.length === 0)
    return { findings: [], problem: error };
  const findings = error.findings.map((finding) => ({ finding, spot: spotOf(finding, texts) }));
  return { findings, problem: null };
}
