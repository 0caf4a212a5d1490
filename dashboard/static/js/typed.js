// What was filled in, and no more, is there again when its page comes back from a login: the session had ended meanwhile.

const isBox = ({ type }) => type === "checkbox" || type === "radio";
const filled = (field) => (isBox(field) ? "checked" : "value");

export function startTyped(root) {
  const fields = [...root.querySelectorAll("main form :is(input, select, textarea):not([type=hidden], [type=password], [type=file], [name=confirm])")];
  const values = () => fields.map((field) => field[filled(field)]);
  const served = values();
  // By whom, on which page, in which fields: for nobody and nothing else.
  const place = [root.querySelector(".who-name")?.title, location.pathname, ...fields.map((field) => field.name + (isBox(field) ? field.value : ""))].join("\n");
  const kept = JSON.parse(sessionStorage.typed ?? null);
  delete sessionStorage.typed;
  const typed = kept?.place === place ? kept.typed : {};
  for (const at in root.referrer.startsWith(`${location.origin}/login/`) && typed) {
    fields[at][filled(fields[at])] = typed[at];
    // Previews listen once everything is there.
    addEventListener("load", () => fields[at].form.dispatchEvent(new Event("input")));
  }
  addEventListener("pagehide", () => {
    values().forEach((value, at) => {
      if (at in typed || value !== served[at]) typed[at] = value;
    });
    try {
      sessionStorage.typed = JSON.stringify({ place, typed });
    } catch {} // more than a browser keeps
  });
}
