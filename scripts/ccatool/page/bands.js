// SPDX-License-Identifier: MIT
// Live memory stacked by call stack. A band is a stack; the rest shares one at the bottom.
const bands = {
  high: 340, top: 8,

  build(section) {
    section.append(
      make('p', {class: 'note', text: 'Each band is one call stack, the largest on top of the '
        + 'rest. Hover names it, a click pins it.'}),
      this.canvas = make('canvas', {tabindex: 0, role: 'application', id: 'bands-canvas',
        'aria-label': 'Live memory by call stack. Up and down walk through the bands, Enter '
          + 'pins.'}),
      this.legend = make('div', {class: 'legend', id: 'bands-legend'}));
    control(this.canvas, (x, y, event) => this.hover(x, y, event), event => this.key(event));
    this.focus = null;
  },

  deviceChanged() {
    this.focus = null;
    this.legend.replaceChildren(...R.device.ranked.map((stack, place) => {
      const mark = make('i');
      mark.style.background = bandColour(place);
      return make('button', {title: stackText(stack).join('\n'), onclick: () => R.pin(stack)}, mark,
        stackName(stack));
    }));
  },

  // For each pixel the bytes of each band at that pixel's highest moment.
  compute(wide) {
    const device = R.device, count = device.ranked.length + 1, rest = count - 1;
    const level = new Float64Array(count), [from, to] = view.range();
    const columns = [], {changeAt, changeBytes, changeBand} = device, {live} = device.levels;
    const right = wide - RIGHT, places = view.columnsOf(from, to, wide);
    let next = 0, current = null;
    const apply = moment => {
      while (next < changeAt.length && changeAt[next] <= moment) {
        level[changeBand[next]] += changeBytes[next++];
      }
    };
    apply(from);
    // A column shows its highest moment; what follows until the next one is its last.
    const leave = x => {
      const values = level.slice();
      columns.push({x: current.x, total: current.last, values}, {x, total: current.last, values});
    };
    for (let i = from; i <= to; i++) {
      const x = places[i - from];
      if (current && current.x !== x) {
        leave(x);
        current = null;
      }
      apply(i);
      const total = live[i + 1];
      if (!current) {
        current = {x, total, values: level.slice(), last: total};
        columns.push(current);
      } else if (total >= current.total) {
        current.total = total;
        current.values.set(level);
      }
      current.last = total;
    }
    if (current) leave(right);
    // What thinning left out belongs to the rest.
    for (const column of columns) {
      let kept = 0;
      for (const value of column.values) kept += value;
      if (column.total > kept) column.values[rest] += column.total - kept;
    }
    return columns;
  },

  order() {
    const places = R.device.ranked.map((_, place) => place).reverse();
    return [R.device.ranked.length, ...places];
  },

  draw() {
    const {pen, wide, high} = fresh(this.canvas, this.high), top = this.top;
    const columns = this.shown = this.compute(wide);
    let most = 1;
    for (const column of columns) most = Math.max(most, column.total);
    this.most = most *= 1.05;
    drawAxes(pen, wide, high, top, most);
    const y = bytes => high - BOTTOM - bytes / most * (high - BOTTOM - top);
    const base = new Float64Array(columns.length);
    for (const band of this.order()) {
      const stack = R.device.ranked[band];
      pen.fillStyle = bandColour(stack === undefined ? -1 : band);
      pen.globalAlpha = R.pinned === null || R.pinned === stack ? 1 : 0.28;
      pen.beginPath();
      columns.forEach((column, i) => {
        if (i) pen.lineTo(column.x, y(base[i])); else pen.moveTo(column.x, y(base[i]));
      });
      for (let i = columns.length - 1; i >= 0; i--) {
        base[i] += columns[i].values[band];
        pen.lineTo(columns[i].x, y(base[i]));
      }
      pen.fill();
      if (this.focus === band) {
        pen.globalAlpha = 1;
        pen.strokeStyle = colour('text');
        pen.stroke();
      }
    }
    pen.globalAlpha = 1;
    drawMoment(pen, wide, high, top + 4);
  },

  // The band at a place of the canvas: {band, bytes, moment}, or null.
  at(x, y) {
    if (!this.shown || !this.shown.length || x < LEFT) return null;
    let column = this.shown[0];
    for (const one of this.shown) { if (one.x > x) break; column = one; }
    const high = this.high;
    const bytes = (high - BOTTOM - y) / (high - BOTTOM - this.top) * this.most;
    if (bytes < 0) return null;
    let sum = 0;
    for (const band of this.order()) {
      sum += column.values[band];
      if (bytes < sum) return {band, bytes: column.values[band], total: column.total};
    }
    return null;
  },

  text(found) {
    const stack = R.device.ranked[found.band];
    const share = size(found.bytes) + ', ' + percent(found.bytes, found.total) + ' of '
      + size(found.total) + ' live';
    return share + '\n' + (stack === undefined ? 'all other call stacks'
      : stackText(stack).join('\n'));
  },

  hover(x, y, event) {
    const found = this.at(x, y);
    tip(found ? this.text(found) : '', event.clientX, event.clientY);
  },

  click(x, y) {
    const found = this.at(x, y);
    if (found && R.device.ranked[found.band] !== undefined) R.pin(R.device.ranked[found.band]);
  },

  key(event) {
    const count = R.device.ranked.length;
    if (!count || !['ArrowUp', 'ArrowDown', 'Enter'].includes(event.key)) return false;
    if (event.key === 'Enter') {
      if (this.focus !== null) R.pin(R.device.ranked[this.focus]);
      return true;
    }
    const step = event.key === 'ArrowUp' ? -1 : 1;
    this.focus = this.focus === null ? 0 : (this.focus + step + count) % count;
    const stack = R.device.ranked[this.focus];
    const bytes = R.device.bytesByStack(R.moment).get(stack) || 0;
    const box = this.canvas.getBoundingClientRect();
    R.draw();
    tip(this.text({band: this.focus, bytes, total: R.device.level('live', R.moment)}),
      box.left + LEFT, box.top);
    return true;
  },
};
