// What scripts say to people, in the language of the page: dashboard/words.py lists the words and brings them.

const found = globalThis.document?.getElementById("words");
const words = found ? JSON.parse(found.textContent) : {};

/** A word or a sentence; `%(name)s` in it becomes `values.name`. */
export function say(word, values = {}, known = words) {
  return (known[word] ?? word).replace(/%\((\w+)\)s/g, (_, name) => values[name]);
}
