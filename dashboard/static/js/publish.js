// Many messages go part by part, read from the file as they are sent. Each answer says how far it came, and is shown; the
// first line that is wrong ends it.

const PART_BYTES = 512 * 1024;
const LINE_FEED = 10;

/** Whole lines; one that is longer than a part is one of its own. */
export async function* partsOf(file, partBytes = PART_BYTES) {
  for (let at = 0, tried = partBytes; at < file.size; ) {
    const bytes = new Uint8Array(await file.slice(at, at + tried).arrayBuffer());
    let end = tried > partBytes ? bytes.indexOf(LINE_FEED) : bytes.lastIndexOf(LINE_FEED);
    if (at + tried >= file.size && (end < 0 || tried === partBytes)) end = bytes.length - 1;
    tried = end < 0 ? tried * 2 : partBytes;
    if (end >= 0) yield file.slice(at, (at += end + 1));
  }
}

function start(form) {
  const [outcome, progress, send, stop] = ["[data-outcome]", "[data-progress]", "[data-send]", "[data-stop]"].map((each) => form.querySelector(each));
  const { lines, file, begin, ids, keep } = form.elements;
  const told = () => outcome.querySelector("[data-told]").dataset;
  let stopped = false;
  stop.addEventListener("click", () => (stopped = true));

  async function sendPart(part) {
    const sent = new FormData(form);
    sent.delete("lines");
    sent.set("file", part, "lines");
    for (const name of ["line", "stored", "known", "first", "last"]) sent.set(`so_far_${name}`, told()[name] ?? "");
    const answer = await fetch(location.pathname, { method: "POST", body: sent, headers: { "HX-Request": "true" } });
    if (!answer.ok) throw new Error(answer.status);
    outcome.innerHTML = await answer.text(); // as in parts.js
    return !("wrong" in told());
  }

  async function sendAll(source) {
    outcome.innerHTML = "<div data-told></div>";
    let sent = 0;
    let isWell = true;
    for await (const part of partsOf(source)) {
      isWell = await sendPart(part);
      sent += part.size;
      progress.value = sent / source.size;
      if (!isWell || stopped) break;
    }
    return isWell && sent >= source.size;
  }

  function prepare(isWhole) {
    begin.value = isWhole ? 1 : (told().line ?? begin.value);
    if (told().ids) ids.value = told().ids;
    if (isWhole && !keep.checked) lines.value = file.value = "";
  }

  form.addEventListener("submit", async (event) => {
    const source = file.files[0] ?? new Blob([lines.value]);
    if (!source.size) return; // the server says what is missing
    event.preventDefault();
    stopped = false;
    send.disabled = true;
    stop.hidden = progress.hidden = false;
    try {
      prepare(await sendAll(source));
    } catch {
      begin.value = told().line ?? begin.value; // the ids stay: what was stored unseen has them
      outcome.append(form.querySelector("[data-broken]").content.cloneNode(true));
    } finally {
      send.disabled = false;
      stop.hidden = progress.hidden = true;
    }
  });
}

if (typeof document !== "undefined") document.querySelectorAll("[data-publish-many]").forEach(start);
