// What was filled in is there again when its page comes back from a login: the session had ended meanwhile.

const KEPT = "okmq-typed";
const FILLED = "main form :is(input, select, textarea):not([type=hidden], [type=password], [type=file], [name=confirm])";
const isBox = (field) => field.type === "checkbox" || field.type === "radio";
const filled = (field) => (isBox(field) ? "checked" : "value");

/** By whom, on which page, in which fields: for nobody and nothing else. */
const place = (root, fields) => [root.querySelector(".who-name")?.title, location.pathname, ...fields.map((field) => field.name + (isBox(field) ? field.value : ""))].join("\n");

export function startTyped(root) {
  const fields = [...root.querySelectorAll(FILLED)];
  const kept = JSON.parse(sessionStorage.getItem(KEPT));
  sessionStorage.removeItem(KEPT);
  if (root.referrer.startsWith(`${location.origin}/login/`) && kept?.place === place(root, fields)) {
    const changed = fields.filter((field, at) => field[filled(field)] !== kept.values[at]);
    fields.forEach((field, at) => (field[filled(field)] = kept.values[at]));
    // Previews listen once everything is there.
    addEventListener("load", () => changed.forEach(({ form }) => form.dispatchEvent(new Event("input"))));
  }
  addEventListener("pagehide", () => {
    const values = fields.map((field) => field[filled(field)]);
    try {
      sessionStorage.setItem(KEPT, JSON.stringify({ place: place(root, fields), values }));
    } catch {} // more than a browser keeps
  });
}
