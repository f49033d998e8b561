// SPDX-License-Identifier: MIT
// A table that is sorted by its heads. Columns: {title, key(row), show(row), isNumber}.
class SortedTable {
  constructor(columns, options) {
    this.columns = columns;
    this.options = options || {};
    this.sort = this.options.sort || 0;
    this.isDown = true;
    this.most = this.options.most || 200;
    this.body = make('tbody');
    this.heads = columns.map((column, place) => make('th', {class: column.isNumber ? 'n' : '',
      scope: 'col'}, make('button', {text: column.title, onclick: () => this.sortBy(place)})));
    this.element = make('div', {class: 'scroll'}, make('table', {id: this.options.id},
      make('thead', {}, make('tr', {}, ...this.heads)), this.body));
    this.more = make('button', {hidden: true,
      onclick: () => { this.most = Infinity; this.fill(); }});
  }

  setRows(rows) { this.rows = rows; this.fill(); }

  sortBy(place) {
    this.isDown = this.sort === place ? !this.isDown : true;
    this.sort = place;
    this.fill();
  }

  fill() {
    const {key} = this.columns[this.sort], sign = this.isDown ? -1 : 1;
    const rows = this.rows.slice().sort((a, b) => {
      const left = key(a), right = key(b);
      return sign * (left < right ? -1 : left > right ? 1 : 0);
    });
    this.heads.forEach((head, place) => head.setAttribute('aria-sort', place !== this.sort ? 'none'
      : this.isDown ? 'descending' : 'ascending'));
    this.shown = rows.slice(0, this.most);
    this.body.replaceChildren(...this.shown.map(row => this.line(row)));
    this.markChosen();
    this.more.hidden = rows.length <= this.shown.length;
    this.more.textContent = 'show all ' + number(rows.length);
  }

  line(row) {
    const cells = this.columns.map(column => {
      const cell = make('td', {class: column.isNumber ? 'n' : ''});
      cell.append(column.show(row));
      return cell;
    });
    const {choose} = this.options;
    return make('tr', !choose ? {} : {tabindex: 0, onclick: () => choose(row),
      onkeydown: event => {
        const next = event.key === 'ArrowDown' ? event.currentTarget.nextSibling
          : event.key === 'ArrowUp' ? event.currentTarget.previousSibling : null;
        if (event.key === 'Enter') choose(row);
        else if (next) next.focus();
        else return;
        event.preventDefault();
      }}, ...cells);
  }

  markChosen() {
    const {isChosen} = this.options;
    if (!isChosen) return;
    this.shown.forEach((row, place) =>
      this.body.children[place].classList.toggle('choice', isChosen(row)));
  }
}

// Columns after the first are numbers, unless all of them are texts.
function plainTable(heads, rows, id, isText) {
  const cell = (tag, text, place) => make(tag, {text: String(text),
    scope: tag === 'th' ? 'col' : null, class: isText ? 'text' : place ? 'n' : ''});
  const line = (tag, texts) => make('tr', {}, ...texts.map((text, place) =>
    cell(tag, text, place)));
  return make('div', {class: 'scroll'}, make('table', {id}, make('thead', {}, line('th', heads)),
    make('tbody', {}, ...rows.map(row => line('td', row)))));
}
