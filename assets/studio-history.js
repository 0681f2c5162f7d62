/* The History tab: ticked takes, stars that answer at once, the comparison of two takes, and downloads that the server has prepared. */
(() => {
  "use strict";
  const { $, $$, actions, announce, clock, drawers, load, position, schedule, seek, setIcon, setText, toggle } = window.vx;

  /* Ticks outlive pages, searches and rewritten lists. */
  const ticked = new Set();
  window.vx.ticked = () => [...ticked];
  function showTicks() {
    const boxes = $$(".vx-tick");
    for (const box of boxes) {
      box.checked = ticked.has(box.value);
      box.closest(".vx-lane")?.classList.toggle("is-ticked", box.checked);
    }
    const all = $(".vx-pick-page");
    if (all) {
      const on = boxes.filter((box) => box.checked).length;
      all.checked = on > 0 && on === boxes.length;
      all.indeterminate = on > 0 && on < boxes.length;
    }
    for (const selection of $$(".vx-selection")) {
      selection.hidden = ticked.size === 0;
      setText($(".vx-picked-count", selection), String(ticked.size));
      $("[data-do=compare]", selection).disabled = ticked.size !== 2;
    }
  }
  document.addEventListener("change", (event) => {
    const box = event.target;
    if (box.matches?.(".vx-tick")) ticked[box.checked ? "add" : "delete"](box.value);
    else if (box.matches?.(".vx-pick-page")) for (const other of $$(".vx-tick")) ticked[box.checked ? "add" : "delete"](other.value);
    else return;
    showTicks();
  });
  actions.unpick = () => { ticked.clear(); showTicks(); };

  /* Stars answer at once; the server hears of them by the same click. */
  function light(button) {
    const on = button.getAttribute("aria-pressed") !== "true", words = { on: button.dataset.on, off: button.dataset.off };
    for (const twin of $$(`[data-do=star][data-take-id="${button.dataset.takeId}"]`)) {
      twin.setAttribute("aria-pressed", String(on));
      twin.dataset.starred = on ? "1" : "0";
      twin.title = twin.ariaLabel = on ? words.off : words.on;
      $(".ic", twin).className = on ? "ic ic-star" : "ic ic-star-empty";
    }
  }
  function rate(button) {
    const group = button.parentElement, stars = $$("[data-do=rate]", group), wanted = stars.indexOf(button) + 1;
    const value = Number(group.dataset.rating) === wanted ? 0 : wanted;
    group.dataset.rating = button.dataset.rating = value;
    stars.forEach((star, index) => {
      star.classList.toggle("is-lit", index < value);
      star.setAttribute("aria-pressed", String(index < value));
      $(".ic", star).className = index < value ? "ic ic-star" : "ic ic-star-empty";
    });
  }
  window.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-do=star], [data-do=rate]");
    if (button) (button.dataset.do === "star" ? light : rate)(button);
  }, true); // before the component reads the button's data

  /* Comparison: two takes, one place in time. */
  const pair = () => $$(".vx-compare [data-take][data-src]");
  const current = () => pair().find((row) => row.classList.contains("is-on")) ?? pair()[0];
  function choose(row) {
    const from = current();
    if (!row || row === from) return;
    const at = position(from), total = Number(row.dataset.seconds);
    for (const other of pair()) {
      other.classList.toggle("is-on", other === row);
      $("[data-act=ab]", other).setAttribute("aria-pressed", String(other === row));
    }
    if (!at.active) return schedule();
    const audio = load(row); // pauses the other one
    audio.currentTime = Math.min(at.time, Math.max(total - 0.05, 0));
    if (at.playing) audio.play().catch(() => {});
    schedule();
  }
  actions.ab = (button) => choose(button.closest("[data-take]"));
  actions["ab-play"] = () => current() && toggle(current());
  actions["ab-swap"] = () => choose(pair().find((row) => !row.classList.contains("is-on")));
  document.addEventListener("change", (event) => {
    if (!event.target.matches?.(".vx-levelled")) return;
    for (const row of pair()) row.dataset.gain = event.target.checked ? row.dataset.matched : "0";
    for (const row of pair()) if (position(row).active) load(row);
  });
  document.addEventListener("keydown", (event) => {
    if (event.target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable], .vx-seek")) return;
    if (event.ctrlKey || event.metaKey || event.altKey || !pair().length || !$(".vx-compare").offsetParent) return;
    if (event.key.toLowerCase() === "x") actions["ab-swap"]();
    else if (event.key === " " && !event.target.closest?.("button, summary, a, [type=checkbox]")) actions["ab-play"]();
    else return;
    event.preventDefault();
  });
  drawers.push(() => {
    const row = current(), panel = $(".vx-compare");
    if (!row || !panel) return;
    const playing = pair().find((other) => position(other).playing);
    if (playing && playing !== row) return choose(playing); // it was started by its own waveform
    const at = position(row), total = Number(row.dataset.seconds);
    setIcon($("[data-act=ab-play]", panel), at.playing);
    setText($(".vx-compare-clock", panel), `${clock(Math.min(at.time, total))} / ${clock(total)}`);
  });

  /* What the server wrote. */
  let shown = "", loaded = "";
  function follow() {
    showTicks();
    const open = $("#vx-detail [data-take]")?.dataset.take ?? "";
    for (const lane of $$("#vx-history .vx-lane")) lane.classList.toggle("is-open", lane.dataset.take === open);
    if (open !== shown) {
      shown = open;
      if (open && innerWidth <= 760) $("#vx-detail").scrollIntoView({ block: "start", behavior: "smooth" });
    }
    const compared = pair().map((row) => row.dataset.take).join();
    if (compared !== loaded) {
      loaded = compared;
      for (const row of pair()) window.vx.soundOf(row); // both are there when one switches
      if (compared) { announce($(".vx-compare h2")?.innerText ?? ""); $(".vx-compare").scrollIntoView({ block: "nearest", behavior: "smooth" }); }
    }
    for (const gone of $$("[data-untick]")) {
      for (const id of gone.dataset.untick.split(",")) ticked.delete(id);
      gone.removeAttribute("data-untick");
      showTicks();
    }
    for (const link of $$("a[data-fetch]")) {
      link.removeAttribute("data-fetch");
      link.click();
    }
  }
  document.addEventListener("DOMContentLoaded", () => {
    new MutationObserver(follow).observe(document.body, { childList: true, subtree: true });
  });
})();
