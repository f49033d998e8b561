// SPDX-License-Identifier: MIT
// Live, pending, reserved and other memory over time, with marks.
const timeline = {
  build(section) {
    this.plot = new Plot(260, 26, {id: 'timeline-canvas', 'aria-label': 'Timeline of memory. '
      + 'Arrow keys move the moment, plus and minus zoom.'});
    this.canvas = this.plot.canvas;
    section.append(
      make('div', {class: 'legend'},
        legendItem('live', 'live: handed out to the program'),
        legendItem('pending', 'pending: freed, the device is not done with it'),
        legendItem('reserved', 'reserved: held from the driver'),
        this.otherLabel = make('label', {hidden: true},
          this.otherBox = make('input', {type: 'checkbox', onchange: () => R.drawSoon()}),
          make('span', {text: ' other'}))),
      this.plot.element,
      this.readout = make('div', {class: 'readout', 'aria-live': 'polite', id: 'readout'}),
      this.thinned = make('p', {class: 'note', id: 'thinned'}));
    this.plot.control({hover: (x, y, event) => this.hover(x, y, event)});
  },

  // What others hold of the device: known when the snapshot was written and at each failure.
  others() {
    const device = R.device, summary = device.summary, points = [];
    for (const mark of device.marks) {
      if (mark.kind === 'oom' && summary.device_total_bytes) {
        points.push([mark.at, Math.max(0, summary.device_total_bytes - mark.free
          - device.level('reserved', mark.at))]);
      }
    }
    if (summary.device_other_bytes !== null) {
      points.push([device.count - 1, summary.device_other_bytes]);
    }
    return points;
  },

  deviceChanged() {
    const device = R.device, points = this.others();
    this.otherLabel.hidden = !points.some(([, bytes]) => bytes > 0);
    if (points.length) {
      this.otherLabel.lastChild.textContent = ' other: '
        + size(points[points.length - 1][1]) + ' of the device, not ours (known at the dump'
        + (points.length > 1 ? ' and at each failure)' : ')');
    }
    this.thinned.textContent = !device.left_out ? '' : 'Of ' + number(device.events) + ' events '
      + number(device.kept) + ' are kept: the curves show the highest and lowest moments, '
      + counted(device.left_out.blocks, 'block') + ' of ' + size(device.left_out.largest)
      + ' and less are not shown one by one.';
    this.otherBox.checked = points.some(([, bytes]) => bytes > 0
      && bytes < 3 * device.summary.reserved_peak_bytes);
  },

  draw() {
    const {plot} = this, pen = plot.begin(), {columns} = plot;
    const others = this.otherBox.checked ? this.others() : [];
    const {values, reserved} = this.compute(columns);
    plot.most = highest(reserved);
    for (let c = 0; c < columns; c++) {
      plot.most = Math.max(plot.most, values[2 * c] + values[2 * c + 1]);
    }
    for (const [, bytes] of others) plot.most = Math.max(plot.most, bytes);
    plot.most *= 1.06;
    plot.paint(pen, values, [palette.pixel(colour('live'), 0.9),
      palette.pixel(colour('pending'), 0.85)]);
    plot.axes(pen);
    plot.stroke(pen, reserved, colour('reserved'));
    pen.fillStyle = colour('other');
    for (const [moment, bytes] of others) {
      const x = plot.x(view.position(moment));
      pen.fillRect(Math.min(x, plot.wide - RIGHT) - 3, plot.y(bytes) - 3, 6, 6);
    }
    this.drawMarks(pen);
    plot.showMoment();
  },

  // Of each column the highest live, live and pending together, and reserved memory; what is
  // pending is painted on top of what is live.
  compute(columns) {
    const {live, pending, reserved} = R.device, firsts = view.firsts(columns);
    const values = new Float64Array(2 * columns), held = new Float64Array(columns);
    for (let c = 0; c < columns; c++) {
      // With nothing between the two, the level before counts.
      const first = Math.min(firsts[c], firsts[c + 1] - 1) + 1, last = firsts[c + 1];
      let mostLive = 0, mostBusy = 0, mostHeld = 0;
      for (let i = first; i <= last; i++) {
        if (live[i] > mostLive) mostLive = live[i];
        if (live[i] + pending[i] > mostBusy) mostBusy = live[i] + pending[i];
        if (reserved[i] > mostHeld) mostHeld = reserved[i];
      }
      values[2 * c] = mostLive;
      values[2 * c + 1] = mostBusy - mostLive;
      held[c] = mostHeld;
    }
    return {values, reserved: held};
  },

  markX(mark) {
    return this.plot.x(view.isTime ? mark.time : mark.at !== undefined ? mark.at
      : R.device.eventAtTime(mark.time));
  },

  // The left and right edge of an annotated span; one without an end reaches to the right.
  spanX(mark) {
    return [Math.max(LEFT, this.markX(mark)), Math.min(this.plot.wide - RIGHT, mark.end === null
      ? Infinity : this.markX({time: mark.end}))];
  },

  drawMarks(pen) {
    const {plot} = this, bottom = plot.high - BOTTOM;
    pen.textAlign = 'center';
    pen.textBaseline = 'middle';
    for (const mark of R.device.marks) {
      if (mark.kind === 'span') {
        const [low, high] = this.spanX(mark);
        if (high <= low) continue;
        pen.fillStyle = colour('other');
        pen.globalAlpha = 0.35;
        pen.fillRect(low, 2, Math.max(2, high - low), 7);
        pen.globalAlpha = 1;
        continue;
      }
      const x = this.markX(mark);
      if (!plot.isInside(x)) continue;
      pen.fillStyle = pen.strokeStyle = colour(mark.kind === 'oom' ? 'mark' : 'accent');
      pen.beginPath();
      MARK_SHAPES[mark.kind](pen, x);
      pen.fill();
      pen.globalAlpha = 0.5;
      pen.beginPath();
      pen.moveTo(x, 21);
      pen.lineTo(x, bottom);
      pen.stroke();
      pen.globalAlpha = 1;
    }
    if (!R.device.peak_is_lost && R.device.count) {
      const x = plot.x(view.position(R.device.peak));
      if (plot.isInside(x)) {
        pen.fillStyle = colour('faint');
        pen.fillText('peak', x, 16);
      }
    }
  },

  describe(mark) {
    const when = '+' + duration(mark.time - R.device.start) + '  ';
    if (mark.kind === 'oom') {
      return when + 'out of memory: ' + size(mark.size) + ' wanted, ' + size(mark.free)
        + ' free on the device\n' + stackText(mark.stack).slice(0, 6).join('\n');
    }
    if (mark.kind === 'span') {
      return when + 'annotation: ' + mark.text + (mark.end === null ? ' (not ended)'
        : ', ' + duration(mark.end - mark.time));
    }
    return when + (mark.kind === 'snapshot' ? 'snapshot' : 'annotation') + (mark.text
      ? ': ' + mark.text : '');
  },

  hover(x, y, event) {
    const near = y < this.plot.top ? R.device.marks.filter(mark => this.isNear(mark, x)) : [];
    tip(near.length ? near.slice(0, 4).map(mark => this.describe(mark)).join('\n\n')
      : this.momentText(view.momentAt(this.plot.value(x))), event.clientX, event.clientY);
  },

  isNear(mark, x) {
    if (mark.kind !== 'span') return Math.abs(this.markX(mark) - x) < 8;
    const [low, high] = this.spanX(mark);
    return low - 4 <= x && x <= high + 4;
  },

  momentText(moment) {
    const device = R.device;
    return '+' + duration(device.timeAt(moment) - device.start)
      + (device.left_out ? '' : ', event ' + number(moment + 1)) + '\nlive '
      + size(device.level('live', moment)) + '\npending '
      + size(device.level('pending', moment)) + '\nreserved '
      + size(device.level('reserved', moment)) + '\ncached '
      + size(device.level('reserved', moment) - device.level('live', moment)
        - device.level('pending', moment));
  },

  sayMoment() {
    const device = R.device, moment = R.moment;
    const names = ['', 'allocated', 'free requested', 'freed', 'freed', 'segment allocated',
      'segment freed', 'segment mapped', 'segment unmapped', 'out of memory', 'snapshot',
      'annotation', 'event'];
    const what = moment < 0 ? 'before the first event' : names[device.kind[moment]] + ' '
      + size(device.size[moment]) + ' by ' + stackName(device.stack[moment]);
    this.readout.textContent = 'moment: ' + this.momentText(moment).replace(/\n/g, ', ') + ' - '
      + what;
  },
};

// The outline of a mark between 10 and 21 pixels from the top.
const MARK_SHAPES = {
  oom(pen, x) { pen.moveTo(x - 6, 10); pen.lineTo(x + 6, 10); pen.lineTo(x, 21); },
  snapshot(pen, x) {
    pen.moveTo(x, 10);
    pen.lineTo(x + 5, 15.5);
    pen.lineTo(x, 21);
    pen.lineTo(x - 5, 15.5);
  },
  annotate(pen, x) { pen.arc(x, 15.5, 4, 0, 7); },
};

function legendItem(name, text) {
  const mark = make('i');
  mark.style.background = 'var(--' + name + ')';
  return make('span', {}, mark, text);
}
