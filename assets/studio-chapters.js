/* The Chapters tab. The server writes parts of the page; this script carries what is pressed to it and what it answers into
   its place. One question is on its way at a time, so that ten quick presses of Enter approve ten segments, in order.
   What is looked at (book, step, segment, filter) is kept here, in the browser, and sent along with every question. */
(() => {
  "use strict";
  const { $, $$ } = vx;
  const KEY = "vx_chapters", PATIENCE = 120_000, POLL = 1000;
  const root = () => $("#vx-chapters");
  const part = (name) => $(`[data-part="${name}"]`, root() ?? document);
  const isShown = () => Boolean(root()?.checkVisibility());

  /* What is looked at */
  let view = {};
  try { view = JSON.parse(localStorage.getItem(KEY)) ?? {}; } catch { /* nothing kept, or nothing readable */ }
  function look(more) {
    Object.assign(view, more);
    try { localStorage.setItem(KEY, JSON.stringify(view)); } catch { /* private window */ }
    if (root()) root().dataset.step = view.step || "shelf";
  }

  /* Questions and answers */
  let trigger = null, upload = null, serial = 0, flying = null, lost = "";
  const waiting = [];
  function call(name, data = {}) {
    if (name === "review.rows") dropWaiting(name); // only the newest place counts
    waiting.push({ name, data });
    pump();
  }
  function afterwards(run) {
    waiting.push({ run });
    pump();
  }
  function dropWaiting(name) {
    for (let index = waiting.length - 1; index >= 0; index -= 1) if (waiting[index].name === name) waiting.splice(index, 1);
  }
  /* A pick travels by the picker's own event: what is pressed after it waits for it, or it would be for another segment. */
  let picking = 0;
  function picked() { clearTimeout(picking); picking = 0; pump(); }
  document.addEventListener("click", (event) => {
    if (!event.target.closest?.("#vx-chapters-picker .vx-pick")) return;
    clearTimeout(picking);
    picking = setTimeout(picked, 3000);
  });
  function pump() {
    if (flying || picking || !waiting.length || !trigger) return;
    if (waiting[0].run) { waiting.shift().run(); return pump(); } // something for the browser, in its turn
    flying = waiting.shift();
    flying.serial = String((serial += 1));
    flying.timer = setTimeout(() => { if (lost && part("notice")) part("notice").innerHTML = lost; finish(); }, PATIENCE);
    root().classList.toggle("is-busy", flying.name !== "poll");
    trigger({ do: flying.name, data: flying.data, view, serial: flying.serial });
  }
  function finish() {
    clearTimeout(flying?.timer);
    flying = null;
    root()?.classList.remove("is-busy");
    pump();
  }
  function attach(element, tell, send) {
    trigger = tell;
    upload = send;
    let shown = false;
    new IntersectionObserver(() => { // the tab is opened, or left; scrolling does not count
      if (isShown() === shown) return;
      shown = !shown;
      if (shown && !isEditing()) call("open");
    }).observe(element);
    pump();
  }
  /* Answers come in an attribute; gradio may keep the element and change only that. */
  function listen(element) {
    let last = "";
    const hear = () => {
      const text = $(".vx-ch-answer", element)?.dataset.said;
      if (!text || text === last) return;
      last = text;
      const said = JSON.parse(text), own = said.serial === flying?.serial;
      if (own || said.serial.startsWith("unasked")) take(said);
      if (said.serial.startsWith("unasked")) picked();
      if (own) finish();
    };
    new MutationObserver(hear).observe(element, { childList: true, subtree: true, attributes: true, attributeFilter: ["data-said"] });
  }
  function take(said) {
    const before = view.segment;
    look(said.view ?? {});
    lost = said.lost ?? lost;
    for (const [name, html] of Object.entries(said.parts)) put(name, html);
    if (said.done) backToTheList();
    if (said.save) save(said.save);
    if (said.next) call(said.next);
    if (said.focus && !isField(document.activeElement ?? document.body)) $(said.focus, root())?.focus({ preventScroll: true });
    showPlace(said.place, before !== view.segment);
    vx.schedule();
  }

  function backToTheList() {
    for (const fold of $$("details[data-name]", part("detail"))) fold.open = false;
    document.activeElement?.blur();
    scroller()?.focus({ preventScroll: true });
  }

  /* Parts: rewritten only when they differ; folds, scroll places and the field one types in stay as they are. */
  const written = new WeakMap();
  function put(name, text) {
    const place = part(name);
    if (!place || written.get(place) === text) return;
    written.set(place, text);
    const folds = new Map($$("details[data-fold]", place).map((fold) => [fold.dataset.fold, fold.open]));
    const scrolls = $$("[data-keep]", place).map((one) => [one.dataset.keep, one.scrollTop]);
    const focused = place.contains(document.activeElement) ? handle(document.activeElement) : "";
    const made = document.createElement("template");
    made.innerHTML = text;
    place.replaceChildren(made.content);
    for (const fold of $$("details[data-fold]", place)) if (folds.has(fold.dataset.fold)) fold.open = folds.get(fold.dataset.fold);
    for (const [keep, top] of scrolls) { const one = $(`[data-keep="${keep}"]`, place); if (one) one.scrollTop = top; }
    if (focused) $(focused, place)?.focus({ preventScroll: true });
    if (name === "notice" && text) { vx.announce(place.innerText); place.firstElementChild?.scrollIntoView({ block: "nearest" }); }
  }
  function handle(element) { // how the same element is found again
    if (element.id) return `#${CSS.escape(element.id)}`;
    if (element.name) return `[name="${CSS.escape(element.name)}"]`;
    const { ch, segment, chapter, step, speaker } = element.dataset, more = Object.entries({ segment, chapter, step, speaker });
    return ch ? `[data-ch="${ch}"]` + more.map(([key, value]) => (value === undefined ? "" : `[data-${key}="${CSS.escape(value)}"]`)).join("") : "";
  }

  /* Presses: [data-ch] asks with its data and the fields of the nearest [data-form]. */
  function fields(element) {
    const found = {};
    for (const field of $$("[name]", element.closest("[data-form]") ?? element)) {
      if (field.type === "checkbox" && field.hasAttribute("value")) { found[field.name] ??= []; if (field.checked) found[field.name].push(field.value); }
      else if (field.type === "checkbox") found[field.name] = field.checked;
      else if (field.type !== "radio") found[field.name] = field.value;
      else if (field.checked) found[field.name] = field.value;
    }
    return found;
  }
  /* What was typed into a form that is left by pressing something else is kept, not lost. Escape and Close drop it. */
  const KEPT = ["text.save", "review.save", "review.note"];
  function saveTyped(pressed) {
    for (const form of $$("[data-edits][data-touched]", root())) {
      const save = $(".is-main[data-ch]", form);
      if (form.contains(pressed) || !save || !KEPT.includes(save.dataset.ch) || save.disabled) continue;
      delete form.dataset.touched;
      ask(save);
    }
  }
  function press(element) {
    saveTyped(element);
    ask(element);
  }
  function ask(element) {
    const { ch, ...data } = element.dataset;
    const cursor = $("[data-cursor]", element.closest("[data-form]") ?? element);
    call(ch, { ...fields(element), ...(cursor ? { cursor: cursor.selectionStart } : {}), ...data });
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-ch]");
    if (button && root()?.contains(button) && !button.disabled && !button.matches("input, select")) {
      if (event.detail && view.step === "review") button.blur(); // a mouse was used: Enter goes on approving
      press(button);
    }
    const opener = event.target.closest?.("[data-pick-file]");
    if (opener && root()?.contains(opener)) $(opener.dataset.pickFile, root())?.click();
  });
  document.addEventListener("change", (event) => {
    const field = event.target;
    if (!root()?.contains(field)) return;
    if (field.type === "file" && field.dataset.upload) return sendFiles(field, field.files);
    if (field.matches("[data-ch]")) press(field);
  });
  document.addEventListener("keydown", (event) => {
    const field = event.target;
    if (event.isComposing || !root()?.contains(field) || !field.matches?.("input, textarea, select")) return;
    const form = field.closest("[data-form]");
    if (event.key === "Enter" && (field.matches("input:not([type=checkbox], [type=radio])") || event.ctrlKey || event.metaKey)) {
      const main = form && $(".is-main[data-ch]", form);
      if (main && !main.disabled) { event.preventDefault(); event.stopPropagation(); press(main); }
    } else if (event.key === "Escape" && form && $("[data-escape]", form)) {
      event.preventDefault();
      event.stopPropagation();
      $("[data-escape]", form).click();
    }
  }, true);

  /* Files: chosen or dropped; gradio takes them in, the server is told where they lie. */
  async function sendFiles(field, files) {
    const file = files[0], form = field.closest("[data-form]");
    if (!file || !upload) return;
    form?.classList.add("is-sending");
    try {
      const { path } = await upload(file);
      call(field.dataset.upload, { ...fields(field), path, file: file.name });
    } catch (error) {
      call("upload.failed", { file: file.name, why: String(error?.message ?? error) });
    } finally {
      field.value = "";
      form?.classList.remove("is-sending");
    }
  }
  for (const name of ["dragover", "dragleave", "drop"]) document.addEventListener(name, (event) => {
    const zone = event.target.closest?.("[data-drop]");
    if (!zone || !root()?.contains(zone)) return;
    event.preventDefault();
    zone.classList.toggle("is-over", name === "dragover");
    if (name === "drop") sendFiles($(zone.dataset.drop, root()), event.dataTransfer.files);
  });
  function save({ name, text, type }) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  /* What runs on the server is asked after while the tab is seen. */
  const isEditing = () => $$("[data-edits]", root()).some((form) => form.checkVisibility() && (form.contains(document.activeElement) || form.dataset.touched));
  setInterval(() => {
    if (!flying && !waiting.length && isShown() && !document.hidden && $("[data-poll]", root())) call("poll", { editing: isEditing() });
  }, POLL);
  document.addEventListener("input", (event) => {
    const form = event.target.closest?.("[data-edits]");
    if (form) form.dataset.touched = "1";
  });

  /* The table of segments: as high as all of them, but only those near the window are there. */
  const scroller = () => $(".vx-ch-scroll", root());
  const rowHeight = () => parseFloat(getComputedStyle(root()).getPropertyValue("--vx-ch-row")) || 44;
  function layRows() {
    const list = $(".vx-ch-rows", root());
    if (!list) return null;
    const from = Number(list.dataset.from), total = Number(list.dataset.total);
    list.parentElement.style.height = `${total * rowHeight()}px`;
    list.style.transform = `translateY(${from * rowHeight()}px)`;
    for (const row of list.children) {
      const on = row.dataset.segment === String(view.segment);
      if ((row.getAttribute("aria-selected") === "true") !== on) row.setAttribute("aria-selected", on);
      if (on) scroller().setAttribute("aria-activedescendant", row.id);
    }
    return { from, total, count: list.children.length };
  }
  function lookForRows() {
    const place = scroller(), there = layRows();
    if (!place || !there) return;
    const first = Math.floor(place.scrollTop / rowHeight()), seen = Math.ceil(place.clientHeight / rowHeight()) + 1;
    const last = Math.min(first + seen, there.total);
    if (first < there.from || last > there.from + there.count) call("review.rows", { from: Math.max(0, first - 20) });
  }
  document.addEventListener("scroll", (event) => { if (event.target === scroller()) lookForRows(); }, true);
  function showPlace(place, moved) {
    if (view.step !== "review" || !scroller() || !layRows()) return;
    if (place !== undefined && place >= 0) {
      const top = place * rowHeight(), box = scroller();
      if (top < box.scrollTop) box.scrollTop = top - rowHeight();
      else if (top + rowHeight() > box.scrollTop + box.clientHeight) box.scrollTop = top + 2 * rowHeight() - box.clientHeight;
    }
    lookForRows();
    if (moved && innerWidth <= 760 && vx.chaptersOpened) $("#vx-ch-stage")?.scrollIntoView({ block: "start", behavior: "smooth" });
    vx.chaptersOpened = false;
  }
  document.addEventListener("click", (event) => { if (event.target.closest?.(".vx-ch-rows [data-ch]")) vx.chaptersOpened = true; }, true);

  /* Keys of the review. 1 2 3 and Space belong to the take-picker. */
  const isField = (element) => element.closest?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable=true]");
  const KEYS = {
    enter: () => call("review.approve"), arrowdown: () => call("review.step", { by: 1 }), arrowup: () => call("review.step", { by: -1 }),
    r: () => call("review.reroll"), l: () => call("review.lock"), n: () => afterwards(() => fold("note")), e: () => afterwards(() => fold("edit")), x: () => call("review.redo"),
    c: () => afterwards(() => $(".vx-ch-context .vx-play", root())?.click()), z: () => call("undo"),
  };
  function fold(name) {
    const details = $(`details[data-name="${name}"]`, part("detail"));
    if (!details) return;
    details.open = true;
    const field = $("textarea", details);
    field?.focus();
    field?.setSelectionRange(field.value.length, field.value.length);
  }
  document.addEventListener("keydown", (event) => {
    if (!isShown() || view.step !== "review" || event.defaultPrevented || event.isComposing || isField(event.target)) return;
    const undo = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && !event.altKey;
    if (undo) { event.preventDefault(); return call(event.shiftKey ? "redo" : "undo"); }
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.(".vx-seek, [role=tab]")) return;
    if (event.key === " " && event.target === scroller()) { // it would scroll; the picker is to play
      event.preventDefault();
      if (!event.repeat) document.body.dispatchEvent(new KeyboardEvent("keydown", { key: " ", bubbles: true }));
      return;
    }
    const key = event.key.toLowerCase(), act = KEYS[key];
    if (!act || (key === "enter" && event.target.matches?.("button, summary, a") && event.target.matches(":focus-visible"))) return;
    event.preventDefault();
    if (event.repeat && !key.startsWith("arrow")) return;
    if (event.repeat && (flying || waiting.length)) return;
    if (key !== "n" && key !== "e") saveTyped(document.body);
    act();
  });
  document.addEventListener("click", (event) => {
    const close = event.target.closest?.("[data-close-fold]");
    if (close && root()?.contains(close)) { close.closest("details").open = false; delete close.closest("[data-edits]")?.dataset.touched; document.activeElement?.blur(); }
  });

  /* Read along: the word that is heard, by how far the sound is. */
  let lit = null;
  vx.drawers.push(() => {
    if (!isShown() || view.step !== "review") return;
    const words = $$(".vx-ch-spoken [data-at]", root());
    const heard = $$("#vx-chapters-picker .vx-slot-bar[data-take], .vx-ch-context[data-take]", root()).find((one) => vx.position(one).active);
    let now = null;
    if (heard && words.length) {
      const from = Number(heard.dataset.from || 0), to = Number(heard.dataset.to || heard.dataset.seconds);
      const share = (vx.position(heard).time - from) / Math.max(to - from, 0.1);
      if (share >= 0 && share <= 1) for (const word of words) if (Number(word.dataset.at) <= share) now = word;
    }
    if (now === lit) return;
    lit?.classList.remove("is-heard");
    now?.classList.add("is-heard");
    lit = now;
  });

  window.vxChapters = { attach, listen, call };
})();
