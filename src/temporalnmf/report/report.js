"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const svgSpace = document.querySelector("svg").namespaceURI;
  const past = data.past;
  const all = data.x.length;

  // Text is only ever set as text: names may come from untrusted files.
  function make(space, parent, tag, attributes = {}, text = null) {
    const node = space ? document.createElementNS(space, tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    if (text !== null) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  }
  const html = (parent, tag, attributes, text) => make(null, parent, tag, attributes, text);
  const svg = (parent, tag, attributes, text) => make(svgSpace, parent, tag, attributes, text);

  // A number for people, like `number_text` in formatting.py: three significant digits, no decimals
  // from 100 on, separated thousands.
  function say(value) {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-4 || size >= 1e9)) return value.toExponential(2);
    const digits = size >= 100 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 3 };
    return value.toLocaleString("en-GB", digits);
  }

  // Ticks are written exactly.
  function sayExactly(tick) {
    const size = Math.abs(tick);
    if (size !== 0 && (size < 1e-4 || size >= 1e9)) return tick.toExponential();
    return tick.toLocaleString("en-GB", { maximumSignificantDigits: 12 });
  }

  // Ticks

  function niceStep(span, count, least = 0) {
    const rough = span / Math.max(count, 1);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find((m) => m * power >= rough * 0.7) * power;
    return Math.max(step, least);
  }

  function multiples(low, high, step) {
    const found = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) {
      found.push(Number((i * step).toPrecision(12)));
    }
    return found;
  }

  const MINUTE = 6e4, HOUR = 36e5, DAY = 864e5, MONTH = 30.4 * DAY, YEAR = 365.25 * DAY;
  const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
  const two = (n) => String(n).padStart(2, "0");

  function yearsAndMonths(low, high, months) {
    const found = [];
    const first = new Date(low);
    let month = first.getUTCFullYear() * 12 + first.getUTCMonth();
    month = Math.floor(month / months) * months;
    for (; ; month += months) {
      const day = new Date(0);
      day.setUTCFullYear(Math.floor(month / 12), month % 12, 1);
      if (day > high) return found;
      if (day < low) continue;
      const year = String(day.getUTCFullYear());
      const short = day.getUTCMonth() === 0 ? year : MONTHS[day.getUTCMonth()];
      found.push([day.getTime(), months % 12 === 0 ? year : short]);
    }
  }

  function dateTicks(low, high, count) {
    const rough = (high - low) / Math.max(count, 1);
    if (rough > 0.75 * YEAR) {
      const years = Math.max(1, Math.round(niceStep((high - low) / YEAR, count, 1)));
      return yearsAndMonths(low, high, 12 * years);
    }
    if (rough > 20 * DAY) {
      return yearsAndMonths(low, high, [1, 2, 3, 6, 12].find((m) => m * MONTH >= rough) || 12);
    }
    const steps = [1, 5, 15, 30].map((m) => m * MINUTE)
      .concat([1, 3, 6, 12].map((h) => h * HOUR), [1, 2, 7, 14, 28].map((d) => d * DAY));
    const step = steps.find((s) => s >= rough) || 28 * DAY;
    return multiples(low, high, step).map((at) => {
      const day = new Date(at);
      const date = `${day.getUTCDate()} ${MONTHS[day.getUTCMonth()]}`;
      const time = `${two(day.getUTCHours())}:${two(day.getUTCMinutes())}`;
      return [at, step >= DAY || time === "00:00" ? date : time];
    });
  }

  function ticksOf(kind, x, text, low, high, count) {
    if (kind === "date") return dateTicks(low, high, count);
    if (kind === "number") {
      const whole = x.every(Number.isInteger);
      const step = niceStep(high - low, count, whole ? 1 : 0);
      // No thousands separator: these may be years.
      return multiples(low, high, step).map((at) => [at, String(at)]);
    }
    const every = Math.max(1, Math.ceil(x.length / Math.max(count, 1)));
    return x.map((at, i) => [at, text[i]]).filter((_, i) => i % every === 0);
  }

  // Charts

  function pathOf(px, py, values, from = 0) {
    let path = "", down = false;
    values.forEach((value, i) => {
      if (value === null) { down = false; return; }
      path += `${down ? "L" : "M"}${px(from + i)},${py(value)}`;
      down = true;
    });
    return path;
  }

  function areaOf(px, py, band) {
    let path = "", run = [];
    const close = () => {
      if (run.length > 1) {
        const top = run.map((i) => `${px(band.from + i)},${py(band.high[i])}`);
        const low = run.reverse().map((i) => `${px(band.from + i)},${py(band.low[i])}`);
        path += `M${top.join("L")}L${low.join("L")}Z`;
      }
      run = [];
    };
    band.low.forEach((low, i) => {
      if (low === null || band.high[i] === null) close(); else run.push(i);
    });
    close();
    return path;
  }

  // Eight colours, then the same with dashes; curves other than components have the text colour.
  const tone = ({ index }) => (index === "ink" ? "ink" : `c${index % 8}`);
  const dash = ({ index }) => (index === "ink" ? "d0" : `d${Math.floor(index / 8) % 4}`);

  let charts = 0;
  const drawn = [];  // functions that redraw each chart

  // spec: kind, x, text, series [{name, index, y, bands, style, visible}], and optionally gaps,
  // divide, state(i) (words about a step), tall, mini, zero, even (symmetric about zero), log (y
  // are logarithms), start (position of the cursor), ticks ([[at, text]] of the x-axis), range ([low,
  // high] of the y-axis), level (a line across).
  function chart(figure, spec) {
    const plot = figure.querySelector(".plot");
    const key = figure.querySelector(".key");
    const root = svg(plot, "svg", {});
    const n = spec.x.length;
    const clip = `clip${charts++}`;
    let cursor = spec.start ?? n - 1;
    let scales = null;
    let marks = null;

    if (spec.mini) {
      root.setAttribute("role", "img");
      root.setAttribute("aria-label", figure.getAttribute("aria-label"));
    } else {
      for (const [name, value] of Object.entries({
        role: "slider", tabindex: 0, "aria-valuemin": 0, "aria-valuemax": n - 1,
        "aria-label": `${figure.getAttribute("aria-label")}. Use the arrow keys to move along it.`,
      })) root.setAttribute(name, value);
    }

    function range() {
      if (spec.range) {
        const margin = 0.05 * (spec.range[1] - spec.range[0]);
        return [spec.range[0] - margin, spec.range[1] + margin, false];
      }
      let low = spec.zero ? 0 : Infinity, high = -Infinity, lines = -Infinity;
      const see = (value) => {
        if (value === null) return;
        low = Math.min(low, value);
        high = Math.max(high, value);
      };
      for (const series of spec.series) {
        if (!series.visible) continue;
        series.y.forEach(see);
        for (const value of series.y) if (value !== null) lines = Math.max(lines, value);
        for (const band of series.bands || []) {
          band.high.forEach(see);
          if (!spec.zero) band.low.forEach(see);
        }
      }
      if (!Number.isFinite(high)) return [0, 1, false];
      if (spec.even) {
        const most = 1.15 * Math.max(Math.abs(low), Math.abs(high));
        return [-most, most, false];
      }
      // A very wide band would flatten everything else.
      const cut = spec.zero && high > 3 * lines && lines > 0;
      if (cut) high = 3 * lines;
      if (high === low) high = low + (Math.abs(low) || 1);
      return [low, spec.zero ? high * 1.04 : high + (high - low) * 0.05, cut];
    }

    function draw() {
      const width = Math.max(plot.clientWidth, 240);
      const height = spec.mini ? 132 : Math.round(Math.min(spec.tall, 150 + width * 0.42));
      const margin = { top: spec.mini ? 8 : 26, right: 10, bottom: 24, left: 8 };
      root.replaceChildren();
      root.setAttribute("viewBox", `0 0 ${width} ${height}`);
      const [low, high, cut] = range();
      const yTicks = multiples(low, high, niceStep(high - low, spec.range ? 3 : spec.mini ? 2 : height / 80));
      const sayTick = (tick) => sayExactly(spec.log ? Number((10 ** tick).toPrecision(2)) : tick);
      const widest = Math.max(...yTicks.map((tick) => sayTick(tick).length), 1);
      margin.left += 7.8 * widest;
      const half = n > 1 ? [(spec.x[1] - spec.x[0]) / 2, (spec.x[n - 1] - spec.x[n - 2]) / 2] : [1, 1];
      const x0 = spec.x[0] - half[0], x1 = spec.x[n - 1] + half[1];
      const inner = width - margin.left - margin.right;
      const X = (at) => +(margin.left + ((at - x0) / (x1 - x0)) * inner).toFixed(1);
      const floor = height - margin.bottom;
      const Y = (v) => +(floor - ((v - low) / (high - low)) * (floor - margin.top)).toFixed(1);
      const px = (i) => X(spec.x[i]);

      const edge = svg(svg(root, "defs"), "clipPath", { id: clip });
      svg(edge, "rect", { x: margin.left, y: margin.top - 3, width: inner, height: floor - margin.top + 4 });
      for (const [from, to] of spec.gaps || []) {
        const a = Math.max(X(from), margin.left), b = Math.min(X(to), width - margin.right);
        if (b <= a) continue;
        svg(root, "rect", { class: "gap", x: a, y: margin.top, width: Math.max(b - a, 1.5), height: floor - margin.top });
      }
      for (const tick of yTicks) {
        svg(root, "line", { class: tick === 0 && !spec.log ? "base" : "grid", x1: margin.left, x2: width - margin.right, y1: Y(tick), y2: Y(tick) });
        svg(root, "text", { x: margin.left - 7, y: Y(tick) + 4, "text-anchor": "end" }, sayTick(tick));
      }
      if (low !== 0) svg(root, "line", { class: "base", x1: margin.left, x2: width - margin.right, y1: floor, y2: floor });
      let end = -Infinity;
      const along = inner / (spec.mini ? 90 : 80);
      for (const [at, text] of spec.ticks || ticksOf(spec.kind, spec.x, spec.text, x0, x1, along)) {
        const wide = 3.9 * text.length;
        const middle = Math.min(Math.max(X(at), wide), width - wide);
        if (middle - wide < end + 6) continue;
        end = middle + wide;
        svg(root, "line", { class: "base", x1: X(at), x2: X(at), y1: floor, y2: floor + 4 });
        svg(root, "text", { x: middle, y: floor + 18, "text-anchor": "middle" }, text);
      }
      if (spec.divide !== undefined && spec.divide !== null) {
        const at = X(spec.divide);
        svg(root, "line", { class: "divide", x1: at, x2: at, y1: margin.top, y2: floor });
        if (!spec.mini) {
          const room = width - margin.right - at > 56;
          svg(root, "text", { class: "mark", x: room ? at + 5 : at - 5, y: margin.top + 10, "text-anchor": room ? "start" : "end" }, "forecast");
        }
      }
      if (spec.level !== undefined) {
        svg(root, "line", { class: "base", x1: margin.left, x2: width - margin.right, y1: Y(spec.level), y2: Y(spec.level) });
      }
      if (cut) svg(root, "text", { x: margin.left + 4, y: margin.top + 10 }, "bands extend above");

      const body = svg(root, "g", { "clip-path": `url(#${clip})` });
      const groups = spec.series.map((series) => {
        const group = svg(body, "g", { class: `${tone(series)}${series.visible ? "" : " hidden"}` });
        for (const band of series.bands || []) svg(group, "path", { class: "band", d: areaOf(px, Y, band) });
        if (series.style === "dots") {
          series.y.forEach((value, i) => value !== null && svg(group, "circle", { class: "seen", cx: px(i), cy: Y(value), r: 2.5 }));
        } else if (series.style === "bars") {
          const thick = Math.max(Math.min((inner / n) * 0.7, 14), 0.8);
          const path = series.y.map((value, i) => value === null ? "" : `M${px(i)},${floor}V${Y(value)}`).join("");
          svg(group, "path", { class: "bars-of", d: path, "stroke-width": thick.toFixed(2) });
        } else {
          const pale = series.style === "pale" ? " pale" : "";
          svg(group, "path", { class: `line ${dash(series)}${pale}`, d: pathOf(px, Y, series.y) });
        }
        return group;
      });
      scales = { X, Y, px, floor, margin, width, height, groups };
      marks = null;
      if (!spec.mini) point(cursor, false);
    }

    // The cursor: a line, a dot on every visible curve, the values in the key.
    function point(i, shown = true) {
      cursor = Math.max(0, Math.min(n - 1, i));
      const { px, Y, floor, margin, width, groups } = scales;
      if (!marks) {
        const group = svg(root, "g", { "aria-hidden": "true" });
        marks = {
          group,
          line: svg(group, "line", { class: "cursor", y1: margin.top - 4, y2: floor }),
          text: svg(group, "text", { class: "now", y: margin.top - 10 }),
          dots: spec.series.map((series) => svg(group, "circle", { class: `dot ${tone(series)}`, r: 4 })),
        };
      }
      marks.group.classList.toggle("hidden", !shown);
      const at = px(cursor);
      marks.line.setAttribute("x1", at);
      marks.line.setAttribute("x2", at);
      const text = spec.text[cursor];
      const wide = 3.6 * text.length;
      marks.text.setAttribute("x", Math.min(Math.max(at, wide), width - wide));
      marks.text.setAttribute("text-anchor", "middle");
      marks.text.textContent = text;
      spec.series.forEach((series, s) => {
        const value = series.y[cursor];
        marks.dots[s].classList.toggle("hidden", value === null || value === undefined || !series.visible || series.style === "bars");
        if (value !== null && value !== undefined) {
          marks.dots[s].setAttribute("cx", at);
          marks.dots[s].setAttribute("cy", Math.max(Y(value), margin.top));
        }
        groups[s].classList.toggle("hidden", !series.visible);
      });
      tell();
    }

    const bandAt = (series, i) => {
      const band = (series.bands || []).find((one) => one.low[i - one.from] !== undefined);
      return band && band.low[i - band.from] !== null ? [band.low[i - band.from], band.high[i - band.from]] : null;
    };

    let cells = null;
    function tell() {
      const state = spec.state ? spec.state(cursor) : "";
      cells.when.firstChild.textContent = spec.text[cursor];
      cells.state.textContent = state ? ` ${state}` : "";
      const spoken = [];
      spec.series.forEach((series, s) => {
        const value = say(series.y[cursor]);
        const band = bandAt(series, cursor);
        cells.values[s].firstChild.textContent = value;
        cells.bands[s].textContent = band ? `${say(band[0])} to ${say(band[1])}` : "";
        cells.rows[s].classList.toggle("off", !series.visible);
        if (series.visible) spoken.push(`${series.name} ${value}`);
      });
      root.setAttribute("aria-valuenow", cursor);
      root.setAttribute("aria-valuetext", `${spec.text[cursor]}${state ? `, ${state}` : ""}: ${spoken.join("; ")}`);
    }

    function buildKey() {
      key.classList.toggle("row", !spec.switches);
      const when = html(key, "p", { class: "when" });
      when.append(document.createTextNode(""));
      cells = { when, state: html(when, "small"), values: [], bands: [], rows: [] };
      const list = html(key, "ul");
      spec.series.forEach((series) => {
        const row = html(list, "li");
        const label = html(row, spec.switches ? "label" : "span");
        if (spec.switches) {
          const box = html(label, "input", { type: "checkbox" });
          box.checked = series.visible;
          series.box = box;
          box.addEventListener("change", () => { series.visible = box.checked; draw(); });
        }
        const sign = svg(label, "svg", { class: `swatch ${tone(series)} ${dash(series)}`, viewBox: "0 0 24 8", "aria-hidden": "true" });
        if (series.style === "dots") svg(sign, "circle", { class: "seen", cx: 12, cy: 4, r: 3 });
        else svg(sign, "line", { x1: 1, x2: 23, y1: 4, y2: 4 });
        label.append(" ");
        html(label, "bdi", {}, series.name);
        const value = html(row, "span", { class: "value" });
        value.append(document.createTextNode(""));
        cells.values.push(value);
        cells.bands.push(html(value, "small"));
        cells.rows.push(row);
      });
      if (!spec.switches || spec.series.length < 3) return;
      const buttons = html(key, "div", { class: "buttons" });
      for (const [text, on] of [["Show all", true], ["Hide all", false]]) {
        html(buttons, "button", { type: "button" }, text).addEventListener("click", () => {
          for (const series of spec.series) series.visible = series.box.checked = on;
          draw();
        });
      }
    }

    function nearest(event) {
      const box = root.getBoundingClientRect();
      const at = ((event.clientX - box.left) / box.width) * scales.width;
      let a = 0, b = n - 1;
      while (b - a > 1) {
        const middle = (a + b) >> 1;
        if (scales.px(middle) < at) a = middle; else b = middle;
      }
      return at - scales.px(a) < scales.px(b) - at ? a : b;
    }

    if (!spec.mini) {
      buildKey();
      const follow = (event) => point(nearest(event));
      root.addEventListener("pointermove", follow);
      root.addEventListener("pointerdown", follow);
      root.addEventListener("pointerleave", (event) => {
        if (event.pointerType === "mouse" && document.activeElement !== root) point(spec.start ?? n - 1, false);
      });
      root.addEventListener("focus", () => point(cursor));
      root.addEventListener("blur", () => point(cursor, false));
      root.addEventListener("keydown", (event) => {
        const leap = Math.max(1, Math.round(n / 10));
        const to = {
          ArrowLeft: cursor - 1, ArrowDown: cursor - 1, ArrowRight: cursor + 1, ArrowUp: cursor + 1,
          PageDown: cursor - leap, PageUp: cursor + leap, Home: 0, End: n - 1,
        }[event.key];
        if (to === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
        event.preventDefault();
        point(to);
      });
    }
    draw();
    drawn.push(draw);
    let width = plot.clientWidth;
    new ResizeObserver(() => {
      if (plot.clientWidth === width) return;
      width = plot.clientWidth;
      requestAnimationFrame(draw);
    }).observe(plot);
  }

  // What the charts show

  const isGap = (at) => data.gaps.some(([from, to]) => from < at && at < to);
  const stateOf = (first) => (i) => {
    if (first + i >= past) return "forecast";
    return isGap(data.x[first + i]) ? "missing, filled in" : "";
  };

  // The part of a series from step `first` on.
  function since(first, series) {
    return {
      ...series,
      y: series.y.slice(first),
      bands: (series.bands || []).map((band) => {
        const cut = Math.max(first - band.from, 0);
        return { ...band, from: Math.max(band.from - first, 0), low: band.low.slice(cut), high: band.high.slice(cut) };
      }),
    };
  }

  const curves = data.components.map((series, index) => ({
    ...series, index,
    // More than eight lines are hard to read: the others start hidden.
    visible: data.components.length <= 8 || index < 6,
  }));
  chart(document.getElementById("activations"), {
    kind: data.kind, x: data.x, text: data.text, series: curves, gaps: data.gaps, divide: data.divide,
    state: stateOf(0), tall: 440, zero: true, switches: true, start: past - 1,
  });

  document.querySelectorAll(".spark").forEach((node, k) => {
    const y = data.components[k].y.slice(0, past);
    const top = Math.max(...y, 1e-300), from = data.x[0], to = data.x[past - 1];
    const px = (i) => +((240 * (data.x[i] - from)) / (to - from || 1)).toFixed(1);
    const py = (value) => +(46 - (44 * value) / top).toFixed(1);
    const line = pathOf(px, py, y);
    svg(node, "path", { class: "area", d: `${line}L240,48L0,48Z` });
    svg(node, "path", { d: line });
    const peak = y.indexOf(Math.max(...y));
    svg(node, "path", { class: "peak", d: `M${px(peak)},${py(y[peak])}h0.01` });
  });

  // Seasons, a panel per component, and what is left without them.
  document.querySelectorAll(".minis.season").forEach((group, i) => {
    const { x, text, ticks, range, lines } = data.seasons[i];
    group.querySelectorAll(".mini").forEach((figure, index) => {
      chart(figure, { kind: "text", x, text, ticks, range, level: 1, series: [{ index, y: lines[index], visible: true }], mini: true });
    });
  });
  document.querySelectorAll("#adjusted .mini").forEach((figure, index) => {
    const series = [
      { index, y: data.components[index].y, style: "pale", visible: true },
      { index, y: data.adjusted[index], visible: true },
    ];
    chart(figure, { kind: data.kind, x: data.x, text: data.text, gaps: data.gaps, divide: data.divide, zero: true, series, mini: true });
  });

  const totals = document.getElementById("totals");
  if (totals && data.totals) {
    const first = past - data.window;
    const near = { kind: data.kind, x: data.x.slice(first), text: data.text.slice(first), gaps: data.gaps, divide: data.divide, zero: true };
    const series = [since(first, { name: "the model", index: "ink", y: data.totals.model, bands: data.totals.bands, visible: true })];
    if (data.totals.observed) {
      const seen = data.totals.observed.concat(Array(all - past).fill(null));
      series.push(since(first, { name: "observed", index: "ink", y: seen, style: "dots", visible: true }));
    }
    chart(totals, { ...near, series, state: stateOf(first), tall: 340, start: all - first - 1 });
    document.querySelectorAll("#by-component .mini").forEach((figure, k) => {
      chart(figure, { ...near, series: [since(first, { ...curves[k], visible: true })], mini: true });
    });
  }

  const errors = document.getElementById("errors");
  if (errors && data.errors) {
    chart(errors, {
      kind: data.kind, x: data.x.slice(0, past), text: data.text.slice(0, past), gaps: data.gaps,
      series: [
        { name: "error per entry", index: "ink", y: data.errors, style: "bars", visible: true },
        { name: "the worst", index: 1, y: data.errors.map((y, i) => (data.worst.includes(i) ? y : null)), style: "bars", visible: true },
      ],
      state: stateOf(0), tall: 240, zero: true, start: past - 1,
    });
  }

  if (data.trace) {
    chart(document.getElementById("trace"), {
      kind: "number", x: data.trace.x, text: data.trace.x.map((at) => `iteration ${at}`),
      series: [{ name: "objective", index: "ink", y: data.trace.y, visible: true }], tall: 220,
    });
  }

  // Posterior draws: traces and ranks of each run.
  const runLines = (lines) => lines.map((y, index) => ({ index, y, visible: true }));
  document.querySelectorAll("#run-traces .mini").forEach((figure, i) => {
    const { sweeps, panels } = data.runs;
    chart(figure, { kind: "number", x: sweeps, text: sweeps, series: runLines(panels[i].lines), log: panels[i].log, mini: true });
  });
  document.querySelectorAll("#run-ranks .mini").forEach((figure, i) => {
    const { at, lines, reach } = data.runs.panels[i].ranks;
    const band = { from: 0, low: at.map(() => -reach), high: at.map(() => reach) };
    const agreed = { index: "ink", y: at.map(() => null), bands: [band], visible: true };
    chart(figure, { kind: "number", x: at, text: at, series: [agreed, ...runLines(lines)], even: true, mini: true });
  });

  // The table is built when it is first opened.
  const table = document.getElementById("activations-table");
  function fill() {
    const place = table.querySelector(".scroll");
    if (place.firstChild) return;
    const node = html(place, "table");
    html(node, "caption", {}, "Activations");
    const head = html(html(node, "thead"), "tr");
    html(head, "th", { scope: "col" }, data.noun[0].toUpperCase() + data.noun.slice(1));
    for (const series of curves) html(head, "th", { scope: "col" }, series.name);
    const body = html(node, "tbody");
    data.x.forEach((at, i) => {
      const row = html(body, "tr");
      const note = i >= past ? " (forecast)" : isGap(at) ? " (filled in)" : "";
      html(row, "th", { scope: "row" }, data.text[i] + note);
      for (const series of curves) html(row, "td", {}, say(series.y[i]));
    });
  }
  table.addEventListener("toggle", () => table.open && fill());

  // In print everything is open, except for a very long table; the table comes last.
  const opened = [];
  const home = table.parentNode;
  function toPaper() {
    document.querySelector("main").append(table);
    for (const node of document.querySelectorAll("details:not([open])")) {
      if (node === table) {
        if (all > 400) continue;
        fill();
      }
      node.open = true;
      opened.push(node);
    }
    for (const draw of drawn) draw();  // a folded chart had no width
  }
  function toScreen() {
    home.append(table);
    for (const node of opened.splice(0)) node.open = false;
  }
  window.addEventListener("beforeprint", toPaper);
  window.addEventListener("afterprint", toScreen);
  const paper = window.matchMedia("print");
  paper.addEventListener("change", () => (paper.matches ? toPaper() : toScreen()));
})();
