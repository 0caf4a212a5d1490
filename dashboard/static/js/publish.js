// Many messages go part by part: whole lines, some hundred kilobytes at a time, read from the file as they are sent. Each
// answer says how far it came, and is shown; the first line that is wrong ends it.

const PART_BYTES = 512 * 1024;
const LINE_FEED = 10;

/** The parts of a stream of bytes, each of whole lines; a line that is longer than a part is one of its own. */
export async function* partsOf(stream, partBytes = PART_BYTES) {
  let held = new Uint8Array();
  const reader = stream.getReader();
  for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
    const joined = new Uint8Array(held.length + value.length);
    joined.set(held);
    joined.set(value, held.length);
    held = joined;
    while (held.length >= partBytes) {
      const within = held.lastIndexOf(LINE_FEED, partBytes - 1);
      const end = within < 0 ? held.indexOf(LINE_FEED, partBytes) : within;
      if (end < 0) break;
      yield held.slice(0, end + 1);
      held = held.slice(end + 1);
    }
  }
  if (held.length) yield held;
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
    sent.set("file", new Blob([part]), "lines");
    for (const name of ["line", "stored", "known", "first", "last"]) sent.set(`so_far_${name}`, told()[name] ?? "");
    const answer = await fetch(location.pathname, { method: "POST", body: sent, headers: { "HX-Request": "true" } });
    if (!answer.ok && answer.status !== 422) throw new Error(answer.status);
    outcome.innerHTML = await answer.text(); // made and escaped by our own server, as on every page
    return answer.ok;
  }

  async function sendAll(source) {
    outcome.innerHTML = "<div data-told></div>";
    let sent = 0;
    let isWell = true;
    for await (const part of partsOf(source.stream())) {
      isWell = await sendPart(part);
      sent += part.length;
      progress.value = sent / source.size;
      if (!isWell || stopped) break;
    }
    return isWell && sent >= source.size;
  }

  function prepare(isWhole) {
    begin.value = isWhole ? 1 : (told().line ?? begin.value);
    if (told().ids) ids.value = told().ids;
    if (!isWhole || keep.checked) return;
    lines.value = file.value = "";
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
