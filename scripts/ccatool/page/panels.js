// SPDX-License-Identifier: MIT
// The panels that are text and tables.
const overview = {
  build(section) {
    const rows = make('dl', {class: 'rows'});
    for (const [title, text] of R.head.rows) {
      rows.append(make('dt', {text: title}), make('dd', {text}));
    }
    section.append(rows, this.facts = make('div', {class: 'facts', id: 'facts'}));
    if (R.head.hints.length) {
      section.append(make('h3', {text: 'What it suggests'}), make('ul', {class: 'hints'},
        ...R.head.hints.map(hint => make('li', {}, make('b', {text: hint.finding + ': '}),
          hint.evidence, hint.set ? make('span', {}, '. Try ', make('span', {class: 'mono',
            text: hint.set}), ', ' + hint.effect) : ''))));
    }
  },
  deviceChanged() {
    const one = R.device.summary, facts = [];
    const add = (title, value, remark) => facts.push(make('div', {class: 'fact'},
      make('span', {text: title}), make('b', {text: value}), make('span', {text: remark || ''})));
    add('live', size(one.live_bytes), counted(one.live_blocks, 'block') + ', peak '
      + size(one.live_peak_bytes));
    add('pending', size(one.pending_bytes), 'freed, not yet reusable');
    add('cached', size(one.cached_bytes), 'ready for reuse, ' + size(one.returnable_bytes)
      + ' returnable');
    const ratio = one.reserved_to_live_peak;
    add('reserved', size(one.reserved_bytes), counted(one.segments, 'segment') + ', peak '
      + size(one.reserved_peak_bytes) + (ratio >= 1.2 ? ', ' + ratio.toFixed(1)
        + ' times live at the peak' : ''));
    if (one.device_other_bytes) {
      add('other', size(one.device_other_bytes), 'of ' + size(one.device_total_bytes)
        + ' on the device, not ours');
    }
    if (one.unmanaged_bytes) {
      add('unmanaged', size(one.unmanaged_bytes), 'of this program, by calls that are not cached');
    }
    if (one.exported_bytes) {
      add('exported', size(one.exported_bytes), 'in ' + counted(one.exported_blocks, 'live block')
        + '; other processes may use them');
    }
    add('growth', one.growth ? '+' + size(one.growth.high_bytes - one.growth.low_bytes)
      : one.growth_known ? 'none' : 'unknown', one.growth ? 'in ' + duration(one.growth.span_us)
      : one.growth_known ? 'the last low of live memory was ' + size(one.last_low_bytes)
        : 'too few events to tell');
    add('fragmented', one.fragmentation === null ? '-'
      : (100 * one.fragmentation).toFixed(0) + ' %', one.fragmentation === null ? 'no free memory'
      : one.fragmentation_cause === 'crumbs' ? 'of ' + size(one.free_bytes)
        + ' free: live blocks hold it back'
      : 'serves up to ' + size(one.servable_bytes) + ' without the driver');
    if (one.allocs) {
      add('hit rate', percent(one.hits, one.allocs), number(one.hits) + ' of ' + number(one.allocs)
        + ' needed no driver call');
    }
    if (one.driver_allocs !== null) {
      add('driver calls', number(one.driver_allocs + (one.driver_frees || 0)),
        number(one.hits || 0) + ' saved' + (one.saved_us ? ', about ' + duration(one.saved_us)
          : ''));
    }
    add('trouble', one.retries || one.ooms ? number(one.retries) + ' / ' + number(one.ooms)
      : 'none', 'retries / out of memory');
    this.facts.replaceChildren(...facts);
  },
};

const stackTable = {
  build(section) {
    this.search = make('input', {type: 'search', id: 'stack-search',
      placeholder: 'search functions, files', 'aria-label': 'search call stacks',
      oninput: () => this.refresh()});
    this.table = new SortedTable([
      {title: 'at the peak', key: row => row.peak, show: row => size(row.peak), isNumber: true},
      {title: 'at the end', key: row => row.now, show: row => size(row.now), isNumber: true},
      {title: 'blocks', key: row => row.now_blocks, show: row => number(row.now_blocks),
        isNumber: true},
      {title: 'allocated in all', key: row => row.churn, show: row => size(row.churn),
        isNumber: true},
      {title: 'allocations', key: row => row.allocs, show: row => number(row.allocs),
        isNumber: true},
      {title: 'call stack', key: row => stackText(row.stack).join(), show: row => this.cell(row)},
    ], {id: 'stack-table', isChosen: row => row.stack === R.pinned,
      choose: row => R.pin(row.stack)});
    section.append(
      make('div', {class: 'legend'}, this.search, this.count = make('span', {class: 'note'})),
      this.table.element, this.table.more, this.pinned = make('div', {id: 'pinned', hidden: true}));
  },
  cell(row) {
    const frames = stackText(row.stack);
    return make('div', {}, make('div', {class: 'mono', text: frames[0]}),
      make('div', {class: 'callers', text: frames.length > 1 ? '< ' + frames.slice(1).join(' < ')
        : ''}));
  },
  refresh() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(word => word);
    const rows = R.head.uses.filter(row => row.devices.includes(R.device.device)
      && words.every(word => stackText(row.stack).join('\n').toLowerCase().includes(word)));
    this.table.setRows(rows);
    this.count.textContent = counted(rows.length, 'call stack') + (R.device.peak_is_lost
      ? '; the peak is older than the history: its oldest moment counts' : '');
  },
  deviceChanged() { this.refresh(); this.pinChanged(); },
  pinChanged() {
    this.table.markChosen();
    this.pinned.hidden = R.pinned === null;
    if (R.pinned === null) return;
    const use = R.head.uses.find(row => row.stack === R.pinned);
    this.pinned.replaceChildren(
      make('b', {text: 'pinned call stack'}), ' ',
      make('button', {text: 'let go (Esc)', onclick: () => R.pin(null)}),
      make('p', {class: 'note', text: use ? size(use.peak) + ' at the peak, ' + size(use.now)
        + ' at the end in ' + counted(use.now_blocks, 'block') + ', ' + size(use.churn) + ' in '
        + counted(use.allocs, 'allocation') : ''}),
      make('ol', {class: 'mono'}, ...stackText(R.pinned).map(text => make('li', {text}))));
  },
};

