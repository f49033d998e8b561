// SPDX-License-Identifier: MIT
// The x axis that all timelines share, and what mouse and keyboard do with it.
const LEFT = 70, RIGHT = 14, BOTTOM = 20;

const view = {
  low: 0, high: 1,      // in the units of the axis: microseconds or events
  isTime: true,

  whole() {
    const device = R.device;
    [this.low, this.high] = this.isTime ? [device.opens, device.closes]
      : [-1, Math.max(0, device.count - 1)];
    if (this.high <= this.low) this.high = this.low + 1;
  },
  position(moment) { return this.isTime ? R.device.timeAt(moment) : moment; },
  x(value, wide) {
    return LEFT + (value - this.low) / (this.high - this.low) * (wide - LEFT - RIGHT);
  },
  // The pixel column of each moment from `from` to `to`, kept inside the plot.
  columnsOf(from, to, wide) {
    const right = wide - RIGHT, scale = (right - LEFT) / (this.high - this.low);
    const found = new Int32Array(Math.max(0, to - from + 1)), {times} = R.device;
    for (let i = from; i <= to; i++) {
      const x = Math.round(LEFT + ((this.isTime ? times[i + 1] : i) - this.low) * scale);
      found[i - from] = x < LEFT ? LEFT : x > right ? right : x;
    }
    return found;
  },
  value(x, wide) {
    return this.low + (x - LEFT) / (wide - LEFT - RIGHT) * (this.high - this.low);
  },
  momentAt(value) {
    const moment = this.isTime ? R.device.eventAtTime(value) : Math.round(value);
    return Math.max(-1, Math.min(R.device.count - 1, moment));
  },
  // First and last event that can be seen, one more on each side.
  range() {
    const device = R.device;
    const low = this.isTime ? device.eventAtTime(this.low) : Math.floor(this.low);
    const high = this.isTime ? device.eventAtTime(this.high) + 1 : Math.ceil(this.high);
    return [Math.max(-1, low), Math.min(device.count - 1, high)];
  },
  set(low, high) {
    const device = R.device, [first, last] = this.isTime ? [device.start, device.end]
      : [-1, Math.max(0, device.count - 1)];
    const least = this.isTime ? 1 : 2;
    let span = Math.min(Math.max(high - low, least), Math.max(last - first, least));
    low = Math.max(first, Math.min(low, last - span));
    this.low = low;
    this.high = low + span;
    R.draw();
  },
  zoom(factor, centre) {
    this.set(centre - (centre - this.low) * factor, centre + (this.high - centre) * factor);
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

function drawAxes(pen, wide, high, top, most) {
  pen.strokeStyle = colour('line');
  pen.fillStyle = colour('faint');
  pen.lineWidth = 1;
  pen.textAlign = 'right';
  pen.textBaseline = 'middle';
  for (const value of steps(0, most, 5, 1024)) {
    const y = Math.round(high - BOTTOM - value / most * (high - BOTTOM - top)) + 0.5;
    pen.beginPath();
    pen.moveTo(LEFT, y);
    pen.lineTo(wide - RIGHT, y);
    pen.stroke();
    pen.fillText(size(value), LEFT - 6, y);
  }
  pen.textAlign = 'center';
  pen.textBaseline = 'top';
  const base = view.isTime ? R.device.start : 0;
  const ticks = steps(view.low - base, view.high - base, Math.max(2, wide / 150), 10);
  // Far from the start all ticks would read the same: they count from the first of them.
  const isFar = view.isTime && ticks.length > 1 && ticks[0] > 200 * (ticks[1] - ticks[0]);
  ticks.forEach((value, place) => {
    const x = view.x(value + base, wide);
    pen.beginPath();
    pen.moveTo(x, high - BOTTOM);
    pen.lineTo(x, high - BOTTOM + 4);
    pen.stroke();
    pen.fillText(!view.isTime ? number(Math.round(value)) : isFar && place
      ? '+' + duration(value - ticks[0]) : duration(value), x, high - BOTTOM + 6);
  });
}

function drawMoment(pen, wide, high, top) {
  const x = view.x(view.position(R.moment), wide);
  if (x < LEFT - 1 || x > wide - RIGHT + 1) return;
  pen.strokeStyle = colour('moment');
  pen.setLineDash([4, 3]);
  pen.beginPath();
  pen.moveTo(x, top - 4);
  pen.lineTo(x, high - BOTTOM);
  pen.stroke();
  pen.setLineDash([]);
}

// Mouse and keys of a timeline. `hover(x, y, event)` shows what is there.
function control(canvas, hover, keys) {
  let from = null, band = null;
  const place = event => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top, box.width];
  };
  canvas.addEventListener('pointerdown', event => {
    if (event.button !== 0) return;
    from = place(event)[0];
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', event => {
    const [x, y] = place(event);
    if (from !== null && Math.abs(x - from) > 4) {
      band = [Math.min(x, from), Math.max(x, from)];
      tip('');
      R.drawSoon(() => shade(canvas, band));
      return;
    }
    hover(x, y, event);
  });
  canvas.addEventListener('pointerup', event => {
    const [x, y, wide] = place(event);
    if (from === null) return;
    if (band) view.set(view.value(band[0], wide), view.value(band[1], wide));
    else R.choose(view.momentAt(view.value(x, wide)), canvas, x, y);
    from = band = null;
  });
  canvas.addEventListener('pointerleave', () => tip(''));
  canvas.addEventListener('dblclick', () => { view.whole(); R.draw(); });
  canvas.addEventListener('wheel', event => {
    event.preventDefault();
    const [x, , wide] = place(event);
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const shift = event.deltaX / wide * (view.high - view.low);
      view.set(view.low + shift, view.high + shift);
    } else {
      view.zoom(Math.exp(event.deltaY * 0.0015), view.value(x, wide));
    }
  }, {passive: false});
  canvas.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (keys && keys(event)) { event.preventDefault(); return; }
    if (moveByKey(event)) event.preventDefault();
  });
}

function shade(canvas, band) {
  const pen = canvas.getContext('2d');
  pen.fillStyle = colour('accent');
  pen.globalAlpha = 0.2;
  pen.fillRect(band[0], 0, band[1] - band[0], canvas.clientHeight - BOTTOM);
  pen.globalAlpha = 1;
}

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
    case '0': view.whole(); R.draw(); break;
    case 'PageUp': view.set(view.low - span / 2, view.high - span / 2); break;
    case 'PageDown': view.set(view.low + span / 2, view.high + span / 2); break;
    default: return false;
  }
  return true;
}
