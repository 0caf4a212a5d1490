/** A part of a page, made and escaped by our own server as pages are; null where there is none to be had. */
export async function partOf(address) {
  const answer = await fetch(address, { headers: { "HX-Request": "true" } }).catch(() => null);
  if (!answer?.ok) return null;
  const part = document.createElement("template");
  part.innerHTML = await answer.text();
  return part.content;
}
