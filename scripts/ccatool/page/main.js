// SPDX-License-Identifier: MIT
// Puts the panels together, and holds what they share: device, moment, pinned call stack.
// A panel: build(section) makes its elements, deviceChanged() fills them, draw() paints them.
const PANELS = [
  ['overview', 'Overview', overview], ['timeline', 'Memory over time', timeline],
  ['bands', 'Stacked allocations', bands], ['state', 'Allocator state', state],
  ['stacks', 'Call stacks', stackTable], ['flame', 'Flame graph', flame],
  ['segments', 'Segments', segmentTable], ['statistics', 'Statistics', statistics],
  ['settings', 'Settings', settings], ['hooks', 'Hook coverage', hooks],
];
const FIRST_PANELS = 3;      // what a window shows at once; the others follow one by one

R.moment = -1;
R.pinned = null;
R.timing = {};
R.windowSize = 0;            // counts the sizes that the window has had
R.ready = new Set();         // panels that stand

// The timelines, which a change of the view or of the pinned stack draws anew.
R.draw = () => {
  timeline.draw();
  bands.draw();
};

let isQueued = false;
R.drawSoon = () => {
  if (isQueued) return;
  isQueued = true;
  requestAnimationFrame(() => { isQueued = false; R.draw(); });
};

R.choose = moment => {
  R.moment = Math.max(-1, Math.min(R.device.count - 1, moment));
  view.reveal(view.position(R.moment));
  timeline.plot.showMoment();
  bands.plot.showMoment();
  timeline.sayMoment();
  if (R.ready.has(state)) state.draw();
  if (R.ready.has(flame) && flame.choice.value === 'moment') flame.draw();
};

R.pin = stack => {
  if (!R.ready.has(stackTable)) return;
  R.pinned = stack === R.pinned ? null : stack;
  stackTable.pinChanged();
  state.draw();
  R.drawSoon();
};

// Fills the panels that stand with the device, and paints those that are not timelines.
function fill(panel) {
  if (panel.deviceChanged) panel.deviceChanged();
  if (panel.draw && panel !== timeline && panel !== bands) panel.draw();
}

R.setDevice = place => {
  R.device = R.devices[place];
  R.pinned = null;
  R.moment = R.device.count - 1;
  view.whole();
  for (const panel of R.ready) fill(panel);
  R.draw();
  timeline.sayMoment();
};

function buildHead() {
  const nav = byId('nav'), choice = byId('device');
  PANELS.forEach(([id, title], place) => nav.append(make('a', {href: '#' + id},
    make('kbd', {text: place < 9 ? (place + 1) + ' ' : ''}), title)));
  R.devices.forEach((device, place) => choice.append(make('option', {value: place,
    text: device.device + (device.summary.name ? '  ' + device.summary.name : '')})));
  byId('device-choice').hidden = R.devices.length < 2;
  choice.addEventListener('change', () => R.setDevice(Number(choice.value)));
  byId('axis').addEventListener('change', event => {
    view.isTime = event.target.value === 'time';
    view.whole();
  });
  byId('reset-zoom').addEventListener('click', () => view.whole());
  byId('theme').addEventListener('click', switchTheme);
  byId('help-button').addEventListener('click', () => byId('help').showModal());
}

function stand([id, title, panel]) {
  const section = make('section', {id, 'aria-labelledby': id + '-title', tabindex: -1},
    make('h2', {id: id + '-title', text: title}));
  byId('main').append(section);
  panel.build(section);
  R.ready.add(panel);
}

function switchTheme() {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === 'dark'
    : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = isDark ? 'light' : 'dark';
  themeChanged();
}

function themeChanged() {
  palette.forget();
  bands.deviceChanged();
  redrawAll();
}

function redrawAll() {
  R.windowSize++;
  R.draw();
  for (const panel of [state, flame]) if (R.ready.has(panel)) panel.draw();
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

function listen() {
  document.addEventListener('keydown', pageKey);
  let waiting = 0;
  addEventListener('resize', () => {
    clearTimeout(waiting);
    waiting = setTimeout(redrawAll, 60);
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', themeChanged);
}

// Until what was drawn is on the screen, and the browser has looked at its other work.
function pause() {
  return new Promise(done => requestAnimationFrame(() => setTimeout(done)));
}

function sayFailure(text) {
  byId('failure').hidden = false;
  byId('failure').textContent = text;
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
    sayFailure('No device of this snapshot has memory or events.');
    overview.build(byId('main').appendChild(make('section', {})));
    return;
  }
  buildHead();
  PANELS.slice(0, FIRST_PANELS).forEach(stand);
  let busiest = 0;
  R.devices.forEach((device, place) => {
    if (device.count > R.devices[busiest].count) busiest = place;
  });
  byId('device').value = busiest;
  R.setDevice(busiest);
  await pause();
  R.timing.first = performance.now();
  for (const row of PANELS.slice(FIRST_PANELS)) {
    stand(row);
    fill(row[2]);
    await pause();
  }
  listen();
  R.timing.all = performance.now();
  byId('main').append(make('p', {class: 'note', id: 'drawn', text: 'first drawn '
    + R.timing.first.toFixed(0) + ' ms after opening, whole after ' + R.timing.all.toFixed(0)
    + ' ms'}));
  window.ccaReport = {timing: R.timing, state: R, view, bands, memory: timeline, allocator: state};
}

start().catch(error => {
  sayFailure('This page could not be drawn: ' + error.message
    + (typeof DecompressionStream === 'undefined' ? ' (the browser is older than 2023)' : ''));
  throw error;
});
