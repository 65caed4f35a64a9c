// Moves the cart and the cursor of alive.py's figure along the recorded steps.
"use strict";
{
  const figure = document.querySelector(".alive:has(.alive-scene)");
  const { cart } = JSON.parse(figure.dataset.steps);
  const slider = figure.querySelector('[name="step"]');
  const button = figure.querySelector("button");
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const pace = 20; // ms a step: CartPole's own
  let timer = 0;

  const show = () => {
    const step = Number(slider.value);
    const [x, angle] = cart[step];
    const degrees = ((angle * 180) / Math.PI).toFixed(1);
    figure.querySelector(".alive-cart").setAttribute("transform", `translate(${x})`);
    figure
      .querySelector(".alive-pole")
      .setAttribute("transform", `rotate(${degrees} 0 -.06)`);
    figure
      .querySelector(".alive-cursor")
      .setAttribute("x", `${(100 * (step + 0.5)) / cart.length}%`);
  };

  const pause = () => {
    cancelAnimationFrame(timer);
    timer = 0;
    button.textContent = "Play";
  };

  const play = () => {
    const last = cart.length - 1;
    const from = Number(slider.value) < last ? Number(slider.value) : 0;
    const begin = performance.now();
    const frame = (now) => {
      slider.value = Math.min(last, from + Math.floor(Math.max(0, now - begin) / pace));
      show();
      if (Number(slider.value) < last) timer = requestAnimationFrame(frame);
      else pause();
    };
    button.textContent = "Pause";
    timer = requestAnimationFrame(frame);
  };

  button.addEventListener("click", () => (timer ? pause() : play()));
  slider.addEventListener("input", () => {
    pause();
    show();
  });
  const allow = () => {
    pause();
    button.hidden = still.matches;
  };
  still.addEventListener("change", allow);
  allow();
}
