// SPDX-License-Identifier: MIT
// Puts the panels together, and holds what they share: device, moment, pinned call stack.
const PANELS = [
  ['overview', 'Overview', overview], ['timeline', 'Memory over time', timeline],
  ['bands', 'Stacked allocations', bands], ['state', 'Allocator state', state],
  ['stacks', 'Call stacks', stackTable], ['flame', 'Flame graph', flame],
  ['segments', 'Segments', segmentTable], ['statistics', 'Statistics', statistics],
  ['settings', 'Settings', settings], ['hooks', 'Hook coverage', hooks],
];

R.moment = -1;
R.pinned = null;
R.timing = {};

R.draw = () => {
  const began = performance.now();
  timeline.draw();
  R.timing.timeline = performance.now() - began;
  bands.draw();
  R.timing.draw = performance.now() - began;
};

let queued = null;
R.drawSoon = after => {
  if (queued) { queued = after; return; }
  queued = after;
  requestAnimationFrame(() => { R.draw(); queued(); queued = null; });
};

// Chooses the moment; with a canvas, a click in it may also pin what is there.
R.choose = (moment, canvas, x, y) => {
  const began = performance.now();
  R.moment = Math.max(-1, Math.min(R.device.count - 1, moment));
  const at = view.position(R.moment);
  if (canvas === undefined && (at < view.low || at > view.high)) {
    const span = view.high - view.low;
    view.low = at - span / 2;
    view.high = at + span / 2;
  }
  if (canvas === bands.canvas) bands.click(x, y);
  R.draw();
  state.draw();
  timeline.sayMoment();
  if (flame.choice.value === 'moment') flame.draw();
  R.timing.choose = performance.now() - began;
};

R.pin = stack => {
  R.pinned = stack === R.pinned ? null : stack;
  stackTable.pinChanged();
  R.draw();
  state.draw();
};

R.setDevice = place => {
  R.device = R.devices[place];
  R.pinned = null;
  view.whole();
  for (const [, , panel] of PANELS) if (panel.deviceChanged) panel.deviceChanged();
  R.choose(R.device.count - 1);
  stackTable.pinChanged();
  flame.draw();
  byId('thinned').textContent = R.device.left_out ? 'Of ' + number(R.device.events)
    + ' events ' + number(R.device.kept) + ' are kept: the curves show the highest and lowest '
    + 'moments, ' + counted(R.device.left_out.blocks, 'block') + ' of '
    + size(R.device.left_out.largest) + ' and less are not shown one by one.' : '';
};

function buildPage() {
  const main = byId('main'), nav = byId('nav');
  PANELS.forEach(([id, title, panel], place) => {
    const section = make('section', {id, 'aria-labelledby': id + '-title', tabindex: -1},
      make('h2', {id: id + '-title', text: title}));
    main.append(section);
    panel.build(section);
    if (id === 'timeline') section.append(make('p', {class: 'note', id: 'thinned'}));
    nav.append(make('a', {href: '#' + id}, make('kbd', {text: place < 9 ? (place + 1) + ' ' : ''}),
      title));
  });
  main.append(make('p', {class: 'note', id: 'drawn'}));
  const choice = byId('device');
  R.devices.forEach((device, place) => choice.append(make('option', {value: place,
    text: device.device + (device.summary.name ? '  ' + device.summary.name : '')})));
  byId('device-choice').hidden = R.devices.length < 2;
  choice.addEventListener('change', () => R.setDevice(Number(choice.value)));
  byId('axis').addEventListener('change', event => {
    view.isTime = event.target.value === 'time';
    view.whole();
    R.draw();
  });
  byId('reset-zoom').addEventListener('click', () => { view.whole(); R.draw(); });
  byId('theme').addEventListener('click', switchTheme);
  byId('help-button').addEventListener('click', () => byId('help').showModal());
}

function switchTheme() {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === 'dark'
    : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = isDark ? 'light' : 'dark';
  redrawAll();
}

function redrawAll() {
  if (!R.device) return;
  bands.deviceChanged();
  R.draw();
  state.draw();
  flame.draw();
}

function pageKey(event) {
  const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key === 'Escape' && R.pinned !== null && !byId('help').open) R.pin(null);
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || byId('help').open) return;
  if (/^[1-9]$/.test(event.key) && PANELS[event.key - 1]) {
    const [id, , panel] = PANELS[event.key - 1];
    byId(id).scrollIntoView({behavior: 'instant'});
    (panel.canvas || byId(id)).focus({preventScroll: true});
  } else if (event.key === '/') {
    byId('stacks').scrollIntoView({behavior: 'instant'});
    stackTable.search.focus({preventScroll: true});
  } else if (event.key === 'd') switchTheme();
  else if (event.key === '?') byId('help').showModal();
  else return;
  event.preventDefault();
}

async function start() {
  R.timing.script = performance.now();
  R.head = JSON.parse(byId('head-data').textContent);
  const buffer = await unpack(byId('column-data').textContent);
  for (const device of R.head.devices) attach(device, buffer);
  R.timing.unpacked = performance.now();
  R.devices = R.head.devices.map(head => new Device(head));
  R.timing.sorted = performance.now();
  if (!R.devices.length) {
    const failure = byId('failure');
    failure.hidden = false;
    failure.textContent = 'No device of this snapshot has memory or events.';
    overview.build(byId('main').appendChild(make('section', {})));
  } else {
    buildPage();
    R.setDevice(0);
    let busiest = 0;
    R.devices.forEach((device, place) => {
      if (device.count > R.devices[busiest].count) busiest = place;
    });
    if (busiest) { byId('device').value = busiest; R.setDevice(busiest); }
    document.addEventListener('keydown', pageKey);
    let waiting = 0;
    addEventListener('resize', () => {
      clearTimeout(waiting);
      waiting = setTimeout(redrawAll, 60);
    });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redrawAll);
  }
  R.timing.first = performance.now();
  const drawn = byId('drawn');
  if (drawn) drawn.textContent = 'drawn ' + R.timing.first.toFixed(0) + ' ms after opening';
  window.ccaReport = {timing: R.timing, state: R, view, bands, memory: timeline, allocator: state};
}

start().catch(error => {
  const failure = byId('failure');
  failure.hidden = false;
  failure.textContent = 'This page could not be drawn: ' + error.message
    + (typeof DecompressionStream === 'undefined' ? ' (the browser is older than 2023)' : '');
  throw error;
});
