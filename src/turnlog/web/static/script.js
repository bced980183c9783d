// Search as you type, endless scrolling, following, keys. Everything that matters works without it.
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  const find = (selector, from = document) => from.querySelector(selector);
  const findAll = (selector, from = document) => [...from.querySelectorAll(selector)];
  const token = find('meta[name="turnlog-token"]')?.content;
  const remember = {
    get(key) { try { return JSON.parse(localStorage.getItem(key)) ?? {}; } catch { return {}; } },
    set(key, value) { try { localStorage.setItem(key, JSON.stringify(value)); } catch { /* no room */ } },
  };

  // ── waiting is told after 300 ms, never before ──
  const waiting = find("#waiting");
  let waits = 0;
  async function patiently(what, work) {
    let isTold = false;
    const timer = setTimeout(() => { isTold = true; waits += 1; waiting.textContent = what; waiting.hidden = false; }, 300);
    try { return await work; } finally {
      clearTimeout(timer);
      if (isTold && !(waits -= 1)) waiting.hidden = true;
    }
  }
  let isGone = false;
  function gone() {
    isGone = true;
    waiting.textContent = "The server is gone: `turnlog web` brings it back.";
    waiting.hidden = false;
  }
  function back() {
    if (isGone) waiting.hidden = true;
    isGone = false;
  }
  async function ask(address, options) {
    try {
      const answer = await fetch(address, options);
      back();
      return answer;
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
  const chosen = find('[data-action="theme"]');
  const showTheme = () => { chosen.textContent = `Theme: ${root.dataset.theme ?? "system"}`; };
  if (chosen) { chosen.hidden = false; showTheme(); }
  function nextTheme() {
    const next = themes[(themes.indexOf(root.dataset.theme ?? "system") + 1) % themes.length];
    if (next === "system") delete root.dataset.theme; else root.dataset.theme = next;
    document.cookie = `turnlog-theme=${next}; path=/; max-age=31536000; samesite=strict`;
    showTheme();
  }

  // ── the list ──
  const results = find("#results");
  const field = find('[data-testid="search"]');
  const sessions = () => findAll('[data-testid="session"]');
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
      const list = find("#results", page);
      if (!list) { location.assign(address); return; }
      results.replaceChildren(...list.childNodes);
      const chips = find(".chips", page);
      if (chips && find(".chips")) find(".chips").replaceWith(chips);
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
      source.onopen = () => { back(); state?.("live"); };
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
  const feed = find('[data-testid="conversation"]');
  const MOST = 120, STEP = 40;
  const conversation = feed && {
    name: feed.dataset.name, first: Number(feed.dataset.first), end: Number(feed.dataset.end), total: Number(feed.dataset.total),
    base: `/s/${encodeURIComponent(feed.dataset.name)}`, busy: false, unseen: 0,
  };
  const articles = () => findAll("article", feed);
  const withState = (more) => {
    const query = new URLSearchParams(more);
    if (feed.dataset.query) query.set("q", feed.dataset.query);
    if (feed.dataset.redact === "1") query.set("redact", "1");
    if (feed.dataset.branch) query.set("branch", feed.dataset.branch);
    return query;
  };
  const atEnd = () => innerHeight + scrollY >= document.body.scrollHeight - 120;
  async function pieces(first, end) {
    const answer = await patiently("Loading messages …", ask(`${conversation.base}/rows?${withState({ first, end })}`));
    if (!answer.ok) throw new Error(await answer.text());
    conversation.total = Number(answer.headers.get("X-Total"));
    const template = document.createElement("template");
    template.innerHTML = await answer.text();
    return template.content;
  }
  function steps() {
    const texts = { earlier: conversation.first, later: conversation.total - conversation.end };
    for (const step of findAll("[data-step]")) {
      const number = texts[step.dataset.step];
      step.hidden = number <= 0;
      const from = step.dataset.step === "earlier" ? Math.max(0, conversation.first - STEP) : conversation.end;
      const link = document.createElement("a");
      link.href = `${conversation.base}?${withState({ from })}`;
      link.textContent = `${step.dataset.step === "earlier" ? "Earlier" : "Later"}: ${number.toLocaleString("en")} more`;
      step.replaceChildren(link);
    }
    for (const article of articles()) article.setAttribute("aria-setsize", conversation.total);
  }
  const idle = async () => { while (conversation.busy) await new Promise((resolve) => setTimeout(resolve, 50)); };
  async function busily(work) {
    if (conversation.busy) return;
    conversation.busy = true;
    feed.setAttribute("aria-busy", "true");
    try { await work(); } catch (error) { if (error.name !== "AbortError") console.warn(error.message); } finally {
      conversation.busy = false;
      feed.setAttribute("aria-busy", "false");
    }
  }
  function anchored(change) {
    const top = articles().find((article) => article.getBoundingClientRect().bottom > 60);
    const before = top?.getBoundingClientRect().top;
    change();
    const now = top?.isConnected ? top : articles().find((article) => article.dataset.piece === top?.dataset.piece);
    if (now) scrollBy(0, now.getBoundingClientRect().top - before);
  }
  const earlier = () => busily(async () => {
    if (!conversation.first) return;
    const first = Math.max(0, conversation.first - STEP);
    const loaded = await pieces(first, conversation.first);
    anchored(() => {
      feed.prepend(loaded);
      conversation.first = first;
      for (const article of articles().slice(MOST)) article.remove();
      conversation.end = Math.min(conversation.end, conversation.first + MOST);
      steps();
    });
  });
  const later = () => busily(async () => {
    if (conversation.end >= conversation.total) return;
    const end = Math.min(conversation.total, conversation.end + STEP);
    const loaded = await pieces(conversation.end, end);
    anchored(() => {
      feed.append(loaded);
      conversation.end = end;
      const surplus = articles().length - MOST;
      for (const article of surplus > 0 ? articles().slice(0, surplus) : []) article.remove();
      conversation.first = Math.max(conversation.first, conversation.end - MOST);
      steps();
    });
  });
  async function show(piece, { to = "start", focus = true } = {}) {
    await idle();
    if (piece < conversation.first || piece >= conversation.end) {
      await busily(async () => {
        const first = Math.max(0, Math.min(piece - 10, conversation.total - STEP));
        const end = Math.min(conversation.total, first + STEP);
        const loaded = await pieces(first, end);
        feed.replaceChildren(loaded);
        conversation.first = first;
        conversation.end = end;
        steps();
        outline();
      });
    }
    const article = articles().find((article) => Number(article.dataset.piece) === piece);
    if (!article) return;
    article.scrollIntoView({ block: to });
    if (focus) article.focus({ preventScroll: true });
    highlightOutline();
  }
  async function showEnd() {
    await show(conversation.total - 1, { to: "end", focus: false });
    scrollTo(0, document.body.scrollHeight);
    conversation.unseen = 0;
    find('[data-testid="new"]').hidden = true;
  }
  async function renewFrom(first, total) {
    const before = conversation.total, isEnd = conversation.end >= before, stays = atEnd();
    if (first < conversation.end || (isEnd && first < conversation.end + STEP)) {  // on the page, or right behind it
      await busily(async () => {
        // A conversation that was taken back may end before what is on the page.
        const low = conversation.first < total ? conversation.first : Math.max(0, total - STEP);
        const begin = low < conversation.first ? low : Math.max(low, Math.min(first, conversation.end));
        const end = Math.min(total, isEnd ? begin + MOST : conversation.end);
        const loaded = await pieces(begin, end);
        const swap = () => {
          for (const article of articles()) if (Number(article.dataset.piece) >= begin) article.remove();
          feed.append(loaded);
          conversation.first = low;
          conversation.end = end;
          const surplus = stays ? articles().length - MOST : 0;
          for (const article of surplus > 0 ? articles().slice(0, surplus) : []) { article.remove(); conversation.first += 1; }
          steps();
        };
        if (stays) { swap(); scrollTo(0, document.body.scrollHeight); } else anchored(swap);
      });
    } else {
      conversation.total = total;
      steps();
    }
    if (stays) { markRead(); return; }
    conversation.unseen += Math.max(0, total - before) || 1;
    const button = find('[data-testid="new"]');
    button.textContent = `${conversation.unseen} new`;
    button.hidden = false;
  }
  async function outline() {
    const nav = find("nav.outline");
    if (!nav || !nav.offsetParent) return;
    const answer = await ask(`${conversation.base}/outline?${withState({ first: conversation.first })}`);
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    nav.replaceChildren(...find("nav", page).childNodes);
    nav.removeAttribute("data-more");
    highlightOutline();
  }
  function highlightOutline() {
    const nav = find("nav.outline");
    if (!nav || !nav.offsetParent) return;
    const top = articles().find((article) => article.getBoundingClientRect().bottom > 80);
    if (!top) return;
    const seq = Number(top.dataset.seq);
    let chosen = null;
    for (const item of findAll("a[data-seq]", nav)) {
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
    delete seen[conversation.name];
    seen[conversation.name] = { at: Date.now(), seq: Number(last?.dataset.seq ?? 0) };
    const names = Object.keys(seen);  // the session that was read longest ago comes first
    if (names.length > 2000) delete seen[names[0]];
    remember.set("turnlog-seen", seen);
  }
  // Places that were found, one after the other.
  let places = null;
  async function nextHit(step) {
    if (!feed.dataset.query) return;
    const marks = findAll("mark", feed);
    const now = marks.findIndex((mark) => mark.classList.contains("now"));
    const next = marks[now < 0 ? (step > 0 ? 0 : marks.length - 1) : now + step];
    if (next) {
      marks[now]?.classList.remove("now");
      next.classList.add("now");
      next.closest("details")?.setAttribute("open", "");
      next.scrollIntoView({ block: "center" });
      return;
    }
    if (!places) {
      const answer = await ask(`${conversation.base}/hits?${withState({})}`);
      if (!answer.ok) { tell("these words cannot be looked for"); return; }
      places = await answer.json();
    }
    const found = step > 0 ? places.find((piece) => piece >= conversation.end) : places.findLast((piece) => piece < conversation.first);
    if (found === undefined) { tell("no more places"); return; }
    await show(found);
    const inside = articles().find((article) => Number(article.dataset.piece) === found);
    const mark = step > 0 ? find("mark", inside) : findAll("mark", inside).at(-1);
    mark?.classList.add("now");
    mark?.scrollIntoView({ block: "center" });
  }
  if (feed) {
    const seen = remember.get("turnlog-seen")[conversation.name];
    const old = seen?.seq && articles().find((article) => Number(article.dataset.seq) > seen.seq);
    if (old && old !== articles()[0]) old.classList.add("readto");
    const marked = find("article.asked") ?? null;
    if (marked) marked.scrollIntoView({ block: "center" });
    else if (!new URLSearchParams(location.search).has("from")) scrollTo(0, document.body.scrollHeight);
    if (feed.dataset.query) find("article.asked mark", feed)?.classList.add("now");
    const watcher = new IntersectionObserver((entries) => {
      for (const entry of entries) if (entry.isIntersecting) (entry.target.dataset.step === "earlier" ? earlier : later)();
    }, { rootMargin: "800px" });
    requestAnimationFrame(() => requestAnimationFrame(() => { for (const step of findAll("[data-step]")) watcher.observe(step); }));
    let timer = 0;
    addEventListener("scroll", () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        highlightOutline();
        if (atEnd() && conversation.end >= conversation.total) {
          conversation.unseen = 0;
          find('[data-testid="new"]').hidden = true;
          markRead();
        }
        if (scrollY < 800) earlier(); else if (innerHeight + scrollY > document.body.scrollHeight - 800) later();
      }, 80);
    }, { passive: true });
    highlightOutline();
    if (find("nav.outline[data-more]")) outline();
    if (atEnd()) markRead();
    const live = find('[data-testid="live"]');
    if (!feed.dataset.branch) {
      const unfollow = follow(`${conversation.base}/stream`, feed.dataset.version, async (event) => {
        if (event.problem) {
          unfollow();  // or the browser would connect again, and be told again
          live.dataset.state = "ended";
          const alert = document.createElement("p");
          alert.setAttribute("role", "alert");
          alert.textContent = event.problem;
          find(".foot").before(alert);
          return;
        }
        await idle();
        if (event.first < event.total || event.total !== conversation.total) await renewFrom(event.first, event.total);
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
      const input = find('[data-testid="title-input"]'), heading = find("h1");
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
          const { title } = await post(`${conversation.base}/title`, { title: input.value });
          heading.textContent = title;
          document.title = `${title} · turnlog`;
          close();
        } catch (error) { tell(error.message); }
      };
      input.onblur = () => { if (!input.hidden) close(); };
    },
    async fork(button) {
      try { location.assign((await post(`${conversation.base}/fork`, { at: Number(button.dataset.at) })).address); } catch (error) { tell(error.message); }
    },
    async delete() {
      if (!confirm(`Move this session to the trash? \`turnlog restore ${conversation.name}\` brings it back.`)) return;
      try { location.assign((await post(`${conversation.base}/delete`, {})).address); } catch (error) { tell(error.message); }
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
    const opensElsewhere = event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
    const isDownload = link?.hasAttribute("download") || /^\/s\/[^/]+\/export$/.test(link?.pathname);
    if (link && !event.defaultPrevented && !opensElsewhere && !isDownload) {
      patiently("Opening the session …", new Promise((done) => addEventListener("pagehide", done)));
    }
    for (const open of findAll(".actions details[open]")) if (!open.contains(event.target)) open.removeAttribute("open");
  });
  addEventListener("toggle", async (event) => {
    const list = event.target.open && find("ul[data-from]:empty", event.target);
    if (!list) return;
    const answer = await patiently("Loading the list …", ask(`${conversation.base}/${list.dataset.from}`));
    if (!answer.ok) { tell(await answer.text()); return; }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    list.replaceChildren(...page.body.childNodes);
  }, true);
  async function goTo(seq) {
    const answer = await ask(`${conversation.base}/place?${withState({ at: seq })}`);
    if (!answer.ok) { location.assign(`${conversation.base}?${withState({ at: seq })}`); return; }
    const { piece, total, is_here: isHere } = await answer.json();
    if (!isHere) { location.assign(`${conversation.base}?${withState({ at: seq })}`); return; }
    conversation.total = total;
    history.replaceState(null, "", `${conversation.base}?${withState({ at: seq })}`);
    await show(piece);
  }

  // ── keys ──
  async function openHelp() {
    const answer = await ask("/help");
    if (!answer.ok) { location.assign("/help"); return; }
    const keys = find("#keys", new DOMParser().parseFromString(await answer.text(), "text/html"));
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
    const found = feed ? articles() : sessions().map((row) => find("a", row));
    if (!found.length) return;
    let index = found.findIndex((item) => item === document.activeElement || item.contains(document.activeElement));
    if (index < 0 && feed) index = found.findIndex((item) => item.getBoundingClientRect().bottom > 80) - (step > 0 ? 1 : 0);
    const next = found[Math.max(0, Math.min(found.length - 1, index + step))];
    next.focus();
    next.scrollIntoView({ block: feed ? "start" : "nearest" });
  }
  async function prompts(step) {
    const top = articles().find((article) => article.getBoundingClientRect().bottom > 80);
    const items = findAll("nav.outline li.prompt a[data-seq]").map((item) => Number(item.dataset.seq));
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
      if (target === field && event.key === "ArrowDown" && sessions().length) { event.preventDefault(); find("a", sessions()[0]).focus(); }
      return;
    }
    if (find("dialog[open]")) return;
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
