/** The text of server-sent events, taken apart. Pure. */

/**
 * @typedef {{id: string, data: string}} Message
 */

/**
 * Put a piece behind what was left of the pieces before. A message ends with an empty line.
 * @param {string} left
 * @param {string} piece
 * @returns {{messages: Message[], left: string}}
 */
export function taken(left, piece) {
  const parts = (left + piece).split("\n\n");
  const rest = parts.pop() ?? "";
  const messages = parts.map(message).filter((one) => one.data !== "");
  return { messages, left: rest };
}

/** @param {string} text @returns {Message} */
function message(text) {
  const found = { id: "", data: "" };
  for (const line of text.split("\n")) {
    if (line.startsWith("id: ")) found.id = line.slice(4);
    if (line.startsWith("data: ")) found.data += line.slice(6);
  }
  return found;
}
