// Redraws the figure of alive.py for another frames_per_batch. Tests compare the two.
// Class names stand whole, or lean.py would drop their rules.
"use strict";
{
  const figure = document.querySelector('.alive[data-kind="recut"]');
  const { lengths, running } = JSON.parse(figure.dataset.steps);
  const slider = figure.querySelector('[name="size"]');
  let total = 0;
  const episodes = lengths.map((length) => [total, (total += length)]);
  const percent = (steps) => `${(100 * steps) / total}%`;
  const box = (name, first, stop, y, height) =>
    `<rect class="${name}" x="${percent(first)}" y="${y}" ` +
    `width="${percent(stop - first)}" height="${height}"/>`;
  const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

  const redraw = () => {
    const size = Number(slider.value);
    const batches = Math.floor(total / size);
    const stop = batches * size;
    let marks = "";
    for (let end = size; end <= stop; end += size) {
      const torn =
        (running && end === total) ||
        episodes.some(([first, last]) => first < end && end < last);
      marks += box("alive-bar", end - size, end, 2, 7);
      marks += `<use href="${torn ? "#alive-torn" : "#alive-clean"}" x="${percent(end)}"/>`;
    }
    if (stop < total) marks += box("alive-veil", stop, total, 16, 44);
    figure.querySelector(".alive-marks").innerHTML = marks;

    const touched = episodes.filter(([first]) => first < stop);
    const whole = touched.filter(
      ([first, last]) =>
        last <= stop &&
        Math.floor(first / size) === Math.floor((last - 1) / size) &&
        !(running && last === total),
    ).length;
    const rest = total - stop;
    figure.querySelector(".alive-says").textContent =
      `${batches} ${batches === 1 ? "batch" : "batches"} of ${count(size, "step")}: ` +
      `${count(whole, "whole episode")}, ${touched.length - whole} torn.` +
      (rest ? ` ${count(rest, "step")} left for the next batch.` : "");
  };

  slider.addEventListener("input", redraw);
  figure.querySelector(".alive-controls").hidden = false;
}
