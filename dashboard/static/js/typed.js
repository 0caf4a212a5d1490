// What was typed is there again when its page comes back from a login: the session had ended meanwhile.

const KEPT = "okmq-typed";
const TYPED = "main :is(textarea, input[type=text], input[type=number]):not([name=confirm])";

/** Who typed what on which page; for nobody else, and for no other page. */
const typed = (root, fields) => ({
  who: root.querySelector(".who-name")?.title,
  path: location.pathname,
  values: fields.map((field) => field.value),
});

export function startTyped(root) {
  const fields = [...root.querySelectorAll(TYPED)];
  const kept = JSON.parse(sessionStorage.getItem(KEPT));
  sessionStorage.removeItem(KEPT);
  const now = typed(root, fields);
  const isBack = root.referrer.startsWith(`${location.origin}/login/`);
  if (isBack && kept?.who === now.who && kept.path === now.path && kept.values.length === fields.length) {
    const changed = fields.filter((field, place) => field.value !== kept.values[place]);
    fields.forEach((field, place) => (field.value = kept.values[place]));
    // Previews listen once everything is there.
    addEventListener("load", () => changed.forEach((field) => field.dispatchEvent(new Event("input", { bubbles: true }))));
  }
  addEventListener("pagehide", () => {
    try {
      sessionStorage.setItem(KEPT, JSON.stringify(typed(root, fields)));
    } catch {} // more than a browser keeps
  });
}
