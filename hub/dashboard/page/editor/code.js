/** The code editor: line numbers, syntax colors and error markers. Tab leaves it. */

import {
  bracketMatching,
  Compartment,
  defaultKeymap,
  drawSelection,
  EditorState,
  EditorView,
  foldGutter,
  HighlightStyle,
  highlightActiveLine,
  highlightActiveLineGutter,
  history,
  historyKeymap,
  indentOnInput,
  keymap,
  lineNumbers,
  lintGutter,
  lintKeymap,
  search,
  searchKeymap,
  setDiagnostics,
  syntaxHighlighting,
  tags,
  yaml,
} from "../vendor/codemirror.js";
import { html, useEffect, useRef } from "../vendor/preact.js";

/** @typedef {{from: number, to: number, message: string}} Mark */

const nonce = document.querySelector('meta[name="headgate-nonce"]')?.getAttribute("content") ?? "";

const COLORS = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--code-key)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-text)" },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword, tags.atom], color: "var(--code-value)" },
  { tag: [tags.comment, tags.lineComment], color: "var(--muted)", fontStyle: "italic" },
  { tag: [tags.labelName, tags.typeName, tags.meta], color: "var(--code-mark)" },
]);

/** Replaces CodeMirror's background images, which the content security policy forbids. */
const THEME = EditorView.theme({
  "&": { height: "100%" },
  ".cm-scroller": { fontFamily: "var(--code-font)", lineHeight: "1.5" },
  ".cm-lintRange": { backgroundImage: "none", paddingBottom: "0" },
  ".cm-lintRange-error": { textDecoration: "underline wavy var(--bad)" },
  ".cm-lintRange-active": { backgroundColor: "var(--bad-ground)" },
  ".cm-lint-marker": { width: "0.8em", height: "0.8em", borderRadius: "2px" },
  ".cm-lint-marker-error": { content: "normal", background: "var(--bad)" },
});

/**
 * Replaces a selection of several lines ourselves: the browser's own replacement may insert inline
 * styles, which the content security policy forbids.
 */
const REPLACING = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { data, inputType } = event;
    if (inputType !== "insertText" || !data || view.composing || view.state.readOnly) return false;
    if (view.state.selection.main.empty && !data.includes("\n")) return false;
    event.preventDefault();
    view.dispatch(view.state.replaceSelection(data), {
      userEvent: "input.type",
      scrollIntoView: true,
    });
    return true;
  },
});

const KEYS = keymap.of([
  // Ctrl-Enter applies the plan.
  ...defaultKeymap.filter((item) => item.key !== "Mod-Enter"),
  ...historyKeymap,
  ...searchKeymap,
  ...lintKeymap,
]);

/**
 * name: of the text; each text keeps its cursor and undo history. read: returns the current text,
 * which may be newer than `text`. goto: where to put the cursor; each new object moves it.
 * @param {{name: string, label: string, text: string, marks: Mark[], readonly: boolean,
 *   read: (name: string) => string,
 *   onWrite: (name: string, text: string) => void, goto: {from: number, to: number} | null}} props
 */
export function Code({ name, label, text, marks, readonly, read, onWrite, goto }) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const editor = useRef(/** @type {ReturnType<typeof createEditor> | null} */ (null));
  const write = useRef(onWrite);
  write.current = onWrite;
  useEffect(() => {
    if (!place.current) return;
    editor.current = createEditor(place.current, (which, content) => write.current(which, content));
    return () => editor.current?.end();
  }, []);
  useEffect(
    () => editor.current?.show(name, label, read(name), readonly),
    [name, label, text, readonly],
  );
  useEffect(() => editor.current?.mark(marks), [name, marks]);
  useEffect(() => {
    if (goto) editor.current?.go(goto);
  }, [goto]);
  return html`<div class="code-box" ref=${place}></div>`;
}

/** @param {HTMLElement} parent @param {(name: string, text: string) => void} written */
function createEditor(parent, written) {
  /** @type {Map<string, EditorState>} */
  const states = new Map();
  const changes = new Compartment();
  let name = "";
  /** Whether the current change is not user input. */
  let programmatic = false;

  /** @param {string} label @param {boolean} readonly */
  function kind(label, readonly) {
    return changes.of([
      EditorState.readOnly.of(readonly),
      EditorView.contentAttributes.of({
        // The keyboard reaches the scrolled text; browsers differ for editable text by itself.
        tabindex: "0",
        "aria-label": label,
        "aria-multiline": "true",
        ...(readonly ? { "aria-readonly": "true" } : {}),
      }),
    ]);
  }

  const usual = [
    EditorView.cspNonce.of(nonce),
    THEME,
    lineNumbers(),
    foldGutter(),
    lintGutter(),
    highlightActiveLine(),
    highlightActiveLineGutter(),
    drawSelection(),
    bracketMatching(),
    indentOnInput(),
    history(),
    search({ top: true }),
    yaml(),
    syntaxHighlighting(COLORS),
    KEYS,
    REPLACING,
    EditorView.lineWrapping,
    EditorView.updateListener.of((update) => {
      if (update.docChanged && !programmatic) written(name, update.state.doc.toString());
    }),
  ];
  const view = new EditorView({ parent, state: EditorState.create({ extensions: usual }) });

  return {
    /** @param {string} which @param {string} label @param {string} text @param {boolean} readonly */
    show(which, label, text, readonly) {
      if (which !== name) {
        if (name) states.set(name, view.state);
        name = which;
        const kept = states.get(which);
        const begun = { doc: text, extensions: [...usual, kind(label, readonly)] };
        view.setState(kept ?? EditorState.create(begun));
      }
      const change = minimalEdit(view.state.doc.toString(), text);
      if (!change) return;
      programmatic = true;
      view.dispatch({ changes: change });
      programmatic = false;
    },
    /** @param {Mark[]} marks */
    mark(marks) {
      const most = view.state.doc.length;
      const result = marks.map((mark) => ({
        from: Math.min(mark.from, most),
        to: Math.min(mark.to, most),
        severity: /** @type {const} */ ("error"),
        message: mark.message,
      }));
      view.dispatch(setDiagnostics(view.state, result));
    },
    /** @param {{from: number, to: number}} range */
    go({ from, to }) {
      const most = view.state.doc.length;
      const selection = { anchor: Math.min(from, most), head: Math.min(to, most) };
      view.dispatch({
        selection,
        effects: EditorView.scrollIntoView(selection.anchor, { y: "center" }),
      });
      view.focus();
    },
    end: () => view.destroy(),
  };
}

/**
 * The smallest replacement that turns one text into another; null if they are equal.
 * @param {string} before @param {string} after
 */
function minimalEdit(before, after) {
  if (before === after) return null;
  const shorter = Math.min(before.length, after.length);
  let from = 0;
  while (from < shorter && before[from] === after[from]) from++;
  let back = 0;
  while (
    back < shorter - from &&
    before[before.length - 1 - back] === after[after.length - 1 - back]
  )
    back++;
  return { from, to: before.length - back, insert: after.slice(from, after.length - back) };
}
