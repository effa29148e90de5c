// Finds the data and the places for charts in the page, and makes the legends that switch curves.

const figures = JSON.parse(document.getElementById("data").textContent);

for (const figure of figures) Object.assign(figure, { hidden: new Set(), charts: [] });

for (const host of document.querySelectorAll(".chart")) {
  const [figure, panel] = host.dataset.place.split("-").map(Number);
  figures[figure].charts.push(new Chart(host, figures[figure], figures[figure].panels[panel]));
}

for (const legend of document.querySelectorAll(".legend")) {
  const figure = figures[legend.dataset.figure];
  figure.curves.forEach((curve, id) => {
    const button = html("button", { type: "button", "aria-pressed": "true" }, key(curve), curve.name);
    button.addEventListener("click", () => {
      const off = !figure.hidden.delete(id);
      if (off) figure.hidden.add(id);
      button.setAttribute("aria-pressed", String(!off));
      for (const chart of figure.charts) chart.draw();
    });
    legend.append(button);
  });
}
