// SPDX-License-Identifier: MIT
// The x axis that all timelines share.
const view = {
  low: 0, high: 1,      // in the units of the axis: microseconds or events
  isTime: true,

  whole() {
    const device = R.device;
    [this.low, this.high] = this.isTime ? [device.opens, device.closes]
      : [-1, Math.max(0, device.count - 1)];
    if (this.high <= this.low) this.high = this.low + 1;
    R.drawSoon();
  },
  position(moment) { return this.isTime ? R.device.timeAt(moment) : moment; },
  momentAt(value) {
    const moment = this.isTime ? R.device.eventAtTime(value) : Math.round(value);
    return Math.max(-1, Math.min(R.device.count - 1, moment));
  },
  // The view cut into equal columns: firsts[c] is the first moment that lies in column c or later,
  // and the last entry that of what lies beyond the view.
  firsts(columns) {
    const device = R.device, found = new Int32Array(columns + 1);
    const step = (this.high - this.low) / columns, last = device.count;
    for (let c = 0; c < columns; c++) {
      const edge = this.low + c * step;
      found[c] = this.isTime ? lowerBound(device.time, edge)
        : Math.max(0, Math.min(last, Math.ceil(edge)));
    }
    found[columns] = this.isTime ? device.eventAtTime(this.high) + 1
      : Math.max(0, Math.min(last, Math.floor(this.high) + 1));
    return found;
  },
  set(low, high) {
    const device = R.device, [first, last] = this.isTime ? [device.start, device.end]
      : [-1, Math.max(0, device.count - 1)];
    const least = this.isTime ? 1 : 2;
    const span = Math.min(Math.max(high - low, least), Math.max(last - first, least));
    this.low = Math.max(first, Math.min(low, last - span));
    this.high = this.low + span;
    R.drawSoon();
  },
  zoom(factor, centre) {
    this.set(centre - (centre - this.low) * factor, centre + (this.high - centre) * factor);
  },
  // Moves the view so that a place can be seen.
  reveal(at) {
    if (at >= this.low && at <= this.high) return;
    const span = this.high - this.low;
    this.set(at - span / 2, at + span / 2);
  },
};

// Round steps of an axis: about `count` of them between two values.
function steps(low, high, count, units) {
  const rough = (high - low) / count;
  let step;
  if (units === 1024) {
    step = Math.pow(2, Math.ceil(Math.log2(Math.max(rough, 1))));
  } else {
    const power = Math.pow(10, Math.floor(Math.log10(Math.max(rough, 1e-9))));
    step = [1, 2, 5, 10].map(factor => factor * power).find(value => value >= rough);
  }
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high; value += step) found.push(value);
  return found;
}

// Keys that choose the moment or move the view; true where the key was one of them.
function moveByKey(event) {
  const span = view.high - view.low, last = R.device.count - 1;
  const far = direction => {
    const moment = view.momentAt(view.position(R.moment) + direction * span / 100);
    return moment === R.moment ? R.moment + direction : moment;
  };
  switch (event.key) {
    case 'ArrowLeft': R.choose(event.shiftKey ? far(-1) : R.moment - 1); break;
    case 'ArrowRight': R.choose(event.shiftKey ? far(1) : R.moment + 1); break;
    case 'Home': R.choose(-1); break;
    case 'End': R.choose(last); break;
    case 'p': R.choose(R.device.peak); break;
    case '+': case '=': view.zoom(0.5, view.position(R.moment)); break;
    case '-': view.zoom(2, view.position(R.moment)); break;
    case '0': view.whole(); break;
    case 'PageUp': view.set(view.low - span / 2, view.high - span / 2); break;
    case 'PageDown': view.set(view.low + span / 2, view.high + span / 2); break;
    default: return false;
  }
  return true;
}
