/* The take-picker: which lane is heard, what its bar shows, the keys. A lane (.vx-slot) holds a bar that is written once,
   facts that the server writes anew while a take is made, and gradio's player of the stream. The bar takes what it needs from
   the facts' data attributes, and so nothing is replaced under the listener's hand. A stored take plays through the one
   transport of studio.js; the stream of a take that is being made plays from its own element, and goes on to its end there. */
(() => {
  "use strict";
  const { $, $$, actions } = vx;
  const MAKING = ["starting", "speaking", "stopping"];
  const memories = new WeakMap(); // by lane or picker element

  const memory = (element) => {
    if (!memories.has(element)) memories.set(element, { live: false, take: "", text: "", levels: [], resume: 0, clicked: -Infinity, state: "" });
    return memories.get(element);
  };
  const parts = (slot) => ({ bar: $(".vx-slot-bar", slot), facts: $(".vx-slot-facts", slot), audio: $(".vx-slot-live audio", slot) });
  const lanes = (picker) => $$(".vx-slot", picker).filter((slot) => parts(slot).bar && parts(slot).facts);
  const shownPicker = () => $$(".vx-picker").find((picker) => picker.checkVisibility());
  const sounds = (audio) => Boolean(audio && !audio.paused && !audio.ended);
  const isMaking = (facts) => MAKING.includes(facts.dataset.state);

  /* What the server wrote becomes what the lane plays and shows. */
  function follow(picker) {
    const line = $(".vx-pickline", picker), plain = $(".vx-original input", picker)?.checked;
    let begins = false;
    for (const [index, slot] of lanes(picker).entries()) {
      begins = followLane(slot, plain) || begins;
      showPicked(slot, line?.dataset.picked === String(index));
    }
    if (begins) begin(picker);
    if (line) explain(picker, line);
    const state = $(".vx-picker-state", picker), known = memory(picker);
    if (state && known.state !== state.dataset.state) {
      if (known.state) vx.announce(state.innerText);
      Object.assign(known, { state: state.dataset.state, clicked: -Infinity }); // the server has answered the click
    }
  }
  /* Returns whether a take has just begun here. */
  function followLane(slot, plain) {
    const { bar, facts, audio } = parts(slot), known = memory(slot), making = isMaking(facts);
    const begins = making && !known.making;
    if (begins) Object.assign(known, { live: true, resume: 0, take: "" });
    if (!making && known.making) known.take = facts.dataset.take || "";
    known.making = making;
    if (known.live && !making && (!sounds(audio) || isOver(audio, facts) || known.take !== (facts.dataset.take || ""))) endLive(slot);
    const take = !known.live && facts.dataset.take;
    if (take) Object.assign(bar.dataset, { take, src: facts.dataset.src, seconds: facts.dataset.seconds, gain: plain ? "0" : facts.dataset.gain });
    else for (const name of ["take", "src", "seconds", "gain"]) delete bar.dataset[name];
    $(".vx-play", bar).disabled = !take && !known.live;
    $(".vx-pick", bar).disabled = !facts.dataset.take;
    slot.hidden = facts.dataset.state === "unused";
    return begins;
  }
  const isOver = (audio, facts) => audio.currentTime >= Number(facts.dataset.seconds) - 0.06;
  function endLive(slot) {
    const { audio, facts } = parts(slot), known = memory(slot);
    known.live = false;
    if (audio && known.take && known.take === facts.dataset.take && audio.currentTime > 0.3 && !isOver(audio, facts)) known.resume = audio.currentTime;
    audio?.pause();
  }
  function showPicked(slot, picked) {
    const button = $(".vx-pick", slot), words = $("span", button);
    slot.classList.toggle("is-picked", picked);
    if (button.getAttribute("aria-pressed") !== String(picked)) button.setAttribute("aria-pressed", picked);
    vx.setText(words, picked ? words.dataset.picked : words.dataset.open);
  }
  /* gradio's buttons and switches have no title of their own. */
  function explain(picker, line) {
    if (memory(line).text === line.dataset.titles) return;
    memory(line).text = line.dataset.titles;
    for (const [name, words] of Object.entries(JSON.parse(line.dataset.titles))) {
      const element = $(`.vx-${name}`, picker);
      if (element && element.title !== words) element.title = words;
    }
  }

  /* Sound. One lane is heard; the others fill silently. What plays already is not disturbed. */
  const anythingPlays = () => $$("[data-take][data-src]").some((element) => vx.position(element).playing) || $$(".vx-slot-live audio").some(sounds);
  function begin(picker) {
    const known = memory(picker), making = lanes(picker).filter((slot) => isMaking(parts(slot).facts));
    known.heard = anythingPlays() ? null : making[0];
    known.current = known.heard ?? known.current ?? making[0];
    if (innerWidth <= 760) picker.scrollIntoView({ block: "start", behavior: "smooth" }); // it is below the fold there
  }
  document.addEventListener("loadedmetadata", (event) => { // a stream has its first sound
    const slot = event.target.closest?.(".vx-slot"), picker = slot?.closest(".vx-picker");
    if (picker && memory(picker).heard === slot && memory(slot).live && !anythingPlays()) play(slot);
  }, true);
  for (const name of ["play", "pause", "ended"]) document.addEventListener(name, (event) => { if (event.target.closest?.(".vx-slot")) vx.schedule(); }, true);
  const hush = () => { for (const audio of $$(".vx-slot-live audio")) audio.pause(); };
  vx.pausers.push(hush);
  function play(slot) {
    const { audio } = parts(slot);
    vx.pauseAll();
    audio?.play().catch(() => {});
    vx.schedule();
  }
  function toggle(slot) {
    const { bar, audio } = parts(slot), known = memory(slot), picker = memory(slot.closest(".vx-picker"));
    picker.current = slot;
    picker.heard = known.live ? slot : null; // a stream that has no sound yet is heard when it has
    if (known.live) return sounds(audio) ? audio.pause() : play(slot);
    if (!bar.dataset.src) return;
    if (known.resume) vx.load(bar).currentTime = known.resume;
    known.resume = 0;
    vx.toggle(bar);
  }

  /* Drawing, with each draw of studio.js */
  function draw() {
    let moving = false;
    for (const picker of $$(".vx-picker")) {
      follow(picker);
      if (picker.checkVisibility()) for (const slot of lanes(picker)) moving = drawSlot(slot) || moving;
    }
    if (moving) vx.schedule();
  }
  function drawSlot(slot) {
    const { bar, facts, audio } = parts(slot), known = memory(slot);
    if (slot.hidden) return false;
    const made = Number(facts.dataset.seconds) || 0, making = isMaking(facts);
    const total = Math.max(made, making ? Number(facts.dataset.expected) || 0 : 0, 0.1);
    const stored = bar.dataset.take ? vx.position(bar) : null;
    const heard = Math.min(known.live ? audio?.currentTime ?? 0 : stored?.active ? stored.time : 0, made);
    vx.drawLane($("canvas", bar), levelsOf(facts, known), made / total, heard / total);
    vx.setText($(".vx-clock", bar), `${vx.clock(heard)} / ${vx.clock(made)}`);
    const surface = $(".vx-seek", bar);
    surface.setAttribute("aria-valuemax", made.toFixed(1));
    surface.setAttribute("aria-valuenow", heard.toFixed(1));
    if (known.live) {
      vx.setIcon($(".vx-play", bar), sounds(audio));
      $(".vx-playhead", bar).style.left = `${(100 * heard) / total}%`;
    } else if (!stored) vx.setIcon($(".vx-play", bar), false);
    bar.classList.toggle("is-active", (known.live && heard > 0) || Boolean(stored?.active));
    return making || (known.live && sounds(audio));
  }
  function levelsOf(facts, known) {
    const text = facts.dataset.levels || "";
    if (known.text !== text) Object.assign(known, { text, levels: text ? text.split(",").map(Number) : [] });
    return known.levels;
  }
  vx.drawers.push(draw);

  /* Clicks */
  actions["slot-play"] = (button) => toggle(button.closest(".vx-slot"));
  actions.star = (button) => {
    if (button.closest(".vx-slot")) button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
  };
  actions.pick = (button) => {
    const slot = button.closest(".vx-slot"), picker = memory(slot.closest(".vx-picker"));
    if (!anythingPlays()) picker.current = slot;
  };
  document.addEventListener("click", (event) => {
    if (event.target.closest?.(".vx-halt")) hush();
    const bar = event.target.closest?.(".vx-slot-bar");
    if (!bar || !event.target.closest(".vx-seek")) return;
    const slot = bar.closest(".vx-slot"), { facts } = parts(slot);
    memory(slot.closest(".vx-picker")).current = slot;
    if (bar.dataset.take || !facts.dataset.take) return; // studio.js has done it, or there is nothing to jump in
    endLive(slot); // still playing its stream: go over to the file
    memory(slot).resume = 0;
    followLane(slot, $(".vx-original input", slot.closest(".vx-picker"))?.checked);
    const box = $(".vx-span", bar).getBoundingClientRect();
    vx.seek(bar, (event.clientX - box.left) / box.width);
  });
  document.addEventListener("change", (event) => {
    const picker = event.target.closest?.(".vx-original")?.closest(".vx-picker");
    if (!picker) return;
    follow(picker);
    for (const slot of lanes(picker)) if (parts(slot).bar.dataset.take && vx.position(parts(slot).bar).active) vx.load(parts(slot).bar);
  });
  /* One run per click: until the server has answered, another click is not passed on. */
  window.addEventListener("click", (event) => {
    const button = event.target.closest?.(".vx-run, .vx-others, .vx-same, .vx-around, .vx-offer button"), picker = button && shownPicker();
    if (!picker) return;
    const known = memory(picker), busy = ["waiting", ...MAKING].includes(known.state);
    if (button.disabled || busy || performance.now() - known.clicked < 3000) {
      event.stopImmediatePropagation();
      event.preventDefault();
    } else {
      known.clicked = performance.now();
      const kept = !button.matches(".vx-run, .vx-same") && $(".vx-slot.is-picked .vx-slot-bar", picker);
      if (!(kept && vx.position(kept).playing)) vx.pauseAll();
    }
  }, true);

  /* Keys: 1 2 3 pick, Space plays, R re-rolls the others. Fields keep their letters, focused controls their Space. */
  const isField = (element) => element.closest?.("input:not([type=checkbox], [type=radio], [type=range]), textarea, select, [contenteditable=true]");
  function onKey(event) {
    const picker = shownPicker();
    if (!picker || event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey || isField(event.target)) return false;
    const known = memory(picker), filled = lanes(picker).filter((slot) => !slot.hidden);
    if (event.key === " ") {
      if (event.target.matches?.("button, summary, a, [role], input") && event.target.matches(":focus-visible")) return false;
      const playing = filled.find((slot) => sounds(parts(slot).audio) || (parts(slot).bar.dataset.take && vx.position(parts(slot).bar).playing));
      const slot = playing ?? (filled.includes(known.current) ? known.current : filled[0]);
      if (!slot) return false;
      if (!event.repeat && event.type === "keydown") toggle(slot);
      return true;
    }
    if (event.type !== "keydown" || event.repeat) return false;
    const button = event.key.toLowerCase() === "r" ? $(".vx-others", picker) : /^[123]$/.test(event.key) ? $(".vx-pick", lanes(picker)[event.key - 1]) : null;
    if (!button || button.disabled || !button.checkVisibility()) return false;
    button.click();
    return true;
  }
  for (const name of ["keydown", "keyup"]) document.addEventListener(name, (event) => { if (onKey(event)) event.preventDefault(); });
})();
