/* The Voices tab: ticked voices, and the stream of a voice that is being tried. */
(() => {
  "use strict";
  const { $, $$, pauseAll, pausers } = window.vx;

  const ticked = new Set();
  window.vx.tickedVoices = () => [...ticked];
  document.addEventListener("change", (event) => {
    const box = event.target;
    if (box.matches?.(".vx-voicetick")) ticked[box.checked ? "add" : "delete"](box.value);
  });

  /* The trial plays by itself while it is made; whatever else is played stops it, and it stops what plays. */
  const stream = () => $("#vx-try-live audio");
  pausers.push(() => stream()?.pause());
  document.addEventListener("click", (event) => {
    if (event.target.closest("#vx-try")) pauseAll();
    else if (event.target.closest("#vx-try-stop")) stream()?.pause();
  });

  let shown = "";
  function follow() {
    for (const box of $$(".vx-voicetick")) box.checked = ticked.has(box.value);
    for (const gone of $$("#vx-voices-notice [data-untick]")) for (const id of gone.dataset.untick.split(",")) ticked.delete(id);
    const open = $("#vx-voice-detail [data-do=use]")?.dataset.voice ?? "";
    for (const card of $$("#vx-voices .vx-voice")) card.classList.toggle("is-open", card.dataset.voice === open);
    if (open !== shown) {
      shown = open;
      if (open && innerWidth <= 760) $("#vx-voice-detail").scrollIntoView({ block: "start", behavior: "smooth" });
    }
  }
  document.addEventListener("DOMContentLoaded", () => {
    new MutationObserver(follow).observe(document.body, { childList: true, subtree: true });
  });
})();
