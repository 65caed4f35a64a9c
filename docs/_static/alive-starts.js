// Redraws the figure of alive.py for another slice_len. Tests compare the two.
// Class names stand whole, or lean.py would drop their rules.
"use strict";
{
  const figure = document.querySelector('.alive[data-kind="starts"]');
  const { lengths } = JSON.parse(figure.dataset.steps);
  const slider = figure.querySelector('[name="size"]');
  const total = lengths.reduce((sum, length) => sum + length);
  const percent = (steps) => `${(100 * steps) / total}%`;
  const box = (name, first, stop, y, height) =>
    `<rect class="${name}" x="${percent(first)}" y="${y}" ` +
    `width="${percent(stop - first)}" height="${height}"/>`;
  const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

  const redraw = () => {
    const size = Number(slider.value);
    let marks = "";
    let stop = 0;
    let enough = 0;
    let starts = 0;
    let out = 0;
    for (const length of lengths) {
      const first = stop;
      stop += length;
      if (length < size) {
        out += length;
        marks += box("alive-veil", first, stop, 16, 44);
      } else {
        enough += 1;
        starts += length - size + 1;
        marks += box("alive-lit", first, stop - size + 1, 2, 9);
      }
    }
    figure.querySelector(".alive-marks").innerHTML = marks;
    figure.querySelector(".alive-says").textContent =
      `slice_len ${size}: ${count(starts, "legal start")}, in ${enough} of ` +
      `${lengths.length} ${lengths.length === 1 ? "trajectory" : "trajectories"}; ` +
      `${out} of ${count(total, "row")} can never be drawn.`;
  };

  slider.addEventListener("input", redraw);
  figure.querySelector(".alive-controls").hidden = false;
}
