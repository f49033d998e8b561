// SPDX-License-Identifier: MIT
// Live memory stacked by call stack. A band is a stack; the rest shares one at the bottom.
const bands = {
  build(section) {
    this.plot = new Plot(340, 8, {id: 'bands-canvas', 'aria-label': 'Live memory by call stack. '
      + 'Up and down walk through the bands, Enter pins.'});
    this.canvas = this.plot.canvas;
    section.append(
      make('p', {class: 'note', text: 'Each band is one call stack, the largest on top of the '
        + 'rest. Hover names it, a click pins it.'}),
      this.plot.element, this.legend = make('div', {class: 'legend', id: 'bands-legend'}));
    this.plot.control({hover: (x, y, event) => this.hover(x, y, event),
      click: (x, y) => this.click(x, y), keys: event => this.key(event)});
  },

  deviceChanged() {
    this.focus = null;      // the layer that the keyboard has chosen
    this.legend.replaceChildren(...R.device.ranked.map(stack => {
      const mark = make('i');
      mark.style.background = bandColour(R.device.rankOf.get(stack));
      return make('button', {title: stackText(stack).join('\n'), onclick: () => R.pin(stack)}, mark,
        stackName(stack));
    }));
  },

  // Of each column the bytes of each layer at its highest moment; of a column in which nothing
  // happens, at the moment before.
  compute(columns) {
    const device = R.device, {live, changeAt, changeBytes, changeLayer, layers} = device;
    const firsts = view.firsts(columns);
    const values = this.values = new Float64Array(columns * layers);
    const totals = this.totals = new Float64Array(columns);
    const {level, place} = device.layersBefore(firsts[0]);
    let next = place;
    const goTo = moment => {
      for (; next < changeAt.length && changeAt[next] <= moment; next++) {
        level[changeLayer[next]] += changeBytes[next];
      }
    };
    for (let c = 0; c < columns; c++) {
      const highest = highestBetween(live, firsts[c], firsts[c + 1]);
      goTo(highest);
      values.set(level, c * layers);
      const total = totals[c] = live[highest + 1];
      // What thinning left out belongs to the rest.
      let kept = 0;
      for (let layer = 0; layer < layers; layer++) kept += level[layer];
      if (total > kept) values[c * layers] += total - kept;
      goTo(firsts[c + 1] - 1);
    }
  },

  draw() {
    const {plot} = this, device = R.device, pen = plot.begin();
    this.compute(plot.columns);
    plot.most = highest(this.totals) * 1.05;
    const colours = [];
    for (let layer = 0; layer < device.layers; layer++) {
      const stack = device.stackOf(layer);
      const isPale = R.pinned !== null && R.pinned !== stack;
      colours.push(palette.pixel(bandColour(device.rankOf.get(stack)), isPale ? 0.28 : 1));
    }
    plot.paint(pen, this.values, colours);
    plot.axes(pen);
    if (this.focus !== null) this.outline(pen);
    plot.showMoment();
  },

  // Marks the layer that the keyboard has chosen.
  outline(pen) {
    const {columns} = this.plot, {layers} = R.device;
    const low = new Float64Array(columns), high = new Float64Array(columns);
    for (let c = 0; c < columns; c++) {
      for (let layer = 0; layer < this.focus; layer++) low[c] += this.values[c * layers + layer];
      high[c] = low[c] + this.values[c * layers + this.focus];
    }
    this.plot.stroke(pen, low, colour('text'));
    this.plot.stroke(pen, high, colour('text'));
  },

  // The band at a place of the canvas: {stack, bytes, total}, or null.
  at(x, y) {
    const {plot} = this, {layers} = R.device, bytes = plot.bytes(y);
    const column = Math.floor((x - LEFT) * plot.ratio);
    if (column < 0 || column >= plot.columns || bytes < 0) return null;
    let sum = 0;
    for (let layer = 0; layer < layers; layer++) {
      const part = this.values[column * layers + layer];
      sum += part;
      if (bytes < sum) return {stack: R.device.stackOf(layer), bytes: part,
        total: this.totals[column]};
    }
    return null;
  },

  text({stack, bytes, total}) {
    return size(bytes) + ', ' + percent(bytes, total) + ' of ' + size(total) + ' live\n'
      + (stack === undefined ? 'all other call stacks' : stackText(stack).join('\n'));
  },

  hover(x, y, event) {
    const found = this.at(x, y);
    tip(found ? this.text(found) : '', event.clientX, event.clientY);
  },

  click(x, y) {
    const found = this.at(x, y);
    if (found && found.stack !== undefined) R.pin(found.stack);
  },

  key(event) {
    const count = R.device.layers - 1;      // the rest cannot be chosen
    if (!count || !['ArrowUp', 'ArrowDown', 'Enter'].includes(event.key)) return false;
    if (event.key === 'Enter') {
      if (this.focus !== null) R.pin(R.device.stackOf(this.focus));
      return true;
    }
    const step = event.key === 'ArrowUp' ? 1 : -1;
    this.focus = this.focus === null ? count : (this.focus - 1 + step + count) % count + 1;
    const stack = R.device.stackOf(this.focus), box = this.canvas.getBoundingClientRect();
    const bytes = R.device.bytesByStack(R.moment).get(stack) || 0;
    R.drawSoon();
    tip(this.text({stack, bytes, total: R.device.level('live', R.moment)}), box.left + LEFT,
      box.top);
    return true;
  },
};
