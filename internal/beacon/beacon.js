// Measures round trips to regions and reports them, without cookies or
// identifiers. docs/beacon.md says why.
(async (config) => {
  const timeout = 5000;
  const share = Number(document.currentScript?.dataset.sample ?? config.sample);
  const saving = navigator.connection?.saveData || matchMedia("(prefers-reduced-data: reduce)").matches;
  if (Math.random() >= share || saving || !AbortSignal.timeout) return;

  // Timers of hidden pages are slowed down: such a page is discarded.
  let hidden = document.visibilityState !== "visible";
  document.addEventListener("visibilitychange", () => (hidden = true));
  addEventListener("pagehide", () => (hidden = true));
  if (document.readyState !== "complete") await new Promise((f) => addEventListener("load", f, { once: true }));
  await new Promise((f) => (window.requestIdleCallback ? requestIdleCallback(f) : setTimeout(f, 2000)));

  const ask = (url, more) => fetch(url, { cache: "no-store", credentials: "omit", redirect: "error",
    referrerPolicy: "no-referrer", signal: AbortSignal.timeout(timeout), ...more });
  const get = async (url) => {
    const reply = await ask(url);
    await reply.arrayBuffer();
    if (!reply.ok) throw reply.status;
  };

  // The first request opens the connection, the second is measured.
  const measure = async ({ region, url }) => {
    let observer;
    try {
      await get(url + "?warm");
      const timed = new Promise((found) => {
        observer = new PerformanceObserver((list) => list.getEntriesByName(url + "?timed").forEach(found));
        observer.observe({ type: "resource" });
      });
      const start = performance.now();
      await get(url + "?timed");
      const taken = performance.now() - start;
      const t = await Promise.race([timed, new Promise((f) => setTimeout(f, 1000))]);
      const exact = t?.requestStart > 0; // 0 without Timing-Allow-Origin
      const ms = exact ? t.responseStart - t.requestStart : taken;
      if (ms > timeout) throw ms;
      // A coarse clock may show nothing at all.
      return ms >= 0.01 && { region, ok: true, rtt_ms: Math.round(ms * 100) / 100, timing: exact ? "resource" : "clock" };
    } catch {
      return { region, ok: false };
    } finally {
      observer?.disconnect();
    }
  };

  const order = config.candidates.map((c) => [Math.random(), c]).sort(([a], [b]) => a - b);
  const entries = [];
  for (const [, candidate] of order.slice(0, config.pick)) {
    const entry = !hidden && (await measure(candidate));
    if (entry) entries.push(entry);
  }
  if (hidden || !entries.length || navigator.onLine === false) return;

  // A region that is down can't take this: the next one does.
  let through = null;
  for (const url of config.reports) {
    try {
      const reply = await ask(url, { method: "POST", body: JSON.stringify({ v: 1, entries }), keepalive: true });
      if (reply.status < 500) {
        through = url;
        break;
      }
    } catch {}
  }
  document.dispatchEvent(new CustomEvent("gslb-beacon", { detail: { entries, through } }));
})(/* configuration */);
