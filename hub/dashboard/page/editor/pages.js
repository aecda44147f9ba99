/** The Edit and New stack pages; the editor module is loaded on first use. */

import { ProblemBox } from "../parts/problem.js";
import { html, useEffect, useSignal } from "../vendor/preact.js";

/** @typedef {{project: string, rest: string[]}} Props */

/** @param {Props} props */
export function EditPage(props) {
  return html`<${LazyPage} ...${props} which="EditStack" title="Edit" />`;
}

/** @param {Props} props */
export function NewPage(props) {
  return html`<${LazyPage} ...${props} which="NewStack" title="New stack" />`;
}

/** @param {Props & {which: "EditStack" | "NewStack", title: string}} props */
function LazyPage({ which, title, project, rest }) {
  const editor = useSignal(/** @type {typeof import("./editor.js") | null} */ (null));
  const failure = useSignal(/** @type {unknown} */ (null));
  useEffect(() => {
    import("./editor.js").then(
      (found) => {
        editor.value = found;
      },
      (error) => {
        failure.value = error;
      },
    );
  }, []);
  if (editor.value) return html`<${editor.value[which]} project=${project} rest=${rest} />`;
  return html`<h1>${title}</h1>
    <${ProblemBox} error=${failure.value} />`;
}
