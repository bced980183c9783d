// Search as you type, endless scrolling, following, keys. Everything that matters works without it.
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  const one = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const token = one('meta[name="turnlog-token"]')?.content;
  const remember = {
    get(key) { try { return JSON.parse(localStorage.getItem(key)) ?? {}; } catch { return {}; } },
    set(key, value) { try { localStorage.setItem(key, JSON.stringify(value)); } catch { /* no room */ } },
  };

  // ── waiting is told after 300 ms, never before ──
  const waiting = one("#waiting");
  let waits = 0;
  async function patiently(what, work) {
    let isTold = false;
    const timer = setTimeout(() => { isTold = true; waits += 1; waiting.textContent = what; waiting.hidden = false; }, 300);
    try { return await work; } finally {
      clearTimeout(timer);
      if (isTold && !(waits -= 1)) waiting.hidden = true;
    }
  }
  function gone() {
    waiting.textContent = "The server is gone: `turnlog web` brings it back.";
    waiting.hidden = false;
  }
  async function ask(address, options) {
    try {
      return await fetch(address, options);
    } catch (error) {
      if (error.name !== "AbortError") gone();
      throw error;
    }
  }
  async function post(address, body) {
    const answer = await patiently("Saving …", ask(address, {
      method: "POST", body: JSON.stringify(body),
      headers: { "Content-Type": "application/json", "X-Turnlog-Token": token ?? "" },
    }));
    if (!answer.ok) throw new Error((await answer.text()).trim() || answer.statusText);
    return answer.json();
  }
  function tell(text) {
    waiting.textContent = text;
    waiting.hidden = false;
    setTimeout(() => { if (waiting.textContent === text) waiting.hidden = true; }, 4000);
  }

  // ── theme ──
  const themes = ["system", "light", "dark"];
  const chosen = one('[data-action="theme"]');
  const showTheme = () => { chosen.textContent = `Theme: ${root.dataset.theme ?? "system"}`; };
  if (chosen) { chosen.hidden = false; showTheme(); }
  function nextTheme() {
    const next = themes[(themes.indexOf(root.dataset.theme ?? "system") + 1) % themes.length];
    if (next === "system") delete root.dataset.theme; else root.dataset.theme = next;
    document.cookie = `turnlog-theme=${next}; path=/; max-age=31536000; samesite=strict`;
    showTheme();
  }

  // ── the list ──
  const results = one("#results");
  const field = one('[data-testid="search"]');
  const sessions = () => all('[data-testid="session"]');
  function markUnread() {
    const seen = remember.get("turnlog-seen");
    for (const row of sessions()) {
      const read = seen[row.dataset.name];
      row.classList.toggle("unread", read !== undefined && Number(row.dataset.updated) > read.at);
    }
  }
  let asking = null;
  let wanted = location.pathname + location.search;  // the list that was asked for last, also while it loads
  async function renew(address) {
    wanted = address;
    asking?.abort();
    asking = new AbortController();
    const focused = document.activeElement?.closest?.('[data-testid="session"]')?.dataset.name;
    try {
      const answer = await patiently("Searching …", ask(address, { signal: asking.signal }));
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const list = one("#results", page);
      if (!list) { location.assign(address); return; }
      results.replaceChildren(...list.childNodes);
      const chips = one(".chips", page);
      if (chips && one(".chips")) one(".chips").replaceWith(chips);
      document.title = page.title;
      history.replaceState(null, "", address);
      markUnread();
      if (focused) sessions().find((row) => row.dataset.name === focused)?.querySelector("a").focus();
    } catch (error) { if (error.name !== "AbortError") console.warn(error.message); }
  }
  if (results && field) {
    markUnread();
    let timer = 0;
    field.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        const query = field.value.trim();
        renew(query ? `/?q=${encodeURIComponent(query)}` : "/");
      }, 120);
    });
    follow(results.dataset.live, null, () => renew(wanted));
  }

  // ── following: what is missed while away comes with the next event ──
  function follow(address, since, changed, state) {
    const listening = new AbortController(), { signal } = listening;
    let source = null, again = 0;
    const start = () => {
      clearTimeout(again);
      source = new EventSource(since ? `${address}?since=${since}` : address);
      source.onopen = () => state?.("live");
      source.onmessage = (event) => { since = event.lastEventId; changed(JSON.parse(event.data)); };
      source.onerror = () => {
        state?.("reconnecting");
        if (source.readyState === EventSource.CLOSED) again = setTimeout(start, 2000);
      };
    };
    const stop = () => { clearTimeout(again); source?.close(); source = null; };
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) stop(); else if (!source) start();
    }, { signal });
    addEventListener("pagehide", stop, { signal });
    addEventListener("pageshow", (event) => { if (event.persisted && !source) start(); }, { signal });
    if (!document.hidden) start();
    return () => { listening.abort(); stop(); };
  }

  // ── a session: only what is near the screen is in the page ──
  const feed = one('[data-testid="conversation"]');
  const MOST = 120, STEP = 40;
  const talk = feed && {
    name: feed.dataset.name, first: Number(feed.dataset.first), end: Number(feed.dataset.end), total: Number(feed.dataset.total),
    base: `/s/${encodeURIComponent(feed.dataset.name)}`, busy: false, unseen: 0,
  };
  const articles = () => all("article", feed);
  const withState = (more) => {
    const query = new URLSearchParams(more);
    if (feed.dataset.query) query.set("q", feed.dataset.query);
    if (feed.dataset.redact === "1") query.set("redact", "1");
    if (feed.dataset.branch) query.set("branch", feed.dataset.branch);
    return query;
  };
  const atEnd = () => innerHeight + scrollY >= document.body.scrollHeight - 120;
  async function pieces(first, end) {
    const answer = await patiently("Loading messages …", ask(`${talk.base}/rows?${withState({ first, end })}`));
    if (!answer.ok) throw new Error(await answer.text());
    talk.total = Number(answer.headers.get("X-Total"));
    const made = document.createElement("template");
    made.innerHTML = await answer.text();
    return made.content;
  }
  function steps() {
    const texts = { earlier: talk.first, later: talk.total - talk.end };
    for (const step of all("[data-step]")) {
      const number = texts[step.dataset.step];
      step.hidden = number <= 0;
      const from = step.dataset.step === "earlier" ? Math.max(0, talk.first - STEP) : talk.end;
      const made = document.createElement("a");
      made.href = `${talk.base}?${withState({ from })}`;
      made.textContent = `${step.dataset.step === "earlier" ? "Earlier" : "Later"}: ${number.toLocaleString("en")} more`;
      step.replaceChildren(made);
    }
    for (const article of articles()) article.setAttribute("aria-setsize", talk.total);
  }
  const idle = async () => { while (talk.busy) await new Promise((resolve) => setTimeout(resolve, 50)); };
  async function busily(work) {
    if (talk.busy) return;
    talk.busy = true;
    feed.setAttribute("aria-busy", "true");
    try { await work(); } catch (error) { if (error.name !== "AbortError") console.warn(error.message); } finally {
      talk.busy = false;
      feed.setAttribute("aria-busy", "false");
    }
  }
  function anchored(change) {
    const top = articles().find((article) => article.getBoundingClientRect().bottom > 60);
    const before = top?.getBoundingClientRect().top;
    change();
    if (top?.isConnected) scrollBy(0, top.getBoundingClientRect().top - before);
  }
  const earlier = () => busily(async () => {
    if (!talk.first) return;
    const first = Math.max(0, talk.first - STEP);
    const made = await pieces(first, talk.first);
    anchored(() => {
      feed.prepend(made);
      talk.first = first;
      for (const article of articles().slice(MOST)) article.remove();
      talk.end = Math.min(talk.end, talk.first + MOST);
      steps();
    });
  });
  const later = () => busily(async () => {
    if (talk.end >= talk.total) return;
    const end = Math.min(talk.total, talk.end + STEP);
    const made = await pieces(talk.end, end);
    anchored(() => {
      feed.append(made);
      talk.end = end;
      const over = articles().length - MOST;
      for (const article of over > 0 ? articles().slice(0, over) : []) article.remove();
      talk.first = Math.max(talk.first, talk.end - MOST);
      steps();
    });
  });
  async function show(piece, { to = "start", focus = true } = {}) {
    await idle();
    if (piece < talk.first || piece >= talk.end) {
      await busily(async () => {
        const first = Math.max(0, Math.min(piece - 10, talk.total - STEP));
        const end = Math.min(talk.total, first + STEP);
        const made = await pieces(first, end);
        feed.replaceChildren(made);
        talk.first = first;
        talk.end = end;
        steps();
        outline();
      });
    }
    const article = articles().find((one) => Number(one.dataset.piece) === piece);
    if (!article) return;
    article.scrollIntoView({ block: to });
    if (focus) article.focus({ preventScroll: true });
    highlightOutline();
  }
  async function showEnd() {
    await show(talk.total - 1, { to: "end", focus: false });
    scrollTo(0, document.body.scrollHeight);
    talk.unseen = 0;
    one('[data-testid="new"]').hidden = true;
  }
  async function renewFrom(first, total) {
    const before = talk.total, isEnd = talk.end >= before, stays = atEnd();
    if (isEnd && first < talk.end + STEP) {
      await busily(async () => {
        const begin = Math.max(talk.first, Math.min(first, talk.end));
        const end = Math.min(total, begin + MOST);
        const made = await pieces(begin, end);
        const swap = () => {
          for (const article of articles()) if (Number(article.dataset.piece) >= begin) article.remove();
          feed.append(made);
          talk.end = end;
          const over = stays ? articles().length - MOST : 0;
          for (const article of over > 0 ? articles().slice(0, over) : []) { article.remove(); talk.first += 1; }
          steps();
        };
        if (stays) { swap(); scrollTo(0, document.body.scrollHeight); } else anchored(swap);
      });
    } else {
      talk.total = total;
      steps();
    }
    if (stays) { markRead(); return; }
    talk.unseen += Math.max(0, total - before) || 1;
    const button = one('[data-testid="new"]');
    button.textContent = `${talk.unseen} new`;
    button.hidden = false;
  }
  async function outline() {
    const nav = one("nav.outline");
    if (!nav || !nav.offsetParent) return;
    const answer = await ask(`${talk.base}/outline?${withState({ first: talk.first })}`);
    if (!answer.ok) return;
    const made = new DOMParser().parseFromString(await answer.text(), "text/html");
    nav.replaceChildren(...one("nav", made).childNodes);
    nav.removeAttribute("data-more");
    highlightOutline();
  }
  function highlightOutline() {
    const nav = one("nav.outline");
    if (!nav || !nav.offsetParent) return;
    const top = articles().find((article) => article.getBoundingClientRect().bottom > 80);
    if (!top) return;
    const seq = Number(top.dataset.seq);
    let chosen = null;
    for (const item of all("a[data-seq]", nav)) {
      item.parentElement.classList.remove("here");
      if (Number(item.dataset.seq) <= seq) chosen = item.parentElement;
    }
    if (!chosen) return;
    chosen.classList.add("here");
    const box = nav.getBoundingClientRect(), place = chosen.getBoundingClientRect();
    if (place.top < box.top || place.bottom > box.bottom) nav.scrollTop += place.top - box.top - box.height / 2;
  }
  function markRead() {
    if (document.hidden) return;
    const last = articles().at(-1);
    const seen = remember.get("turnlog-seen");
    seen[talk.name] = { at: Date.now(), seq: Number(last?.dataset.seq ?? 0) };
    const names = Object.keys(seen);
    if (names.length > 2000) delete seen[names[0]];
    remember.set("turnlog-seen", seen);
  }
  // Places that were found, one after the other.
  let places = null;
  async function nextHit(step) {
    if (!feed.dataset.query) return;
    const marks = all("mark", feed);
    const now = marks.findIndex((mark) => mark.classList.contains("now"));
    const next = marks[now < 0 ? (step > 0 ? 0 : marks.length - 1) : now + step];
    if (next) {
      marks[now]?.classList.remove("now");
      next.classList.add("now");
      next.closest("details")?.setAttribute("open", "");
      next.scrollIntoView({ block: "center" });
      return;
    }
    places ??= await (await ask(`${talk.base}/hits?${withState({})}`)).json();
    const found = step > 0 ? places.find((piece) => piece >= talk.end) : places.findLast((piece) => piece < talk.first);
    if (found === undefined) { tell("no more places"); return; }
    await show(found);
    const inside = articles().find((article) => Number(article.dataset.piece) === found);
    const mark = step > 0 ? one("mark", inside) : all("mark", inside).at(-1);
    mark?.classList.add("now");
    mark?.scrollIntoView({ block: "center" });
  }
  if (feed) {
    const seen = remember.get("turnlog-seen")[talk.name];
    const old = seen?.seq && articles().find((article) => Number(article.dataset.seq) > seen.seq);
    if (old && old !== articles()[0]) old.classList.add("readto");
    const marked = one("article.asked") ?? null;
    if (marked) marked.scrollIntoView({ block: "center" });
    else if (!new URLSearchParams(location.search).has("from")) scrollTo(0, document.body.scrollHeight);
    if (feed.dataset.query) one("article.asked mark", feed)?.classList.add("now");
    const watcher = new IntersectionObserver((entries) => {
      for (const entry of entries) if (entry.isIntersecting) (entry.target.dataset.step === "earlier" ? earlier : later)();
    }, { rootMargin: "800px" });
    requestAnimationFrame(() => requestAnimationFrame(() => { for (const step of all("[data-step]")) watcher.observe(step); }));
    let timer = 0;
    addEventListener("scroll", () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        highlightOutline();
        if (atEnd() && talk.end >= talk.total) {
          talk.unseen = 0;
          one('[data-testid="new"]').hidden = true;
          markRead();
        }
        if (scrollY < 800) earlier(); else if (innerHeight + scrollY > document.body.scrollHeight - 800) later();
      }, 80);
    }, { passive: true });
    highlightOutline();
    if (one("nav.outline[data-more]")) outline();
    if (atEnd()) markRead();
    const live = one('[data-testid="live"]');
    if (!feed.dataset.branch) {
      const unfollow = follow(`${talk.base}/stream`, feed.dataset.version, async (event) => {
        if (event.problem) {
          unfollow();  // or the browser would connect again, and be told again
          live.dataset.state = "ended";
          const alert = document.createElement("p");
          alert.setAttribute("role", "alert");
          alert.textContent = event.problem;
          one(".foot").before(alert);
          return;
        }
        await idle();
        if (event.first < event.total || event.total !== talk.total) await renewFrom(event.first, event.total);
        places = null;
        outline();
      }, (state) => { live.dataset.state = state; });
    }
  }

  // ── what buttons do ──
  const actions = {
    theme: nextTheme,
    help: openHelp,
    end: showEnd,
    async copy(button) {
      try {
        await navigator.clipboard.writeText(button.dataset.command);
        tell(`copied: ${button.dataset.command}`);
      } catch { prompt("The command:", button.dataset.command); }
    },
    title(button) {
      const input = one('[data-testid="title-input"]'), heading = one("h1");
      const close = () => { input.hidden = true; heading.hidden = button.hidden = false; button.focus(); };
      input.hidden = false;
      heading.hidden = button.hidden = true;
      input.value = heading.textContent;
      input.focus();
      input.select();
      input.onkeydown = async (event) => {
        if (event.isComposing) return;  // this Enter ends what an input method composes
        if (event.key === "Escape") close();
        if (event.key !== "Enter") return;
        try {
          const { title } = await post(`${talk.base}/title`, { title: input.value });
          heading.textContent = title;
          document.title = `${title} · turnlog`;
          close();
        } catch (error) { tell(error.message); }
      };
      input.onblur = () => { if (!input.hidden) close(); };
    },
    async fork(button) {
      try { location.assign((await post(`${talk.base}/fork`, { at: Number(button.dataset.at) })).address); } catch (error) { tell(error.message); }
    },
    async delete() {
      if (!confirm(`Move this session to the trash? \`turnlog restore ${talk.name}\` brings it back.`)) return;
      try { location.assign((await post(`${talk.base}/delete`, {})).address); } catch (error) { tell(error.message); }
    },
    async confirm(button) {
      button.disabled = true;
      try { location.assign((await post(button.dataset.command, { plan: button.dataset.plan })).address); } catch (error) {
        tell(error.message);
        setTimeout(() => location.reload(), 1200);
      }
    },
  };
  addEventListener("click", (event) => {
    const button = event.target.closest("[data-action]");
    if (button) {
      event.preventDefault();
      actions[button.dataset.action]?.(button);
      return;
    }
    const place = feed && event.target.closest("nav.outline a[data-seq]");
    if (place && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      goTo(place.dataset.seq);
    }
    const link = event.target.closest('a[href^="/s/"]');
    if (link && !event.defaultPrevented && !event.ctrlKey && !event.metaKey) patiently("Opening the session …", new Promise((done) => addEventListener("pagehide", done)));
    for (const open of all(".actions details[open]")) if (!open.contains(event.target)) open.removeAttribute("open");
  });
  addEventListener("toggle", async (event) => {
    const list = event.target.open && one("ul[data-from]:empty", event.target);
    if (!list) return;
    const answer = await patiently("Loading the list …", ask(`${talk.base}/${list.dataset.from}`));
    if (!answer.ok) { tell(await answer.text()); return; }
    const made = new DOMParser().parseFromString(await answer.text(), "text/html");
    list.replaceChildren(...made.body.childNodes);
  }, true);
  async function goTo(seq) {
    const answer = await ask(`${talk.base}/place?${withState({ at: seq })}`);
    if (!answer.ok) { location.assign(`${talk.base}?${withState({ at: seq })}`); return; }
    const { piece, total, is_here: isHere } = await answer.json();
    if (!isHere) { location.assign(`${talk.base}?${withState({ at: seq })}`); return; }
    talk.total = total;
    history.replaceState(null, "", `${talk.base}?${withState({ at: seq })}`);
    await show(piece);
  }

  // ── keys ──
  async function openHelp() {
    const answer = await ask("/help");
    const keys = one("#keys", new DOMParser().parseFromString(await answer.text(), "text/html"));
    const dialog = document.createElement("dialog");
    dialog.setAttribute("role", "dialog");
    dialog.setAttribute("aria-label", "Keys");
    const close = document.createElement("button");
    close.textContent = "Close";
    close.onclick = () => dialog.close();
    dialog.append(keys, close);
    dialog.onclose = () => dialog.remove();
    document.body.append(dialog);
    dialog.showModal();
  }
  function move(step) {
    const found = feed ? articles() : sessions().map((row) => one("a", row));
    if (!found.length) return;
    let index = found.findIndex((item) => item === document.activeElement || item.contains(document.activeElement));
    if (index < 0 && feed) index = found.findIndex((item) => item.getBoundingClientRect().bottom > 80) - (step > 0 ? 1 : 0);
    const next = found[Math.max(0, Math.min(found.length - 1, index + step))];
    next.focus();
    next.scrollIntoView({ block: feed ? "start" : "nearest" });
  }
  async function prompts(step) {
    const top = articles().find((article) => article.getBoundingClientRect().bottom > 80);
    const items = all("nav.outline li.prompt a[data-seq]").map((item) => Number(item.dataset.seq));
    const seq = Number(top?.dataset.seq ?? 0);
    const next = step > 0 ? items.find((item) => item > seq) : items.findLast((item) => item < seq);
    if (next !== undefined) await goTo(next);
  }
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target;
    const isTyping = target.matches?.("input, textarea, select, [contenteditable]");
    if (event.key === "Escape" && isTyping) { target.blur(); return; }
    if (isTyping) {
      if (target === field && event.key === "ArrowDown" && sessions().length) { event.preventDefault(); one("a", sessions()[0]).focus(); }
      return;
    }
    if (one("dialog[open]")) return;
    const keys = {
      "/": () => { field.focus(); field.select(); },
      "j": () => move(1), "k": () => move(-1), "?": openHelp,
      "u": () => location.assign("/"),
    };
    if (results) Object.assign(keys, { "ArrowDown": () => move(1), "ArrowUp": () => move(-1) });
    if (feed) Object.assign(keys, {
      "Home": () => show(0).then(() => scrollTo(0, 0)), "End": showEnd, "n": () => nextHit(1), "N": () => nextHit(-1),
      "[": () => prompts(-1), "]": () => prompts(1),
    });
    const act = keys[event.key];
    if (act) { event.preventDefault(); act(); }
  });
})();
