"use strict";
(() => {
  const SHAPES = { circle: "●", square: "■", "triangle-up": "▲", diamond: "◆", cross: "✚", "triangle-down": "▼",
    "triangle-right": "▶", "triangle-left": "◀" };
  const NARROW = 432;
  const FACTOR = 0.5;
  const root = document.documentElement;

  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };
  const button = (text, label, act) => {
    const made = make("button", { type: "button", "aria-label": label, title: label }, text);
    made.addEventListener("click", act);
    return made;
  };

  // The theme: the system's until one is chosen.
  const isDark = () => root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  const toggle = button("", "", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    told();
  });
  toggle.className = "theme";
  const told = () => {
    toggle.textContent = isDark() ? "Light" : "Dark";
    toggle.setAttribute("aria-label", `Use the ${isDark() ? "light" : "dark"} theme`);
    toggle.title = toggle.getAttribute("aria-label");
  };
  told();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", told);
  document.querySelector("header").append(toggle);

  // The next command, for the clipboard; selected where there is none.
  for (const code of document.querySelectorAll(".command code")) {
    const copy = button("Copy", "Copy the command", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        copy.textContent = "Copied";
        setTimeout(() => { copy.textContent = "Copy"; }, 2000);
      } catch {
        getSelection().selectAllChildren(code);
      }
    });
    code.after(copy);
  }

  const packed = document.getElementById("charts");
  if (!packed || typeof DecompressionStream === "undefined") return;
  const unpacked = element => {
    const text = atob(element.textContent.trim());
    const bytes = new Uint8Array(text.length);
    for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  };
  let library = null;
  const loaded = () => library ??= unpacked(document.getElementById("library")).then(text => {
    const script = document.createElement("script");
    script.textContent = text;
    document.head.append(script);
  });

  const encodings = spec => [spec, ...(spec.layer ?? [])].map(each => each.encoding).filter(Boolean);
  const mapped = (spec, change) => ({
    ...change(spec),
    ...(spec.layer ? { layer: spec.layer.map(each => mapped(each, change)) } : {}),
  });

  /** Series with what they look like; none where there is but one. */
  const seriesOf = spec => {
    const held = new Map();
    for (const encoding of encodings(spec))
      for (const [channel, from] of [["color", "colour"], ["shape", "shape"]]) {
        const given = encoding[channel];
        if (given?.field !== "series" || !given.scale?.domain) continue;
        given.scale.domain.forEach((name, at) => {
          if (!held.has(name)) held.set(name, { name, shape: "square" });
          held.get(name)[from] = given.scale.range[at % given.scale.range.length];
        });
      }
    const drawn = new Set((spec.data.values ?? []).map(value => value.series));
    const series = [...held.values()].filter(each => drawn.has(each.name));
    return series.length > 1 ? series : [];
  };

  /** The spec without its legend, without hidden series, and no more than the domains of it. */
  const narrowed = (spec, hidden, domains) => {
    const changed = mapped(spec, part => {
      if (!part.encoding && !part.mark) return part;
      const encoding = { ...part.encoding };
      for (const channel of ["color", "shape"])
        if (encoding[channel]?.field === "series") encoding[channel] = { ...encoding[channel], legend: null };
      for (const [channel, domain] of Object.entries(domains)) {
        const given = encoding[channel];
        if (!given?.field || !domain) continue;
        const { zero, padding, ...scale } = given.scale ?? {};
        const { values, tickCount, ...axis } = given.axis ?? {};
        encoding[channel] = { ...given, scale: { ...scale, domain, nice: false }, ...(given.axis ? { axis } : {}) };
      }
      if (!part.mark || !Object.values(domains).some(Boolean)) return { ...part, encoding };
      const mark = typeof part.mark === "string" ? { type: part.mark } : part.mark;
      return { ...part, encoding, mark: { ...mark, clip: true } };
    });
    const values = spec.data.values.filter(value => !hidden.has(value.series));
    return { ...changed, data: { values } };
  };

  /** The height in pixels: rows of a height each, as many as there are to draw, or a number. */
  const heightOf = spec => {
    const step = spec.height?.step;
    if (!step) return spec.height;
    const field = encodings(spec).find(each => each.y?.field)?.y.field;
    return step * new Set(spec.data.values.map(value => value[field])).size;
  };

  /** Marks that have something to say, with where they stand in the drawing. */
  function* marksOf(mark, left, top) {
    if (mark.role === "axis" || mark.role === "legend" || mark.role === "title") return;
    for (const item of mark.items ?? []) {
      if (mark.marktype === "group")
        for (const inner of item.items ?? []) yield* marksOf(inner, left + (item.x ?? 0), top + (item.y ?? 0));
      else if (item.datum?.d && mark.marktype !== "text") {
        const isBox = mark.marktype === "rect";
        const x = left + (item.x ?? 0), y = top + (item.y ?? 0);
        const wide = isBox ? item.width ?? 0 : 0, high = isBox ? item.height ?? 0 : 0;
        if (Number.isFinite(x) && Number.isFinite(y))
          yield { x, y, wide, high, isBox, said: item.datum.d, series: item.datum.series ?? "",
            line: `${item.datum.series ?? ""}\n${item.datum.name || "\uffff"}` };
      }
    }
  }

  const away = (spot, x, y) => {
    if (!spot.isBox) return Math.hypot(2 * (spot.x - x), spot.y - y);
    const across = Math.max(spot.x - x, 0, x - spot.x - spot.wide);
    return Math.hypot(across, Math.max(spot.y - y, 0, y - spot.y - spot.high) / 4);
  };

  class Drawing {
    constructor(figure, spec, looks) {
      this.figure = figure;
      this.spec = spec;
      this.looks = looks;
      this.hidden = new Set();
      this.domains = { x: null, y: null };
      this.spots = [];
      this.at = -1;
      const title = figure.querySelector("h3");
      const sentence = figure.querySelector("figcaption p");
      title.id ||= `${figure.id}-t`;
      sentence.id ||= `${figure.id}-s`;
      this.stage = make("div", { class: "stage" });
      this.tip = make("div", { class: "tip", hidden: "" });
      this.ring = make("div", { class: "ring", hidden: "" });
      this.brush = make("div", { class: "brush", hidden: "" });
      this.spoken = make("div", { class: "unseen", "aria-live": "polite" });
      this.area = make("div", {
        class: "area", tabindex: "0", role: "group", "aria-roledescription": "chart", "aria-labelledby": title.id,
        "aria-describedby": sentence.id,
        "aria-keyshortcuts": "ArrowLeft ArrowRight ArrowUp ArrowDown Home End Plus Minus 0 Escape",
      }, this.stage, this.brush, this.ring, this.tip);
      this.tools = make("div", { class: "tools" });
      this.legend = make("div", { class: "legend", role: "group", "aria-label": "Series: switch them on and off" });
      this.live = make("div", { class: "live" }, make("div", { class: "bar" }, this.legend, this.tools), this.area,
        this.spoken);
      this.series = seriesOf(spec);
      for (const each of this.series) this.legend.append(this.switchOf(each));
      this.listen();
    }

    switchOf(series) {
      const mark = make("span", { "aria-hidden": "true" }, SHAPES[series.shape] ?? "■");
      mark.style.color = series.colour;
      const made = make("button", { type: "button", "aria-pressed": "true" }, mark, make("bdi", {}, series.name));
      made.addEventListener("click", () => {
        if (this.hidden.has(series.name)) this.hidden.delete(series.name);
        else if (this.hidden.size + 1 < this.series.length) this.hidden.add(series.name);
        made.setAttribute("aria-pressed", String(!this.hidden.has(series.name)));
        this.draw();
      });
      return made;
    }

    async mount() {
      this.figure.querySelector(".still").after(this.live);
      this.live.classList.add("coming");
      try {
        await loaded();
        this.figure.classList.add("is-live");
        await this.draw();
        if (this.zoomable("x")) this.tools.append(
          button("Reset", "Show all again", () => this.reset()),
          button("+", "Zoom in", () => this.zoom(FACTOR)),
          button("−", "Zoom out", () => this.zoom(1 / FACTOR)),
        );
        this.live.classList.remove("coming");
        this.figure.dataset.drawn = "";
      } catch (failure) {
        // The still drawing says the same.
        this.figure.classList.remove("is-live");
        this.live.remove();
        console.error(failure);
      }
    }

    async draw() {
      const width = Math.floor(this.live.clientWidth) || 540;
      const turn = this.turn = {};
      this.live.setAttribute("aria-busy", "true");
      const isNarrow = width < NARROW;
      const spec = narrowed(this.spec, this.hidden, this.domains);
      const stage = make("div", { class: "stage" });
      const config = this.looks[isNarrow ? "narrow" : "wide"];
      const { view } = await window.vegaEmbed(stage, { ...spec, height: heightOf(spec), width, config }, {
        mode: "vega-lite", ast: true, actions: false, tooltip: false, hover: false, renderer: "svg",
        defaultStyle: false, logLevel: 1,
      });
      if (turn !== this.turn) return view.finalize();
      this.view?.finalize();
      this.view = view;
      stage.querySelector("svg").setAttribute("aria-hidden", "true");
      this.stage.replaceWith(stage);
      this.stage = stage;
      this.width = width;
      if (!this.domains.x) this.full = this.scaleOf("x")?.domain().map(Number);
      this.tools.classList.toggle("zoomed", Boolean(this.domains.x || this.domains.y));
      this.collect();
      this.point(-1);
      this.live.removeAttribute("aria-busy");
    }

    collect() {
      const [left, top] = this.view.origin();
      const held = [...marksOf(this.view.scenegraph().root, left, top)].filter(spot =>
        spot.x + spot.wide >= left - 1 && spot.x <= left + this.view.width() + 1);
      const seen = new Set();
      const order = new Map(this.series.map((each, at) => [each.name, at]));
      const placed = spot => order.get(spot.series) ?? order.size;
      const isDown = held.length > 1 && held.every(spot => spot.isBox && Math.abs(spot.x - held[0].x) < 1);
      this.spots = held.filter(spot => {
        const same = `${spot.said}\n${Math.round(spot.x)}\n${Math.round(spot.y)}`;
        return seen.has(same) ? false : seen.add(same);
      }).sort((a, b) => placed(a) - placed(b) || a.line.localeCompare(b.line) || (isDown ? a.y - b.y : a.x - b.x || a.y - b.y));
    }

    scaleOf(channel) {
      try {
        const scale = this.view.scale(channel);
        return scale && scale.invert && scale.domain().length === 2 ? scale : null;
      } catch {
        return null;
      }
    }

    zoomable(channel) {
      const isShown = encodings(this.spec).some(each => each[channel]?.field && each[channel].axis !== null);
      return isShown && this.scaleOf(channel) !== null;
    }

    async narrow(domains) {
      Object.assign(this.domains, domains);
      await this.draw();
    }

    reset() {
      return this.narrow({ x: null, y: null });
    }

    /** Keeps `factor` of what is shown, around `middle`, in pixels of the plot. */
    async zoom(factor, middle = this.view.width() / 2) {
      const scale = this.scaleOf("x");
      if (!scale || !this.zoomable("x")) return;
      const wide = this.view.width();
      const ends = [middle - middle * factor, middle + (wide - middle) * factor];
      const [first, last] = this.full;
      const domain = ends.map(end => Math.min(Math.max(Number(scale.invert(end)), first), last));
      if (domain[0] <= first && domain[1] >= last) await this.reset();
      else if (domain[1] > domain[0]) await this.narrow({ x: domain });
    }

    /** Shows what the spot of that number says; none for -1. */
    point(at, isSpoken = false) {
      this.at = at;
      const spot = this.spots[at];
      this.tip.hidden = this.ring.hidden = !spot;
      if (!spot) return;
      const x = spot.x + spot.wide / 2, y = spot.isBox && spot.high > 12 && spot.wide < 60 ? spot.y : spot.y + spot.high / 2;
      this.ring.style.translate = `${x}px ${y}px`;
      this.tip.textContent = spot.said;
      const room = this.area.clientWidth, half = this.tip.offsetWidth / 2;
      const middle = Math.min(Math.max(x, half), Math.max(room - half, half));
      const above = y - this.tip.offsetHeight - 12;
      this.tip.style.translate = `${middle - half}px ${above < -8 ? y + 14 : above}px`;
      if (isSpoken) this.spoken.textContent = spot.said;
    }

    nearest(x, y) {
      let best = -1, least = Infinity;
      this.spots.forEach((spot, at) => {
        const far = away(spot, x, y);
        if (far < least) [best, least] = [at, far];
      });
      return best;
    }

    /** From one spot to another in the direction of a key. */
    step(key) {
      const { spots, at } = this;
      if (!spots.length) return;
      const here = spots[at];
      if (key === "Home" || !here) return this.point(0, true);
      if (key === "End") return this.point(spots.length - 1, true);
      if (key === "ArrowLeft" || key === "ArrowRight") {
        const next = at + (key === "ArrowRight" ? 1 : -1);
        return this.point(Math.min(Math.max(next, 0), spots.length - 1), true);
      }
      const others = [...new Set(spots.map(spot => spot.line))];
      if (others.length < 2) return this.step(key === "ArrowUp" ? "ArrowLeft" : "ArrowRight");
      const move = key === "ArrowDown" ? 1 : others.length - 1;
      const line = others[(others.indexOf(here.line) + move) % others.length];
      const near = spots.reduce((best, spot, each) => spot.line === line
        && (best < 0 || Math.abs(spot.x - here.x) < Math.abs(spots[best].x - here.x)) ? each : best, -1);
      this.point(near, true);
    }

    listen() {
      const { area } = this;
      const placed = event => {
        const box = this.stage.getBoundingClientRect();
        return [event.clientX - box.left, event.clientY - box.top];
      };
      let start = null;
      area.addEventListener("pointermove", event => {
        if (!this.view) return;
        const [x, y] = placed(event);
        if (!start) return this.point(this.nearest(x, y));
        const isTall = Math.abs(y - start[1]) > 40 && this.zoomable("y");
        const [, top] = this.view.origin();
        Object.assign(this.brush.style, {
          left: `${Math.min(x, start[0])}px`, width: `${Math.abs(x - start[0])}px`,
          top: `${isTall ? Math.min(y, start[1]) : top}px`,
          height: `${isTall ? Math.abs(y - start[1]) : this.view.height()}px`,
        });
        this.brush.hidden = Math.abs(x - start[0]) < 6;
      });
      area.addEventListener("pointerleave", () => this.point(-1));
      area.addEventListener("pointerdown", event => {
        if (!this.view) return;
        if (event.pointerType === "touch") return this.point(this.nearest(...placed(event)));
        if (event.button || !this.zoomable("x")) return;
        start = placed(event);
        area.setPointerCapture(event.pointerId);
      });
      area.addEventListener("pointerup", event => {
        if (!start) return;
        const from = start, to = placed(event);
        start = null;
        this.brush.hidden = true;
        if (Math.abs(to[0] - from[0]) < 6) return;
        const [left, top] = this.view.origin();
        const within = (channel, ends, size) => ends.map(end => Math.min(Math.max(end, 0), size))
          .map(end => Number(this.scaleOf(channel).invert(end))).sort((a, b) => a - b);
        const domains = { x: within("x", [from[0] - left, to[0] - left], this.view.width()) };
        if (Math.abs(to[1] - from[1]) > 40 && this.zoomable("y"))
          domains.y = within("y", [from[1] - top, to[1] - top], this.view.height());
        if (domains.x[1] > domains.x[0]) this.narrow(domains);
      });
      area.addEventListener("pointercancel", () => {
        start = null;
        this.brush.hidden = true;
      });
      area.addEventListener("dblclick", () => this.reset());
      area.addEventListener("wheel", event => {
        // A plain wheel scrolls the page.
        if (!event.ctrlKey && !event.metaKey || !this.view || !this.zoomable("x")) return;
        event.preventDefault();
        this.zoom(event.deltaY < 0 ? 0.8 : 1.25, placed(event)[0] - this.view.origin()[0]);
      }, { passive: false });
      area.addEventListener("keydown", event => {
        if (event.ctrlKey || event.metaKey || event.altKey || !this.view) return;
        if (/^(Arrow|Home$|End$)/.test(event.key)) this.step(event.key);
        else if (event.key === "+" || event.key === "=") this.zoom(FACTOR, this.centre());
        else if (event.key === "-") this.zoom(1 / FACTOR, this.centre());
        else if (event.key === "0" || event.key === "Escape") this.reset();
        else return;
        event.preventDefault();
      });
      area.addEventListener("blur", () => this.point(-1));
    }

    centre() {
      const spot = this.spots[this.at];
      return spot ? spot.x + spot.wide / 2 - this.view.origin()[0] : this.view.width() / 2;
    }
  }

  const begin = async () => {
    const { looks, charts } = JSON.parse(await unpacked(packed));
    const drawings = new Map();
    const seen = new IntersectionObserver(entries => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting || drawings.has(target)) continue;
        const drawing = new Drawing(target, charts[target.id], looks);
        drawings.set(target, drawing);
        drawing.mount();
        sized.observe(drawing.live);
      }
    }, { rootMargin: "300px" });
    const sized = new ResizeObserver(entries => {
      for (const { target } of entries) {
        const drawing = drawings.get(target.closest("figure"));
        if (drawing?.view && Math.abs(target.clientWidth - drawing.width) > 1) drawing.draw();
      }
    });
    for (const id of Object.keys(charts)) {
      const figure = document.getElementById(id);
      if (figure?.querySelector(".still")) seen.observe(figure);
    }
  };
  begin();
})();
