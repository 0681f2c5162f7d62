/* What the page does without the server: one transport for all takes, keys, language and theme.
   Takes are [data-take] elements written by studio/ui/markup.py. The sound belongs to this script, not to an element of the
   page, so lists may be rewritten while something plays. */
(() => {
  "use strict";
  const store = {
    get(key) { try { return localStorage.getItem(key); } catch { return null; } },
    set(key, value) { try { localStorage.setItem(key, value); } catch { /* private window: forget it */ } },
  };
  const $ = (selector, root = document) => root?.querySelector(selector) ?? null;
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

  /* Language: gradio reads navigator.language once at start, the server reads the cookie. */
  const chosen = store.get("vx_language");
  if (chosen) {
    Object.defineProperty(navigator, "language", { get: () => chosen, configurable: true });
    Object.defineProperty(navigator, "languages", { get: () => [chosen], configurable: true });
    document.cookie = `vx_language=${chosen}; path=/; max-age=31536000; SameSite=Lax`;
  }
  const chinese = navigator.language.toLowerCase().startsWith("zh");
  document.documentElement.lang = chinese ? "zh-CN" : "en";
  function setLanguage(language) {
    store.set("vx_language", language);
    document.cookie = `vx_language=${language}; path=/; max-age=31536000; SameSite=Lax`;
    location.reload();
  }

  /* For every event gradio's script walks the page's components until it has found the one that the event belongs to; for
     every component it asks all events. On a page of this size that takes longer than all the rest of opening it. Two
     things about the description of the events help: what follows another event (`.then`) belongs to no component, so it
     has none to look for; and objects that are not plain ones are read as they are, not through proxies. */
  let config;
  class Event {}
  class Events extends Array {}
  Object.defineProperty(window, "gradio_config", {
    configurable: true,
    get: () => config,
    set(value) {
      config = value;
      if (!Array.isArray(value?.dependencies)) return;
      for (const event of value.dependencies) {
        if (event.trigger_after != null) event.targets = [];
        Object.setPrototypeOf(event, Event.prototype);
      }
      Object.setPrototypeOf(value.dependencies, Events.prototype);
    },
  });

  /* Theme: the visitor's choice wins over the system's. */
  function applyTheme() {
    const theme = store.get("vx_theme");
    if (theme && document.body.classList.contains("dark") !== (theme === "dark")) document.body.classList.toggle("dark", theme === "dark");
  }
  function switchTheme() {
    store.set("vx_theme", document.body.classList.contains("dark") ? "light" : "dark");
    applyTheme();
  }

  /* Transport */
  let player = null; // { id, audio } of a stored take

  const pausers = []; // of sound that the rooms' own scripts play
  function pauseRooms() { for (const pause of pausers) pause(); }
  function pauseAll() {
    player?.audio.pause();
    pauseRooms();
  }
  function load(element) {
    if (player?.id !== element.dataset.take) {
      player?.audio.pause();
      player = { id: element.dataset.take, audio: soundOf(element) };
    }
    amplify(player.audio, Number(element.dataset.gain || 0));
    return player.audio;
  }
  /* data-gain: so many dB louder or softer than the file. An element's own volume can only be turned down. */
  let mixer = null;
  const gains = new WeakMap();
  function amplify(audio, decibels) {
    if (!gains.has(audio)) {
      if (!decibels) return;
      mixer ??= new AudioContext();
      gains.set(audio, mixer.createGain());
      mixer.createMediaElementSource(audio).connect(gains.get(audio)).connect(mixer.destination);
    }
    mixer.resume();
    gains.get(audio).gain.value = 10 ** (decibels / 20);
  }
  const sounds = new Map(); // the last few by address: going back and forth between two takes needs no fetching
  function soundOf(element) {
    const address = element.dataset.src, audio = sounds.get(address) ?? new Audio(address);
    if (!sounds.has(address)) {
      audio.preload = "auto";
      for (const name of ["play", "pause", "ended", "seeked"]) audio.addEventListener(name, schedule);
    }
    sounds.delete(address);
    sounds.set(address, audio);
    for (const oldest of [...sounds.keys()].slice(0, -4)) sounds.delete(oldest);
    return audio;
  }
  function toggle(element) {
    const audio = load(element);
    if (!audio.paused) return audio.pause();
    pauseRooms();
    audio.play().catch(() => {});
    schedule();
  }
  function seek(element, fraction) {
    const wasPlaying = position(element).playing;
    pauseRooms();
    const audio = load(element);
    audio.currentTime = Math.min(Math.max(fraction, 0), 1) * Number(element.dataset.seconds);
    if (wasPlaying || audio.paused) audio.play().catch(() => {});
    schedule();
  }
  function position(element) {
    const id = element.dataset.take;
    const audio = player?.id === id ? player.audio : null;
    if (!audio) return { active: false, playing: false, time: 0 };
    return { active: true, playing: !audio.paused && !audio.ended, time: audio.currentTime };
  }
  const clock = (seconds) => {
    const tenths = Math.round(seconds * 10);
    return `${Math.floor(tenths / 600)}:${String(Math.floor(tenths / 10) % 60).padStart(2, "0")}.${tenths % 10}`;
  };

  /* Drawing: only while something moves or the page has changed. */
  let scheduled = false;
  function schedule() {
    if (scheduled) return;
    scheduled = true;
    requestAnimationFrame(() => { scheduled = false; draw(); });
  }
  function draw() {
    let moving = false;
    for (const element of $$("[data-take][data-src]")) {
      const at = position(element);
      const total = Number(element.dataset.seconds);
      const part = total ? Math.min(at.time / total, 1) : 0;
      element.classList.toggle("is-active", at.active);
      setIcon($(".vx-play", element), at.playing);
      const head = $(".vx-playhead", element);
      if (head) head.style.left = `${part * 100}%`;
      $(".vx-seek", element)?.setAttribute("aria-valuenow", at.time.toFixed(1));
      const time = $("header .vx-clock", element);
      if (time) setText(time, `${clock(Math.min(at.time, total))} / ${clock(total)}`);
      moving = moving || at.playing;
    }
    for (const also of drawers) also();
    if (moving) schedule();
  }
  const drawers = []; // what the rooms' own scripts draw with it
  function setText(element, text) { if (element.textContent !== text) element.textContent = text; }
  function setIcon(button, playing) {
    const icon = button && $(".ic", button);
    if (!icon || icon.classList.contains("ic-pause") === playing) return;
    icon.classList.toggle("ic-pause", playing);
    icon.classList.toggle("ic-play", !playing);
    button.setAttribute("aria-pressed", String(playing));
  }
  /* One bar per 3 px: the loudest level that falls into it; what was heard in full colour. */
  function drawLane(canvas, levels, made, heard) {
    const scale = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    if (canvas.width !== Math.round(width * scale)) canvas.width = Math.round(width * scale);
    if (canvas.height !== Math.round(height * scale)) canvas.height = Math.round(height * scale);
    const pen = canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.fillStyle = getComputedStyle(canvas).color;
    const bars = Math.floor(width / 3), filled = Math.round(bars * made), top = Math.max(20, ...levels);
    for (let bar = 0; bar < bars; bar += 1) {
      let level = 0;
      if (bar < filled && levels.length) {
        const from = Math.floor((bar / filled) * levels.length), to = Math.max(from + 1, Math.floor(((bar + 1) / filled) * levels.length));
        for (let index = from; index < to; index += 1) level = Math.max(level, levels[index]);
      }
      const tall = Math.max(2, (level / top) * (height - 12));
      pen.globalAlpha = bar < bars * heard ? 1 : bar < filled ? 0.45 : 0.14;
      pen.fillRect(bar * 3, (height - tall) / 2, 2, tall);
    }
  }

  /* What the server wrote: put times into the visitor's own zone, name the keys as they are called here. */
  let announcer = null;
  function follow() {
    for (const time of $$("time[datetime]:not([data-local])")) {
      time.dataset.local = "1";
      time.textContent = new Date(time.dateTime).toLocaleString(document.documentElement.lang, { dateStyle: "medium", timeStyle: "short" });
    }
    if (/Mac|iPhone|iPad/.test(navigator.platform)) for (const key of $$('kbd[data-key="mod"]')) setText(key, "\u2318");
    schedule();
  }
  function announce(text) {
    if (!announcer) {
      announcer = document.createElement("div");
      announcer.className = "vx-unseen";
      announcer.setAttribute("aria-live", "polite");
      document.body.append(announcer);
    }
    setText(announcer, text);
  }

  /* Clicks and keys */
  const actions = {
    play: (button) => toggle(button.closest("[data-take]")),
    theme: switchTheme,
    language: (button) => setLanguage(button.dataset.to),
    copy(button) {
      const words = $("span", button), before = words.textContent;
      navigator.clipboard?.writeText($("pre", button.parentElement).textContent).then(() => {
        words.textContent = button.dataset.done;
        setTimeout(() => { words.textContent = before; }, 1500);
      }, () => {});
    },
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-act]");
    if (button && actions[button.dataset.act]) return actions[button.dataset.act](button);
    const surface = event.target.closest(".vx-seek");
    if (!surface?.closest("[data-take]")) return; // a lane whose take is still being made
    const box = $(".vx-span", surface).getBoundingClientRect();
    seek(surface.closest("[data-take]"), (event.clientX - box.left) / box.width);
  });
  function press(kind) { // the button of the tab that is shown
    const button = $$(kind).find((one) => one.checkVisibility() && !one.disabled);
    button?.click();
    return Boolean(button);
  }
  document.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && press(".vx-go")) return event.preventDefault();
    if (event.key === "Escape" && press(".vx-halt")) return event.preventDefault();
    const surface = event.target.closest?.(".vx-seek");
    if (!surface?.closest("[data-take]")) return;
    const element = surface.closest("[data-take]"), total = Number(element.dataset.seconds) || 1;
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (step) seek(element, (position(element).time + step) / total);
    else if (event.key === "Home") seek(element, 0);
    else if (event.key === " " || event.key === "Enter") toggle(element);
    else return;
    event.preventDefault();
  }, true);

  /* For the scripts of the rooms, assets/studio-<room>.js: the one transport, and the drawing that goes with it. */
  window.vx = { $, $$, actions, amplify, announce, clock, drawLane, drawers, load, pauseAll, pausers, position, schedule, seek, setIcon, setText, soundOf, toggle };

  document.addEventListener("DOMContentLoaded", () => {
    applyTheme();
    new MutationObserver(applyTheme).observe(document.body, { attributes: true, attributeFilter: ["class"] });
    new MutationObserver(follow).observe(document.body, { childList: true, subtree: true });
  });
})();
