// Message rows open in place: the link's own page is put under the row, and taken away again.

export function startMessages(root) {
  root.addEventListener("click", async (event) => {
    const opener = event.target.closest?.("[data-open]");
    if (!opener || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    const row = opener.closest("tr");
    const open = opener.getAttribute("aria-expanded") === "true";
    opener.setAttribute("aria-expanded", String(!open));
    if (open) {
      row.nextElementSibling.remove();
      return;
    }
    const answer = await fetch(opener.href, { headers: { "HX-Request": "true" } });
    if (!answer.ok) {
      location.assign(opener.href);
      return;
    }
    const detail = document.createElement("tr");
    detail.className = "detail-row";
    const cell = document.createElement("td");
    cell.colSpan = row.children.length;
    cell.innerHTML = await answer.text(); // made and escaped by our own server, as on its own page
    detail.append(cell);
    row.after(detail);
    root.dispatchEvent(new CustomEvent("okmq:shown"));
  });
}
