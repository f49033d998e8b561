// SPDX-License-Identifier: MIT
// Live, pending, reserved and other memory over time, with marks.
const timeline = {
  high: 260, top: 26,

  build(section) {
    section.append(
      make('div', {class: 'legend'},
        legendItem('live', 'live: handed out to the program'),
        legendItem('pending', 'pending: freed, the device is not done with it'),
        legendItem('reserved', 'reserved: held from the driver'),
        this.otherLabel = make('label', {hidden: true},
          this.otherBox = make('input', {type: 'checkbox', onchange: () => R.draw()}),
          make('span', {text: ' other'}))),
      this.canvas = make('canvas', {tabindex: 0, role: 'application', id: 'timeline-canvas',
        'aria-label': 'Timeline of memory. Arrow keys move the moment, plus and minus zoom.'}),
      this.readout = make('div', {class: 'readout', 'aria-live': 'polite', id: 'readout'}));
    control(this.canvas, (x, y, event) => this.hover(x, y, event));
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
    const points = this.others();
    this.otherLabel.hidden = !points.some(([, bytes]) => bytes > 0);
    if (points.length) {
      this.otherLabel.lastChild.textContent = ' other: '
        + size(points[points.length - 1][1]) + ' of the device, not ours (known at the dump'
        + (points.length > 1 ? ' and at each failure)' : ')');
    }
    this.otherBox.checked = points.some(([, bytes]) => bytes > 0
      && bytes < 3 * R.device.summary.reserved_peak_bytes);
  },

  draw() {
    const {pen, wide, high} = fresh(this.canvas, this.high), device = R.device, top = this.top;
    const others = this.otherBox.checked ? this.others() : [];
    const [from, to] = view.range();
    let most = 1;
    const columns = this.columns(from, to, wide);
    for (const column of columns) most = Math.max(most, column.busy, column.reserved);
    for (const [, bytes] of others) most = Math.max(most, bytes);
    most *= 1.06;
    this.most = most;
    drawAxes(pen, wide, high, top, most);
    const y = bytes => high - BOTTOM - bytes / most * (high - BOTTOM - top);
    this.area(pen, columns, y, 'pending', column => column.busy, 0.75);
    this.area(pen, columns, y, 'live', column => column.live, 0.9);
    this.line(pen, columns, y, 'reserved', column => column.reserved, wide);
    pen.fillStyle = colour('other');
    for (const [moment, bytes] of others) {
      const x = view.x(view.position(moment), wide);
      pen.fillRect(Math.min(x, wide - RIGHT) - 3, y(bytes) - 3, 6, 6);
    }
    this.drawMarks(pen, wide, high, top);
    drawMoment(pen, wide, high, top);
  },

  // For each pixel the highest of each level; gaps take the level before.
  columns(from, to, wide) {
    const {live, pending, reserved} = R.device.levels, places = view.columnsOf(from, to, wide);
    const found = [];
    let current = null;
    const leave = (i, x) => {
      const last = {live: live[i], busy: live[i] + pending[i], reserved: reserved[i]};
      found.push({x: current.x, ...last}, {x, ...last});   // a step, not a slope
    };
    for (let i = from; i <= to; i++) {
      const x = places[i - from], at = i + 1, busy = live[at] + pending[at];
      if (current && current.x === x) {
        if (live[at] > current.live) current.live = live[at];
        if (busy > current.busy) current.busy = busy;
        if (reserved[at] > current.reserved) current.reserved = reserved[at];
        continue;
      }
      if (current) leave(at - 1, x);
      current = {x, live: live[at], busy, reserved: reserved[at]};
      found.push(current);
    }
    if (current) leave(to + 1, wide - RIGHT);
    return found;
  },

  area(pen, columns, y, name, value, alpha) {
    if (!columns.length) return;
    pen.fillStyle = colour(name);
    pen.globalAlpha = alpha;
    pen.beginPath();
    pen.moveTo(columns[0].x, y(0));
    for (const column of columns) pen.lineTo(column.x, y(value(column)));
    pen.lineTo(columns[columns.length - 1].x, y(0));
    pen.fill();
    pen.globalAlpha = 1;
  },

  line(pen, columns, y, name, value) {
    pen.strokeStyle = colour(name);
    pen.lineWidth = 1.8;
    pen.beginPath();
    columns.forEach((column, i) => {
      if (i) pen.lineTo(column.x, y(value(column))); else pen.moveTo(column.x, y(value(column)));
    });
    pen.stroke();
    pen.lineWidth = 1;
  },

  markX(mark, wide) {
    return view.x(view.isTime ? mark.time : mark.at !== undefined ? mark.at
      : R.device.eventAtTime(mark.time), wide);
  },

  drawMarks(pen, wide, high, top) {
    pen.textAlign = 'center';
    pen.textBaseline = 'middle';
    for (const mark of R.device.marks) {
      const x = this.markX(mark, wide);
      const isSeen = x >= LEFT - 1 && x <= wide - RIGHT + 1;
      if (mark.kind === 'span') {
        const end = mark.end === null ? wide - RIGHT
          : this.markX({time: mark.end}, wide);
        const low = Math.max(LEFT, x), high2 = Math.min(wide - RIGHT, end);
        if (high2 <= low) continue;
        pen.fillStyle = colour('other');
        pen.globalAlpha = 0.35;
        pen.fillRect(low, 2, Math.max(2, high2 - low), 7);
        pen.globalAlpha = 1;
      } else if (isSeen) {
        pen.fillStyle = pen.strokeStyle = colour(mark.kind === 'oom' ? 'mark' : 'accent');
        pen.beginPath();
        if (mark.kind === 'oom') {
          pen.moveTo(x - 6, 10); pen.lineTo(x + 6, 10); pen.lineTo(x, 21);
        } else if (mark.kind === 'snapshot') {
          pen.moveTo(x, 10); pen.lineTo(x + 5, 15.5); pen.lineTo(x, 21); pen.lineTo(x - 5, 15.5);
        } else {
          pen.arc(x, 15.5, 4, 0, 7);
        }
        pen.fill();
        pen.globalAlpha = 0.5;
        pen.beginPath();
        pen.moveTo(x, 21);
        pen.lineTo(x, high - BOTTOM);
        pen.stroke();
        pen.globalAlpha = 1;
      }
    }
    if (!R.device.peak_is_lost && R.device.count) {
      const x = view.x(view.position(R.device.peak), wide);
      if (x >= LEFT && x <= wide - RIGHT) {
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
    const wide = this.canvas.clientWidth;
    if (y < this.top) {
      const near = R.device.marks.filter(mark => {
        const at = this.markX(mark, wide);
        return mark.kind === 'span' ? at - 4 <= x && (mark.end === null
          || x <= this.markX({time: mark.end}, wide) + 4) : Math.abs(at - x) < 8;
      });
      if (near.length) {
        tip(near.slice(0, 4).map(mark => this.describe(mark)).join('\n\n'), event.clientX,
          event.clientY);
        return;
      }
    }
    const moment = view.momentAt(view.value(x, wide));
    tip(this.momentText(moment), event.clientX, event.clientY);
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

function legendItem(name, text) {
  const mark = make('i');
  mark.style.background = 'var(--' + name + ')';
  return make('span', {}, mark, text);
}
