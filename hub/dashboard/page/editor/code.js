/** A text with line numbers, colours, and what is wrong at its lines. Tab leaves it. */

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

const COLOURS = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--code-key)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-text)" },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword, tags.atom], color: "var(--code-value)" },
  { tag: [tags.comment, tags.lineComment], color: "var(--muted)", fontStyle: "italic" },
  { tag: [tags.labelName, tags.typeName, tags.meta], color: "var(--code-mark)" },
]);

/** What draws with images of its own is drawn otherwise: no image comes from anywhere. */
const LOOK = EditorView.theme({
  "&": { height: "100%" },
  ".cm-scroller": { fontFamily: "var(--code-font)", lineHeight: "1.5" },
  ".cm-lintRange": { backgroundImage: "none", paddingBottom: "0" },
  ".cm-lintRange-error": { textDecoration: "underline wavy var(--bad)" },
  ".cm-lintRange-active": { backgroundColor: "var(--bad-ground)" },
  ".cm-lint-marker": { width: "0.8em", height: "0.8em", borderRadius: "2px" },
  ".cm-lint-marker-error": { content: "normal", background: "var(--bad)" },
});

/**
 * What takes the place of several lines is put in by us: a browser that does it by itself may write
 * styles into the page, which it then refuses.
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
  // Ctrl-Enter is the page's.
  ...defaultKeymap.filter((one) => one.key !== "Mod-Enter"),
  ...historyKeymap,
  ...searchKeymap,
  ...lintKeymap,
]);

/**
 * name: of the text; each keeps its cursor and what can be undone. read: a text as it is now, which
 * may be newer than `text`, by which it is drawn anew. goto: where to put the cursor; a new object
 * goes there anew.
 * @param {{name: string, label: string, text: string, marks: Mark[], readonly: boolean,
 *   read: (name: string) => string,
 *   onWrite: (name: string, text: string) => void, goto: {from: number, to: number} | null}} props
 */
export function Code({ name, label, text, marks, readonly, read, onWrite, goto }) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const held = useRef(/** @type {ReturnType<typeof shownIn> | null} */ (null));
  const write = useRef(onWrite);
  write.current = onWrite;
  useEffect(() => {
    if (!place.current) return;
    held.current = shownIn(place.current, (which, said) => write.current(which, said));
    return () => held.current?.end();
  }, []);
  useEffect(
    () => held.current?.show(name, label, read(name), readonly),
    [name, label, text, readonly],
  );
  useEffect(() => held.current?.mark(marks), [name, marks]);
  useEffect(() => {
    if (goto) held.current?.go(goto);
  }, [goto]);
  return html`<div class="code-box" ref=${place}></div>`;
}

/** @param {HTMLElement} parent @param {(name: string, text: string) => void} written */
function shownIn(parent, written) {
  /** @type {Map<string, EditorState>} */
  const states = new Map();
  const changes = new Compartment();
  let name = "";
  /** Whether a change comes from here rather than from who types. */
  let ours = false;

  /** @param {string} label @param {boolean} readonly */
  function kind(label, readonly) {
    return changes.of([
      EditorState.readOnly.of(readonly),
      EditorView.contentAttributes.of({
        "aria-label": label,
        "aria-multiline": "true",
        ...(readonly ? { "aria-readonly": "true" } : {}),
      }),
    ]);
  }

  const usual = [
    EditorView.cspNonce.of(nonce),
    LOOK,
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
    syntaxHighlighting(COLOURS),
    KEYS,
    REPLACING,
    EditorView.lineWrapping,
    EditorView.updateListener.of((update) => {
      if (update.docChanged && !ours) written(name, update.state.doc.toString());
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
      const change = between(view.state.doc.toString(), text);
      if (!change) return;
      ours = true;
      view.dispatch({ changes: change });
      ours = false;
    },
    /** @param {Mark[]} marks */
    mark(marks) {
      const most = view.state.doc.length;
      const found = marks.map((one) => ({
        from: Math.min(one.from, most),
        to: Math.min(one.to, most),
        severity: /** @type {const} */ ("error"),
        message: one.message,
      }));
      view.dispatch(setDiagnostics(view.state, found));
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

/** The smallest change that makes one text of another; null: they are the same. @param {string} was @param {string} is */
function between(was, is) {
  if (was === is) return null;
  const least = Math.min(was.length, is.length);
  let from = 0;
  while (from < least && was[from] === is[from]) from++;
  let back = 0;
  while (back < least - from && was[was.length - 1 - back] === is[is.length - 1 - back]) back++;
  return { from, to: was.length - back, insert: is.slice(from, is.length - back) };
}
