/** The pages: path segment, component and position in the navigation. */

import { Audit } from "../audit/audit.js";
import { EditPage, NewPage } from "../editor/pages.js";
import { Inbox } from "../inbox/inbox.js";
import { StackPage } from "../stack/stack.js";
import { Stacks } from "../stacks/stacks.js";
import { Subscriptions } from "../subscriptions/subscriptions.js";
import { Usage } from "../usage/usage.js";

/**
 * shows: the component; `rest` is the path after the page's name. key: pressed after `g`. wide:
 * uses the full window width.
 * @typedef {{name: string, title: string, shows: (props: {project: string, rest: string[]}) => any,
 *   key?: string, wide?: boolean}} Page
 */

/** Pages in the navigation, in order. @type {Page[]} */
export const NAVIGATION = [
  { name: "inbox", title: "Inbox", shows: Inbox, key: "i" },
  { name: "stacks", title: "Stacks", shows: Stacks, key: "s" },
  { name: "subscriptions", title: "Subscriptions", shows: Subscriptions, key: "n" },
  { name: "audit", title: "Audit", shows: Audit, key: "a" },
  { name: "usage", title: "Usage", shows: Usage, key: "u" },
];

/** @type {Page[]} */
const OTHERS = [
  { name: "stack", title: "Stack", shows: StackPage, wide: true },
  { name: "edit", title: "Edit", shows: EditPage, wide: true },
  { name: "new", title: "New stack", shows: NewPage, wide: true },
];

/** @param {string} name */
export function pageByName(name) {
  return [...NAVIGATION, ...OTHERS].find((one) => one.name === name);
}