const segmentTable = {
  build(section) {
    this.table = new SortedTable([
      {title: 'size', key: row => row.bytes, show: row => size(row.bytes), isNumber: true},
      {title: 'live', key: row => row.live_bytes, show: row => size(row.live_bytes),
        isNumber: true},
      {title: 'free', key: row => row.free_bytes, show: row => size(row.free_bytes),
        isNumber: true},
      {title: 'largest free', key: row => row.largest_free_bytes,
        show: row => size(row.largest_free_bytes), isNumber: true},
      {title: 'blocks', key: row => row.blocks, show: row => number(row.blocks), isNumber: true},
      {title: 'use', key: row => row.live_bytes / row.bytes, show: row => this.bar(row)},
      {title: 'address', key: row => row.address, show: row => hex(row.address)},
      {title: 'kind', key: row => row.type || '', show: row => [row.type, row.expandable
        ? 'expandable' : '', row.pool_id[0] || row.pool_id[1] ? 'pool ' + row.pool_id.join('.')
        : '', row.stream ? 'stream ' + hex(row.stream) : ''].filter(Boolean).join(', ')},
    ], {id: 'segment-table'});
    section.append(this.table.element, this.table.more);
  },
  bar(row) {
    const part = (bytes, name) => {
      const piece = make('i');
      piece.style.width = 100 * bytes / row.bytes + '%';
      piece.style.background = 'var(--' + name + ')';
      return piece;
    };
    return make('div', {class: 'bar', role: 'img', 'aria-label': percent(row.live_bytes, row.bytes)
      + ' in use'}, part(row.live_bytes, 'live'), part(row.pending_bytes, 'pending'));
  },
  deviceChanged() { this.table.setRows(R.device.final_segments); },
};

const statistics = {
  build(section) { this.box = section.appendChild(make('div', {class: 'cols'})); },
  deviceChanged() {
    const {stats, counters} = R.device, groups = new Map(), plain = [];
    for (const [key, value] of Object.entries(stats)) {
      const match = /^(.*)\.(current|peak|allocated|freed)$/.exec(key);
      if (!match) { plain.push([key, number(value)]); continue; }
      if (!groups.has(match[1])) groups.set(match[1], {});
      groups.get(match[1])[match[2]] = value;
    }
    const show = (name, value) => value === undefined ? '-' : /bytes/.test(name) ? size(value)
      : number(value);
    const rows = [...groups].map(([name, values]) => [name, ...['current', 'peak', 'allocated',
      'freed'].map(metric => show(name, values[metric]))]);
    const own = Object.entries(counters).filter(([, value]) => typeof value === 'number')
      .map(([key, value]) => [key, /bytes/.test(key) ? size(value) : /_us$/.test(key)
        ? duration(value) : number(value)]);
    this.box.replaceChildren(
      make('div', {}, make('h3', {text: 'as in torch.cuda.memory_stats()'}),
        plainTable(['statistic', 'now', 'peak', 'allocated', 'freed'], rows, 'stats-table')),
      make('div', {}, make('h3', {text: 'counters'}),
        plainTable(['counter', 'value'], [...plain, ...own], 'counter-table')));
  },
};

const settings = {
  build(section) {
    const rows = R.head.settings;
    section.append(rows.length ? plainTable(['setting', 'value', 'default'], rows, 'settings-table',
      true)
      : make('p', {class: 'note', text: 'The snapshot holds no settings.'}));
  },
};

const hooks = {
  build(section) {
    const {hooks: rows, modules, unmanaged} = R.head;
    const used = rows.filter(([, , ...counts]) => counts.some(count => count));
    section.append(rows.length ? make('p', {class: 'note', text: 'Calls that the program made and '
      + 'the library saw; ' + counted(rows.length - used.length, 'other hooked call')
      + ' not used.'}) : '', used.length ? plainTable(['call', 'door', 'seen', 'served',
      'passed on', 'missed'], used.map(([api, door, ...counts]) => [api, door,
      ...counts.map(number)]), 'hook-table')
      : make('p', {class: 'note', text: 'The snapshot does not tell which calls were seen.'}));
    if (unmanaged.length) {
      section.append(make('h3', {text: 'Memory that passes by the allocator'}), plainTable(
        ['call', 'library', 'device', 'bytes', 'count'], unmanaged.map(row => [row.api,
          row.library, number(row.device), size(row.bytes), number(row.count)]), 'unmanaged-table'));
    }
    if (modules.length) {
      section.append(make('details', {}, make('summary', {text: counted(modules.length, 'module')}),
        plainTable(['module', 'build id'], modules.map(row => [row.path, row.build_id]), null,
          true)));
    }
  },
};
