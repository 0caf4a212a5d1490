// Parts of pages, made and escaped by our own server; where it does not answer, the page says so.

function answered(isSo, requestId) {
  const word = document.querySelector("[data-unanswered]");
  word.hidden = isSo;
  word.querySelector("code").textContent = requestId ?? "";
}

/** A part; null where it is refused, undefined where the server cannot answer now: what is shown stays. */
export async function partOf(address, headers = { "HX-Request": "true" }) {
  const answer = await fetch(address, { headers }).catch(() => undefined);
  answered(answer?.ok, answer?.headers.get("X-Request-ID"));
  if (!answer?.ok) return answer?.status < 500 ? null : undefined;
  const part = document.createElement("template");
  part.innerHTML = await answer.text();
  return part.content;
}

/** A form that was not answered asks again, and what it showed is not to be pressed meanwhile. */
export function watchParts(root) {
  let again = 0;
  for (const failed of ["htmx:sendError", "htmx:responseError"]) {
    root.addEventListener(failed, ({ detail: { elt, target, xhr } }) => {
      answered(false, xhr.getResponseHeader("X-Request-ID"));
      if (!elt.matches("form")) return;
      target.inert = true;
      clearTimeout(again);
      if (!xhr.status || xhr.status > 499) again = setTimeout(() => elt.dispatchEvent(new Event("input")), 3000);
    });
  }
  root.addEventListener("htmx:afterSwap", ({ detail: { target } }) => {
    target.inert = false;
    answered(true);
  });
  root.addEventListener("input", ({ target }) => {
    if (target.closest("[hx-target='#effect']")) root.querySelector("#effect").inert = true;
  });
}
