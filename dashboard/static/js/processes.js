// The list of processes, as templates/dashboard/parts/processes.html paints it first.

export function paintProcesses(root, event) {
  for (const list of root.querySelectorAll("[data-processes]")) {
    const template = list.querySelector("template");
    for (const row of list.querySelectorAll("li")) row.remove();
    for (const { name, state, sentence, restarts } of event.processes) {
      const row = template.content.firstElementChild.cloneNode(true);
      row.querySelector(".dot").dataset.state = state;
      row.querySelector("[data-name]").textContent = name;
      row.querySelector("[data-sentence]").textContent = sentence;
      row.querySelector("[data-state-word]").textContent = restarts ? `${state}, ${restarts} ×` : state;
      list.append(row);
    }
  }
}
