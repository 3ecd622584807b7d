// Numbers for people, and elements in which names are never markup.

function digits(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 1 : size >= 10 ? 2 : 3).replace(/\.?0+$/, '');
}

export function time(ns: number): string {
  const size = Math.abs(ns);
  if (size === 0) return '0 s';
  if (size >= 1e9) return `${digits(ns / 1e9)} s`;
  if (size >= 1e6) return `${digits(ns / 1e6)} ms`;
  if (size >= 1e3) return `${digits(ns / 1e3)} us`;
  return `${digits(ns)} ns`;
}

// In the units in which it is a round number: 100 MB, but 64 MiB.
export function bytes(value: number): string {
  const isRound = (base: number) => {
    let size = value;
    while (size >= base) size /= base;
    return Number(size.toPrecision(3)) === size;
  };
  if (value >= 1000 && isRound(1000) && !isRound(1024)) {
    const power = Math.min(Math.floor(Math.log10(value) / 3 + 1e-9), 5);
    return `${digits(value / 1000 ** power)} ${['B', 'kB', 'MB', 'GB', 'TB', 'PB'][power]}`;
  }
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  while (value >= 1024 && unit + 1 < units.length) {
    value /= 1024;
    ++unit;
  }
  return `${unit === 0 ? Math.round(value) : digits(value)} ${units[unit]}`;
}

export function rate(value: number): string {
  return value >= 1e12
    ? `${digits(value / 1e12)} TB/s`
    : value >= 1e9
      ? `${digits(value / 1e9)} GB/s`
      : `${digits(value / 1e6)} MB/s`;
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
export function whole(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

type Child = Node | string | number | null | undefined | false;
type Attributes = Record<string, string | number | boolean | ((event: any) => void) | undefined>;

function fill(element: Element, attributes: Attributes, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (typeof value === 'function') element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

export function s(tag: string, attributes: Attributes = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  fill(element, attributes, children);
  return element;
}

export interface Column<Row> {
  name: string;
  text: (row: Row) => string | Node;
  value?: (row: Row) => number | string; // to sort by; without it the column cannot be sorted by
  title?: string;
}

// A table that is sorted by clicking a heading. At most `most` rows are shown.
export function table<Row>(
  columns: Column<Row>[],
  rows: Row[],
  options: {
    sort?: number;
    falling?: boolean;
    most?: number;
    click?: (row: Row) => void;
    label: string;
  },
): HTMLElement {
  let sort = options.sort ?? -1;
  let falling = options.falling ?? true;
  const most = options.most ?? 300;
  const box = h('div', { class: 'table-box' });
  const draw = () => {
    const sorted = [...rows];
    const value = columns[sort]?.value;
    if (value) {
      sorted.sort((a, b) => {
        const x = value(a);
        const y = value(b);
        const order =
          typeof x === 'number' && typeof y === 'number'
            ? x - y
            : String(x).localeCompare(String(y));
        return falling ? -order : order;
      });
    }
    const head = h(
      'tr',
      {},
      ...columns.map((column, i) => {
        const mark = i === sort ? (falling ? ' \u25be' : ' \u25b4') : '';
        const cell = h('th', {
          title: column.title,
          scope: 'col',
          'aria-sort': i === sort ? (falling ? 'descending' : 'ascending') : undefined,
        });
        if (!column.value) cell.append(column.name);
        else
          cell.append(
            h(
              'button',
              {
                click: () => {
                  falling = i === sort ? !falling : true;
                  sort = i;
                  draw();
                },
              },
              column.name + mark,
            ),
          );
        return cell;
      }),
    );
    const isNumber = columns.map(
      (column) => rows.length > 0 && typeof column.value?.(rows[0]) === 'number',
    );
    const body = sorted.slice(0, most).map((row) => {
      const line = h(
        'tr',
        options.click
          ? {
              tabindex: 0,
              class: 'link',
              click: () => options.click!(row),
              keydown: (event: KeyboardEvent) => {
                if (event.key === 'Enter') options.click!(row);
              },
            }
          : {},
      );
      columns.forEach((column, i) =>
        line.append(h('td', isNumber[i] ? { class: 'number' } : {}, column.text(row))),
      );
      return line;
    });
    box.replaceChildren(
      h('table', { 'aria-label': options.label }, h('thead', {}, head), h('tbody', {}, ...body)),
    );
    if (sorted.length > most)
      box.append(
        h(
          'p',
          { class: 'note' },
          `${whole(sorted.length - most)} more rows; sort or filter to see others first`,
        ),
      );
    if (sorted.length === 0) box.append(h('p', { class: 'note' }, 'nothing to show here'));
  };
  draw();
  return box;
}
