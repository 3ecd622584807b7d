// Every view opens, clicks and keys do what they say, nothing is said on the console, no network is
// asked.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { chromium } from 'playwright-core';

const [rehearse, browserPath] = process.argv.slice(2);
const scenarios = resolve(
  import.meta.dirname ?? new URL('.', import.meta.url).pathname,
  '../../../scenarios',
);
const folder = mkdtempSync(join(tmpdir(), 'rehearse-pages-'));
const browser = await chromium.launch({ executablePath: browserPath, args: ['--no-sandbox'] });
let failures = 0;

function report(name, ...inputs) {
  const file = join(folder, name);
  execFileSync(rehearse, ['report', ...inputs, '-o', file], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return file;
}

// Opens the page, and after the test asks whether anything went wrong on the way.
async function test(title, file, body, expectsFailure = false) {
  if (process.env.ONLY && !title.includes(process.env.ONLY)) return; // while a test is written
  const said = [];
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  page.on('console', (message) => said.push(`console: ${message.text()}`));
  page.on('pageerror', (error) => said.push(`error: ${error.stack}`));
  page.on('dialog', (dialog) => {
    said.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (request) => {
    const url = request.url().replace(/#.*/, '');
    const isOfPage = url.endsWith('.html') && url.startsWith('file://');
    const isBundle = /^file:.*\/tools\/viewer\/bundle\/\w+\.js$/.test(url);
    if (!isOfPage && !isBundle && !url.startsWith('blob:') && !url.startsWith('data:'))
      said.push(`request: ${request.url().slice(0, 90)}`);
  });
  try {
    await page.goto(`file://${file}`);
    await page.waitForFunction(
      (fails) =>
        fails
          ? document.querySelector('.failure')
          : document.documentElement.dataset.ready === 'yes',
      expectsFailure,
      { timeout: 30000 },
    );
    await body(page);
    if (!expectsFailure) assert.deepEqual(said, []);
    console.log(`ok    ${title}`);
  } catch (error) {
    ++failures;
    console.log(`FAIL  ${title}\n${error.stack}\n${said.join('\n')}`);
  }
  await page.close();
}

const settled = (page) =>
  page.evaluate(
    () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
  );
// How many colours a canvas has: one that nothing was drawn on has one.
const colorsOf = async (page, selector) => {
  await settled(page); // what was asked for is drawn in a later frame
  return page.evaluate((one) => {
    const canvas = document.querySelector(one);
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const seen = new Set();
    for (let i = 0; i < data.length; i += 4)
      seen.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
    return seen.size;
  }, selector);
};
const view = (page) => page.evaluate(() => [window.rehearse.state.from, window.rehearse.state.to]);
// Chooses the longest communication op that is shown, by a click on the canvas.
async function clickAnOp(page) {
  const place = await page.evaluate(() => {
    const { state, timeline } = window.rehearse;
    const run = state.page.runs[0];
    const { shown } = timeline.ranks[0];
    let best = -1;
    for (let i = shown.first; i < shown.end; ++i)
      if (
        run.communicates(i) &&
        (best < 0 || run.end[i] - run.begin[i] > run.end[best] - run.begin[best])
      )
        best = i;
    state.choose({ run, span: best }, true);
    state.choose(null);
    timeline.drawNow();
    const at = timeline.placeOf(run, best);
    const box = timeline.canvas.getBoundingClientRect();
    return { x: box.left + at.x, y: box.top + at.y, span: best };
  });
  await page.mouse.click(place.x, place.y);
  return place.span;
}

const one = report('one.html', join(scenarios, 'axonn-gpt20b-perlmutter.json'));
await test('every view of one step opens', one, async (page) => {
  const panels = await page.evaluate(() => window.rehearse.panels);
  assert.deepEqual(panels, ['selection', 'breakdown', 'memory', 'cluster', 'collectives']);
  for (let i = 0; i < panels.length; ++i) {
    await page.keyboard.press(String(i + 1));
    await settled(page);
    assert.ok(await page.isVisible(`#panel-${panels[i]}`), panels[i]);
    assert.ok((await page.textContent(`#panel-${panels[i]}`)).length > 20, panels[i]);
  }
  assert.ok((await colorsOf(page, '.timeline canvas')) > 8);
  await page.click('#tab-memory');
  await settled(page);
  assert.ok((await colorsOf(page, '#panel-memory canvas')) > 5);
  await page.click('#tab-cluster');
  await page.hover('.timeline canvas', { position: { x: 700, y: 80 } });
  await settled(page);
  assert.ok((await colorsOf(page, '#panel-cluster canvas')) > 5);
});
const incast = report('incast.html', join(scenarios, 'lessons/incast.json'));
await test('a network packet by packet shows its ports, and who held whom up', incast, async (page) => {
  await page.click('#tab-network');
  await settled(page);
  const text = () => page.textContent('#panel-network');
  assert.match(await text(), /Because of it 5 ports stood still/);
  assert.match(await text(), /Victims, whose way does not lead over it.*activations/s);
  assert.ok((await colorsOf(page, '#panel-network canvas')) > 3);
  await page.selectOption('#panel-network select', 'stood still');
  await page.click('#panel-network canvas', { position: { x: 300, y: 20 } });
  await settled(page);
  assert.match(await text(), /No port stood still because of it/);
});
await test(
  'the breakdown sums to the step, and says what `rehearse run` does',
  one,
  async (page) => {
    const run = JSON.parse(
      execFileSync(rehearse, [
        'run',
        join(scenarios, 'axonn-gpt20b-perlmutter.json'),
        '--format',
        'json',
      ]),
    );
    await page.click('#tab-selection');
    const text = await page.textContent('#panel-selection');
    const exposed = run.breakdown.exposed_communication_seconds * 1e3;
    assert.ok(text.includes(`exposed ${exposed.toFixed(1)} ms`), text.slice(0, 300));
  },
);
await test('keys zoom, move and come back', one, async (page) => {
  const [from, to] = await view(page);
  await page.keyboard.press('w');
  const zoomed = await view(page);
  assert.ok(zoomed[1] - zoomed[0] < (to - from) * 0.8);
  await page.keyboard.press('d');
  assert.ok((await view(page))[0] > zoomed[0]);
  await page.keyboard.press('a');
  await page.keyboard.press('s');
  await page.keyboard.press('f');
  const back = await view(page);
  assert.ok(Math.abs(back[0] - from) < 1 && Math.abs(back[1] - to) < 1);
  await page.keyboard.press('c');
  assert.equal(await page.evaluate(() => window.rehearse.state.showPath), true);
  await page.keyboard.press('e');
  assert.equal(await page.evaluate(() => window.rehearse.state.showExposed), false);
  await page.keyboard.press('t');
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
});
await test('a click chooses an op, and tells what it waited for', one, async (page) => {
  const span = await clickAnOp(page);
  assert.equal(await page.evaluate(() => window.rehearse.state.chosen.span), span);
  const text = await page.textContent('#panel-selection');
  for (const word of ['It waited for', 'What waits for it', 'busbw', 'held back'])
    assert.ok(text.includes(word), word);
  await page.click('#panel-selection table:not(.facts) tr.link >> nth=0');
  assert.notEqual(await page.evaluate(() => window.rehearse.state.chosen.span), span);
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Escape');
  assert.equal(await page.evaluate(() => window.rehearse.state.chosen), null);
});
await test('a drag selects a range, whose sums are shown', one, async (page) => {
  await page.mouse.move(500, 150);
  await page.mouse.down();
  await page.mouse.move(700, 150, { steps: 4 });
  await page.mouse.up();
  const range = await page.evaluate(() => window.rehearse.state.selection);
  assert.ok(range[1] > range[0]);
  assert.ok((await page.textContent('#panel-selection')).includes('Selected'));
  await page.selectOption('#panel-selection select', 'axis');
  assert.ok((await page.textContent('#panel-selection tbody')).includes('column'));
});
await test('the wheel zooms at the pointer', one, async (page) => {
  await page.mouse.move(800, 150);
  const before = await page.evaluate(() => window.rehearse.state.cursor);
  await page.keyboard.down('Control');
  await page.mouse.wheel(0, -600);
  await page.keyboard.up('Control');
  await settled(page);
  const [from, to] = await view(page);
  assert.ok(before > from && before < to && to - from < 1e9);
});
await test('search finds, Enter goes on', one, async (page) => {
  await page.keyboard.press('/');
  await page.keyboard.type('all-reduce layer 3');
  assert.match(await page.textContent('.status'), /\d+ found/);
  await page.keyboard.press('Enter');
  await page.keyboard.press('Enter');
  assert.match(await page.textContent('.status'), /^2 of/);
  await page.keyboard.press('Escape');
  await page.keyboard.press('/');
  await page.keyboard.type('no such op');
  await page.keyboard.press('Enter');
  assert.match(await page.textContent('.status'), /nothing is called "no such op"/);
});
await test('any rank can be asked for', one, async (page) => {
  await page.fill('[aria-label="Show another rank"]', '13');
  await page.press('[aria-label="Show another rank"]', 'Enter');
  assert.match(await page.textContent('.status'), /rank 13/);
  for (const [wrong, said] of [
    ['99', /there is no rank 99/],
    ['x', /is not a rank/],
    ['-1', /is not a rank/],
  ]) {
    await page.fill('[aria-label="Show another rank"]', wrong);
    await page.press('[aria-label="Show another rank"]', 'Enter');
    assert.match(await page.textContent('.status'), said);
  }
});
await test('links tell who shares them', one, async (page) => {
  await page.click('#tab-cluster');
  await page.click('#panel-cluster .heat canvas', { position: { x: 300, y: 8 } });
  const text = await page.textContent('#panel-cluster .users');
  assert.match(text, /Who uses it/);
  assert.match(text, /GB\/s/);
  assert.ok((await page.locator('#panel-cluster path.cable.chosen').count()) > 0);
});
// What is painted, and not only asked for.
const strokes = (page, selector) =>
  page.evaluate(
    (one) => [...document.querySelectorAll(one)].map((path) => getComputedStyle(path).stroke),
    selector,
  );
await test('links are painted by their load at the cursor', one, async (page) => {
  await page.click('#tab-cluster');
  const idle = await page.evaluate(() => {
    document.documentElement.style.setProperty('--idle', 'rgb(1, 2, 3)');
    const { state } = window.rehearse;
    state.moveCursor(state.end * 0.5);
    return 'rgb(1, 2, 3)';
  });
  const loads = await page.evaluate(() => {
    const run = window.rehearse.state.page.runs[0];
    const cursor = window.rehearse.state.cursor;
    return run.links.map((link) => {
      let share = 0;
      link.at.forEach((at, i) => {
        if (at <= cursor) share = link.share[i];
      });
      return share;
    });
  });
  assert.ok(Math.max(...loads) > 1, 'nothing travels');
  const painted = new Set(await strokes(page, '#panel-cluster .cable:not(.unused)'));
  painted.delete(idle);
  assert.ok([...painted].some((one) => one !== 'none'), [...painted].join());
  await page.evaluate(() => window.rehearse.state.moveCursor(0));
  assert.notDeepEqual(new Set(await strokes(page, '#panel-cluster .cable:not(.unused)')), painted);
});
await test('collectives are sorted, filtered, and zoomed to', one, async (page) => {
  await page.click('#tab-collectives');
  await page.fill('#panel-collectives input[type=search]', 'all-gather');
  const first = () => page.textContent('#panel-collectives tbody tr:first-child');
  assert.ok((await first()).includes('all-gather'));
  await page.click('#panel-collectives th button:has-text("takes")');
  const longest = await first();
  await page.click('#panel-collectives th button:has-text("takes")');
  assert.notEqual(await first(), longest);
  const before = await view(page);
  await page.click('#panel-collectives tbody tr >> nth=0');
  assert.notDeepEqual(await view(page), before);
});
await test('the tour walks through all of it', one, async (page) => {
  await page.keyboard.press('?');
  let stops = 0;
  while ((await page.isVisible('.tour')) && stops < 20) {
    ++stops;
    assert.ok((await page.textContent('.tour p')).length > 30);
    await page.click('.tour .main');
    await settled(page);
  }
  assert.ok(stops >= 7 && stops < 20, `${stops} stops`);
});
await test('it prints all views, and works where it is narrow', one, async (page) => {
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  await page.evaluate(() => window.dispatchEvent(new Event('beforeprint')));
  await settled(page);
  const paper = await page.evaluate(() => {
    const canvas = document.querySelector('.timeline canvas').getBoundingClientRect();
    return {
      back: getComputedStyle(document.body).backgroundColor,
      swatch: getComputedStyle(document.querySelector('.swatch')).printColorAdjust,
      cut: canvas.right > innerWidth + 1,
      tall: canvas.height >= (window.rehearse.timeline.wantedHeight * canvas.width) / 1300,
    };
  });
  assert.deepEqual(paper, { back: 'rgb(255, 255, 255)', swatch: 'exact', cut: false, tall: true });
  assert.ok((await page.isVisible('#panel-breakdown')) && (await page.isVisible('#panel-memory')));
  await page.evaluate(() => window.dispatchEvent(new Event('afterprint')));
  await page.emulateMedia({ media: 'screen' });
  await page.setViewportSize({ width: 900, height: 600 });
  await settled(page);
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false);
});

const two = report(
  'two.html',
  join(scenarios, 'axonn-fig3-a.json'),
  join(scenarios, 'axonn-fig3-abcde.json'),
);
await test('two steps share an axis, and are compared', two, async (page) => {
  await page.click('#tab-compare');
  const text = await page.textContent('#panel-compare');
  assert.match(text, /A takes 1\.087 s more/);
  for (const word of ['By axis', 'depth', 'Ops that differ most'])
    assert.ok(text.includes(word), word);
  const colors = await page.evaluate(() =>
    window.rehearse.state.page.runs.map((run) =>
      Object.fromEntries(run.classes.map((one) => [one.name, one.fill])),
    ),
  );
  for (const [name, fill] of Object.entries(colors[0]))
    if (colors[1][name]) assert.equal(colors[1][name], fill, name);
});
const stages = report('stages.html', join(scenarios, 'cpu-pipeline.json'));
await test('stages have numbered micro-batches', stages, async (page) => {
  assert.ok((await page.evaluate(() => window.rehearse.timeline.ranks.length)) >= 2);
  await page.click('#tab-breakdown');
  assert.match(await page.textContent('#panel-breakdown'), /stage 0/);
});
execFileSync(rehearse, ['run', join(scenarios, 'cpu-4d.json'), '--out', join(folder, 'out')], {
  stdio: 'ignore',
});
await test(
  'a timeline from a file has no links, and all else',
  report('file.html', join(folder, 'out')),
  async (page) => {
    assert.deepEqual(await page.evaluate(() => window.rehearse.panels), [
      'selection',
      'breakdown',
      'collectives',
    ]);
    await clickAnOp(page);
    assert.match(await page.textContent('#panel-selection'), /It waited for/);
  },
);
await test(
  'studies are dots',
  report('study.html', join(scenarios, 'studies/axonn-table4.json')),
  async (page) => {
    await settled(page);
    assert.ok((await page.locator('.plot canvas').count()) > 0);
    assert.match(await page.textContent('.table-box tbody'), /AxoNN\/5b/);
    await page.hover('.plot .u-over', { position: { x: 6, y: 40 } });
  },
);

const space = {
  axes: [
    { path: 'strategy.overlap_all_gather', values: [true, false] },
    { path: 'training.batch', values: [8, 16, 32] },
  ],
  objective: ['time', 'memory'],
};
await test(
  'a search has a front',
  report(
    'search.html',
    join(scenarios, 'cpu-4d.json'),
    '--search',
    '--set',
    `search=${JSON.stringify(space)}`,
  ),
  async (page) => {
    await page.click('#tab-dots0');
    await settled(page);
    assert.match(await page.textContent('#panel-dots0 .u-legend'), /Pareto front/);
  },
);

// The first screen of a search: its machines side by side.
const price = (name, cluster, value) => ({
  name,
  set: { cluster, 'search.price': `${value}USD/h` },
});
const boxes = [
  price('DGX A100', 'dgx-a100', 1.3),
  price('DGX H100', 'dgx-h100', 2.2),
  price('DGX B200', 'dgx-b200', 4),
];
const machinesPage = (name, choices, ...more) =>
  report(
    name,
    join(scenarios, 'strategy-fsdp.json'),
    '--search',
    '--set',
    `search=${JSON.stringify({ per: 'cluster', axes: [{ choices }] })}`,
    ...more,
  );
const machines = machinesPage('machines.html', boxes);
// Okabe and Ito's blue, vermillion and green.
const kMachineColors = [
  [0x00, 0x72, 0xb2],
  [0xd5, 0x5e, 0x00],
  [0x00, 0x9e, 0x73],
];
// How many pixels of a picture have each colour.
const pixelsOfPicture = (page, picture, colors) =>
  page.evaluate(
    async ([base64, wanted]) => {
      const image = new Image();
      image.src = `data:image/png;base64,${base64}`;
      await image.decode();
      const canvas = document.createElement('canvas');
      canvas.width = image.width;
      canvas.height = image.height;
      const pen = canvas.getContext('2d');
      pen.drawImage(image, 0, 0);
      const { data } = pen.getImageData(0, 0, canvas.width, canvas.height);
      return wanted.map((rgb) => {
        let count = 0;
        for (let i = 0; i < data.length; i += 4)
          if (rgb.every((value, k) => Math.abs(data[i + k] - value) < 3)) ++count;
        return count;
      });
    },
    [picture.toString('base64'), colors],
  );
// What is wider than the page, or than its cell, is cut or runs into its neighbour.
const cutOff = (page) =>
  page.evaluate(() => {
    const isShown = (one) => one.offsetParent !== null || one instanceof SVGElement;
    const outside = [...document.querySelectorAll('.machines *, header, .timeline canvas')]
      .filter(isShown)
      .filter((one) => {
        const box = one.getBoundingClientRect();
        return box.width > 0 && (box.right > innerWidth + 0.5 || box.left < -0.5);
      });
    const wide = [...document.querySelectorAll('.best th, .best td')].filter(
      (one) => isShown(one) && one.scrollWidth > one.clientWidth + 1,
    );
    const names = [...document.querySelectorAll('.scatter text')].filter((one) => {
      const box = one.getBoundingClientRect();
      const plot = document.querySelector('.scatter').getBoundingClientRect();
      return box.left < plot.left - 1 || box.right > plot.right + 1 || box.bottom > plot.bottom + 1;
    });
    return [
      ...(document.documentElement.scrollWidth > innerWidth ? ['the page'] : []),
      ...[...outside, ...wide, ...names].map((one) => `${one.tagName} ${one.textContent}`),
    ];
  });
await test('a search begins with its machines, one beside the other', machines, async (page) => {
  await settled(page);
  assert.match(
    await page.textContent('.machines .sentence'),
    /^DGX B200 is the fastest: [\d,]+ \([\d,]+ to [\d,]+\) tokens\/s, [\d.]+ \([\d.]+ to [\d.]+\) times as fast as DGX H100/,
  );
  const rows = await page.evaluate(() =>
    [...document.querySelectorAll('.best tbody')].map((body) => body.innerText),
  );
  assert.equal(rows.length, 3);
  assert.match(rows[0], /^\s*DGX A100\s+8 GPUs/);
  assert.match(rows[1], /×[\d.]+ \([\d.]+\u2060–\u2060[\d.]+\)/); // beside the first
  assert.match(rows[2], /of 178, \d+ %/);
  assert.match(rows[2], /compute \d+ %/);
  for (const unit of ['step\ns', 'tokens/s', 'GiB', '% of the step', 'USD a million', 'Wh a million'])
    assert.ok((await page.innerText('.best thead')).includes(unit), unit);
  // All of it is on the first screen, and what comes below are the steps of the bests.
  const places = await page.evaluate(() => ({
    table: document.querySelector('.best').getBoundingClientRect().top,
    plot: document.querySelector('.scatter svg').getBoundingClientRect().bottom,
    steps: document.querySelector('.timeline').getBoundingClientRect().top,
    titles: window.rehearse.state.page.runs.map((run) => run.title),
  }));
  assert.ok(places.table < 200 && places.plot < 800 && places.steps > places.plot, JSON.stringify(places));
  assert.deepEqual(places.titles, ['DGX A100', 'DGX H100', 'DGX B200']);
});
await test('dots have a colour a machine, ranges, fronts and names', machines, async (page) => {
  await settled(page);
  const dots = await page.locator('.scatter').screenshot();
  const counts = await pixelsOfPicture(page, dots, kMachineColors);
  assert.ok(Math.min(...counts) > 25, `${counts}`);
  const drawn = await page.evaluate(() => {
    const { points } = window.rehearse.state.page.machines;
    const width = (one) => one.getBoundingClientRect();
    return {
      dots: document.querySelectorAll('.scatter .dot').length,
      points: points.machine.length,
      bars: [...document.querySelectorAll('.scatter .best .range')].map(
        (one) => width(one).width + width(one).height,
      ),
      fronts: document.querySelectorAll('.scatter .front').length,
      ofAll: document.querySelectorAll('.scatter .front-of-all').length,
      names: [...document.querySelectorAll('.scatter .name')].map((one) => one.textContent),
      boxes: [...document.querySelectorAll('.scatter .name')].map((one) => {
        const box = width(one);
        return [box.left, box.top, box.right, box.bottom];
      }),
      shapes: new Set(
        [...document.querySelectorAll('.scatter .best path')].map((one) => one.getAttribute('d')),
      ).size,
    };
  });
  assert.equal(drawn.dots, drawn.points);
  assert.ok(drawn.bars.length === 6 && Math.min(...drawn.bars) > 3, `${drawn.bars}`);
  assert.deepEqual([drawn.fronts, drawn.ofAll, drawn.shapes], [3, 1, 3]);
  assert.deepEqual([...drawn.names].sort(), ['DGX A100', 'DGX B200', 'DGX H100']);
  for (const [i, a] of drawn.boxes.entries())
    for (const b of drawn.boxes.slice(i + 1))
      assert.ok(a[2] <= b[0] || b[2] <= a[0] || a[3] <= b[1] || b[3] <= a[1], 'names overlap');
});
await test('both axes can be any measure, and say its unit', machines, async (page) => {
  const titles = () =>
    page.evaluate(() =>
      [...document.querySelectorAll('.scatter .axis-title')].map((one) => one.textContent),
    );
  const [across, up] = await page.locator('.machines select').all();
  const names = await across.evaluate((one) => [...one.options].map((option) => option.text));
  assert.deepEqual(
    names,
    ['step', 'speed', 'memory', 'exposed communication', 'MFU', 'cost', 'energy'],
  );
  for (const name of names) {
    await across.selectOption(name);
    await up.selectOption(name === 'step' ? 'cost' : 'step');
    const [one, other] = await titles();
    assert.match(one, new RegExp(`^${name}, .+ \\((more|less) is better\\)$`));
    assert.match(other, name === 'step' ? /^cost, USD a million/ : /^step, s /);
    assert.deepEqual(await cutOff(page), []);
  }
  // Where more is better, a front falls from the upper left, and no dot is beyond it.
  await across.selectOption('speed');
  await up.selectOption('memory');
  const beyond = await page.evaluate(() => {
    const { machine, values } = window.rehearse.state.page.machines.points;
    const front = [];
    machine.forEach((_, i) => {
      const isBeaten = machine.some(
        (__, k) =>
          values.tokens[k] >= values.tokens[i] &&
          values.memory[k] <= values.memory[i] &&
          (values.tokens[k] > values.tokens[i] || values.memory[k] < values.memory[i]),
      );
      if (!isBeaten) front.push(i);
    });
    const drawn = document.querySelector('.scatter .front-of-all').getAttribute('points');
    return [front.length, drawn.split(' ').length];
  });
  assert.equal(beyond[0], beyond[1]);
  await page.hover('.scatter .dot.best path');
  assert.match(await page.textContent('.machines .what'), /DGX .*: speed [\d,]+ \(.*\) tokens\/s/);
});
const longNames = machinesPage('long.html', [
  ...boxes.map((one, i) => ({ ...one, name: `${one.name}, as our second supplier would build it ${i}` })),
  price('DGX H200', 'dgx-h200', 3),
  price('a100-40g-without-any-space-in-its-very-long-name-that-goes-on', 'dgx-a100-80g', 1.6),
]);
for (const [file, colorScheme] of [
  [machines, 'light'],
  [machines, 'dark'],
  [longNames, 'light'],
])
  await test(`machines fit 800 to 1920 pixels, ${colorScheme}`, file, async (page) => {
    await page.emulateMedia({ colorScheme });
    for (const width of [1280, 1920, 800]) {
      await page.setViewportSize({ width, height: width > 1500 ? 1080 : 800 });
      await settled(page);
      await settled(page);
      assert.deepEqual(await cutOff(page), [], `${width}`);
      const counts = await pixelsOfPicture(
        page,
        await page.locator('.scatter').screenshot(),
        kMachineColors,
      );
      assert.ok(Math.min(...counts) > 25, `${width}: ${counts}`);
    }
  });
await test('machines are printed on A4 across, without controls, nothing cut', machines, async (page) => {
  await page.emulateMedia({ colorScheme: 'dark' });
  // What is printed: A4 less its margins of 10 mm, at 96 dots an inch.
  const [width, height] = [277, 190].map((millimetres) => Math.floor((millimetres / 25.4) * 96));
  await page.setViewportSize({ width, height });
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  await page.evaluate(() => window.dispatchEvent(new Event('beforeprint')));
  await settled(page);
  assert.deepEqual(await cutOff(page), []);
  const paper = await page.evaluate(() => {
    const isShown = (one) => one.getBoundingClientRect().height > 0;
    const high = (selector) => document.querySelector(selector).getBoundingClientRect().height;
    return {
      back: getComputedStyle(document.body).backgroundColor,
      ink: getComputedStyle(document.querySelector('.best td')).color,
      dots: document.querySelector('.scatter .name').getAttribute('stroke'),
      controls: [...document.querySelectorAll('button, select, input, .tabs, footer')]
        .filter(isShown)
        .map((one) => one.textContent),
      highest: Math.max(high('figure'), high('.timeline canvas'), high('.best thead')),
      room: innerHeight,
    };
  });
  assert.deepEqual(
    [paper.back, paper.ink, paper.dots, paper.controls],
    ['rgb(255, 255, 255)', 'rgb(22, 32, 43)', '#ffffff', []],
  );
  assert.ok(paper.highest < paper.room, JSON.stringify(paper));
  const printed = await page.screenshot({ fullPage: true });
  const counts = await pixelsOfPicture(page, printed, kMachineColors);
  assert.ok(Math.min(...counts) > 25, `${counts}`);
  await page.evaluate(() => window.dispatchEvent(new Event('afterprint')));
  await page.emulateMedia({ media: 'screen' });
  const pdf = (await page.pdf({ preferCSSPageSize: true })).toString('latin1');
  const sheets = pdf.match(/\/MediaBox ?\[[^\]]*\]/g);
  assert.ok(sheets.length <= 3, `${sheets.length} sheets`);
  for (const sheet of sheets) assert.match(sheet, /\[0 0 84[12][.\d]* 59[45][.\d]*\]/);
});
await test(
  'where a formula decides, steps of the bests are all that was simulated',
  machinesPage('formula.html', boxes, '--set', 'search.decide="formula"'),
  async (page) => {
    await settled(page);
    assert.match(await page.textContent('.sentence'), /^Nothing was simulated/);
    assert.match(await page.textContent('.best tbody'), /not simulated/);
    assert.equal(await page.locator('.scatter .dot').count(), 0);
    assert.equal(await page.evaluate(() => window.rehearse.state.page.runs.length), 3);
    assert.deepEqual(await cutOff(page), []);
  },
);
for (const colorScheme of ['light', 'dark'])
  await test(`machines and their steps are saved as a PNG, ${colorScheme}`, machines, async (page) => {
    await page.emulateMedia({ colorScheme });
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.click('.machines button:has-text("Save as PNG")'),
    ]);
    assert.match(download.suggestedFilename(), /^[\w.-]+\.png$/);
    const picture = readFileSync(await download.path());
    assert.deepEqual([...picture.subarray(1, 4)], [...Buffer.from('PNG')]);
    assert.equal(picture.readUInt32BE(16), 2560);
    assert.ok(picture.readUInt32BE(20) > 1200);
    // Machines, the text, the paper, and forward kernels of the timelines.
    const counts = await pixelsOfPicture(page, picture, [
      ...kMachineColors,
      [0x16, 0x20, 0x2b],
      [0xff, 0xff, 0xff],
      [0x2f, 0x7f, 0xd1],
    ]);
    assert.ok(Math.min(...counts) > 400 && counts[4] > 1e6, `${counts}`);
    // The page is as it was.
    await settled(page);
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), undefined);
    assert.ok((await colorsOf(page, '.timeline canvas')) > 8);
    assert.deepEqual(await cutOff(page), []);
  });

const evil = '</script><script>alert(1)</script>"><img src=x onerror=alert(2)>';
const op = { name: evil, kind: evil, axis: evil, phase: 'forward', layer: 0, micro_batch: 0 };
writeFileSync(
  join(folder, 'evil.json'),
  JSON.stringify({
    schema: 'rehearse.timeline.v1',
    title: evil,
    provenance: 'measured',
    ranks: 1,
    roles: [{ name: evil, ops: [op, { ...op, kind: 'gemm', axis: '' }] }],
    role_of_rank: [[0, 1]],
    steps: [
      {
        warm_up: false,
        step_picoseconds: 9000,
        spans: [
          [0, 0, 0, 1000, 7000],
          [0, 1, 0, 0, 9000],
        ],
      },
    ],
  }),
);
await test(
  'hostile names do nothing',
  report('evil.html', join(folder, 'evil.json')),
  async (page) => {
    await clickAnOp(page);
    for (const tab of await page.locator('.tabs button').all()) await tab.click();
    await page.hover('.timeline canvas', { position: { x: 700, y: 50 } });
    assert.equal(await page.locator('img').count(), 0);
    assert.equal(await page.locator('script').count(), 0); // both of ours have done their work
  },
);
await test(
  'hostile names of machines do nothing',
  machinesPage('evil-machines.html', [price(evil, 'dgx-a100', 1), boxes[1]], '--set', `name=${JSON.stringify(evil)}`),
  async (page) => {
    await page.hover('.scatter .dot.best path');
    await settled(page);
    assert.equal(await page.locator('img').count(), 0);
    assert.equal(await page.locator('script').count(), 0);
    assert.ok((await page.textContent('.machines h1')).includes('alert(1)'));
  },
);
writeFileSync(
  join(folder, 'single.json'),
  JSON.stringify({
    schema: 'rehearse.timeline.v1',
    title: 'one',
    provenance: 'measured',
    ranks: 1,
    roles: [{ name: 'all', ops: [{ ...op, name: 'alone', kind: 'gemm', axis: '' }] }],
    role_of_rank: [[0, 1]],
    steps: [{ warm_up: false, step_picoseconds: 9000, spans: [[0, 0, 0, 0, 9000]] }],
  }),
);
await test(
  'one span is enough',
  report('single.html', join(folder, 'single.json')),
  async (page) => {
    for (const key of ['1', '2', '3', 'w', 's', 'c', 'e', 'f', '?']) await page.keyboard.press(key);
    assert.match(await page.textContent('.tour'), /One step/);
  },
);
// The page with other data in place of its own.
const kData = /(id="rehearse-data">)([^<]*)/;
function withData(name, change) {
  const file = join(folder, name);
  const text = readFileSync(one, 'utf8');
  writeFileSync(
    file,
    text.replace(kData, (_, tag, data) => tag + change(data)),
  );
  return file;
}
const packed = (header) => {
  const json = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(json.length);
  return gzipSync(Buffer.concat([length, json])).toString('base64');
};
const kNoPages = [
  ['data that were cut off', (data) => data.slice(0, 400), /cannot be shown/],
  [
    'damaged gzip',
    (data) => data.slice(0, 2000) + 'AAAAAAAA' + data.slice(2008),
    /cannot be shown/,
  ],
  ['data that are no gzip', () => btoa('none of ours'), /cannot be shown/],
  ['data that are no base64', () => '%%%', /cannot be shown/],
  ['a page without data', () => '', /cannot be shown/],
  [
    'data of a later version',
    () => packed({ schema: 'rehearse.page.v9', runs: [], columns: [] }),
    /the data are rehearse.page.v9, and this page reads rehearse.page.v1/,
  ],
];
for (const [i, [what, change, said]] of kNoPages.entries())
  await test(
    `${what}: said, and no page is empty`,
    withData(`broken${i}.html`, change),
    async (page) => {
      assert.match(await page.textContent('body'), said);
    },
    true,
  );

writeFileSync(
  join(folder, 'boxes.json'),
  JSON.stringify(JSON.parse(readFileSync(join(scenarios, 'lessons/two-rings.json'))).cluster),
);
const all = { name: 'all', ranks: 'all' };
const sum = { name: 'sum', collective: 'all-reduce', communicator: 'all', bytes: '100MB' };
const schedule = {
  schema: 'rehearse.schedule.v1',
  name: 'a million',
  ranks: 1048576,
  communicators: [all],
  ops: [{ ...sum, phase: 'synchronize' }],
};
writeFileSync(
  join(folder, 'million.json'),
  JSON.stringify({
    name: 'a million',
    cluster: 'dgx-h100:nodes=131072',
    jobs: [{ placement: 'block', schedule }],
  }),
);
const million = report('million.html', join(folder, 'million.json'));
await test('a million ranks are a folded few', million, async (page) => {
  const run = await page.evaluate(() => {
    const [first] = window.rehearse.state.page.runs;
    return { ranks: first.rankCount, shown: first.shown.length, standsFor: first.shown[0].standsFor };
  });
  assert.deepEqual(run, { ranks: 1048576, shown: 1, standsFor: 1048576 });
  assert.match(await page.textContent('body'), /1,048,576/);
  await page.fill('[aria-label="Show another rank"]', '777777');
  await page.press('[aria-label="Show another rank"]', 'Enter');
  assert.match(await page.textContent('.status'), /rank 777,?777/);
  for (const tab of await page.locator('.tabs button').all()) await tab.click();
});

// What the simulator in a page does is what the program does: this decides whether the one that is
// kept is out of date.
const hashOf = (...inputs) =>
  JSON.parse(execFileSync(rehearse, ['run', ...inputs, '--format', 'json', '--allow-oom']))
    .timeline_hash;
const played = (page) =>
  page.waitForFunction(
    () => window.rehearse.live?.took > 0 || window.rehearse.live?.mistake,
    null,
    { timeout: 60000 },
  );
// Plays with these changes in the page, and returns the hashes of the step as it was and as it is
// then.
async function playedHashes(page, changes) {
  await page.evaluate((set) => {
    const { live } = window.rehearse;
    live.took = 0;
    live.panel.change(set, null);
  }, changes);
  await played(page);
  return page.evaluate(() => {
    const { live, state } = window.rehearse;
    return live.mistake ?? state.page.runs.map((run) => run.result.timeline_hash);
  });
}
const kStale =
  'the simulator that is kept plays another step than the program: run `tools/viewer/build ' +
  'simulator`';

const lessons = join(folder, 'lessons.html');
execFileSync(rehearse, ['lessons', '-o', lessons], { stdio: ['ignore', 'ignore', 'inherit'] });
await test(
  'every lesson is played in the page as the program plays it, before and after its change',
  lessons,
  async (page) => {
    const written = JSON.parse(readFileSync(join(scenarios, 'lessons/lessons.json'))).lessons;
    assert.equal(await page.locator('.lessons button').count(), written.length);
    for (const [i, lesson] of written.entries()) {
      await page.click(`.lessons button >> nth=${i}`);
      await page.waitForFunction((name) => window.rehearse.lesson === name, lesson.name);
      const file = join(scenarios, 'lessons', `${lesson.name}.json`);
      const native = [hashOf(file), hashOf(file, ...lesson.set.flatMap((one) => ['--set', one]))];
      assert.deepEqual(await playedHashes(page, lesson.set), native, `${lesson.name}: ${kStale}`);
    }
  },
);
await test(
  'a lesson asks first; its change lies below, and the answer can be opened',
  lessons,
  async (page) => {
    assert.equal(await page.evaluate(() => window.rehearse.state.page.runs.length), 1);
    assert.ok((await page.textContent('.question')).includes('How long do eight GPUs take'));
    assert.ok(!(await page.isVisible('.answer p')));
    await page.click('#change');
    await page.waitForFunction(() => window.rehearse.state.page.runs.length === 2);
    assert.ok((await page.textContent('.column')).includes('7.028 ms instead of 6.012 ms'));
    await page.click('.answer summary');
    assert.ok(await page.isVisible('.answer p >> nth=0'));
    await page.click('#change');
    await page.waitForFunction(() => window.rehearse.state.page.runs.length === 1);
  },
);
await test(
  'a slider plays the lesson again, and what is wrong in the text is told where it is',
  lessons,
  async (page) => {
    await page.click('.more > summary');
    const slider = page.getByLabel('Network bandwidth', { exact: true });
    await slider.focus();
    for (let i = 0; i < 6; ++i) await page.keyboard.press('ArrowLeft');
    await page.waitForFunction(() => window.rehearse.state.page.runs.length === 2);
    await page.waitForFunction(() => window.rehearse.live.took > 0);
    // Half of the bandwidth (0.501 of it): twice 6 ms, and latencies as they were.
    await page.waitForFunction(
      () => Math.abs(window.rehearse.state.page.runs[1].step / 1e6 - (6 / 0.501 + 0.012)) < 1e-4,
    );
    assert.equal(await page.evaluate(() => document.activeElement.type), 'range');
    await page.click('.reset');
    await page.waitForFunction(() => window.rehearse.state.page.runs.length === 1);
    await page.click('.json summary');
    const text = await page.inputValue('.json textarea');
    await page.fill('.json textarea', text.replace('all-reduce', 'all-redcue'));
    await page.waitForSelector('.mistake:visible');
    const mistake = await page.textContent('.mistake');
    assert.ok(mistake.includes('did you mean "all-reduce"'), mistake);
    assert.ok(mistake.includes('Line 10'), mistake);
    await page.click('.mistake button');
    const selected = await page.evaluate(
      () =>
        document.getSelection().toString() ||
        document.activeElement.value.slice(
          document.activeElement.selectionStart,
          document.activeElement.selectionEnd,
        ),
    );
    assert.ok(selected.includes('all-redcue'));
    for (const [typed, said] of [
      ['', /ring.json:1/],
      ['{"name": ', /ring.json:1/],
      [text.replace('"100MB"', '100'), /unit/],
      [text.replace('"100MB"', '"-3MB"'), /ring.json:\d+/],
      [text.replace('"cluster"', '"clutser"'), /did you mean "cluster"/],
      [text.replace(/"devices": *\d+/, '"devices": 0'), /ring.json:\d+/],
    ]) {
      await page.fill('.json textarea', typed);
      await page.waitForFunction(
        (pattern) => new RegExp(pattern).test(document.querySelector('.mistake').textContent),
        said.source,
      );
      assert.ok(await page.isVisible('.mistake'), typed);
      assert.ok((await page.evaluate(() => window.rehearse.timeline.ranks.length)) >= 1);
    }
    assert.ok((await colorsOf(page, '.timeline canvas')) > 3);
    await page.fill('.json textarea', text.replace('100MB', '200MB'));
    await page.waitForFunction(() => window.rehearse.state.page.runs[1]?.step === 12.012e6);
    assert.ok(!(await page.isVisible('.mistake')));
  },
);
// Pixels, and not attributes: how many of a canvas have each of these colours.
const pixelsOf = async (page, selector, colors) => {
  await settled(page);
  return page.evaluate(
    ([one, wanted]) => {
      const canvas = document.querySelector(one);
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      return wanted.map((rgb) => {
        let count = 0;
        for (let i = 0; i < data.length; i += 4)
          if (rgb.every((value, k) => Math.abs(data[i + k] - value) < 3)) ++count;
        return count;
      });
    },
    [selector, colors],
  );
};
await test('a lecture goes on by arrows, from question to change to answer', lessons, async (page) => {
  await page.click('#lecture');
  const size = await page.evaluate(() =>
    parseFloat(getComputedStyle(document.querySelector('.question')).fontSize),
  );
  assert.ok(size >= 20, `${size}`);
  assert.ok(!(await page.isVisible('.lessons')) && !(await page.isVisible('.tabs')));
  await page.keyboard.press('ArrowRight');
  await page.waitForFunction(() => window.rehearse.state.page.runs.length === 2);
  assert.ok(!(await page.isVisible('.answer p >> nth=0')));
  await page.keyboard.press('ArrowRight');
  assert.ok(await page.isVisible('.answer p >> nth=0'));
  await page.keyboard.press('ArrowRight');
  await page.waitForFunction(() => window.rehearse.lesson === 'two-rings');
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false);
  await page.keyboard.press('Escape');
  assert.ok(await page.isVisible('.lessons'));
});
await test('a handout has all questions, and apart the answers', lessons, async (page) => {
  await page.evaluate(() => {
    window.print = () => {
      window.printed = true;
    };
  });
  await page.click('#handout');
  await page.waitForFunction(() => window.printed);
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  const count = JSON.parse(readFileSync(join(scenarios, 'lessons/lessons.json'))).lessons.length;
  assert.equal(await page.locator('.handout section').count(), 2 * count);
  assert.equal(await page.locator('.handout img').count(), 2 * count);
  const text = await page.textContent('.handout');
  const [questions, answers] = text.split('Answers1 ');
  assert.ok(questions.includes('How long do eight GPUs take'));
  assert.ok(!questions.includes('Hardly longer') && answers.includes('Hardly longer'));
  assert.ok(!(await page.isVisible('.side')));
});
await test('what a fold would hide is there: two transfers on one NIC', lessons, async (page) => {
  await page.click('.lessons button >> nth=1');
  await page.waitForFunction(() => window.rehearse.lesson === 'two-rings');
  await page.click('#all-views');
  await page.click('#tab-cluster');
  await page.evaluate(() => {
    const { state } = window.rehearse;
    state.moveCursor(3e6);
    const run = state.page.runs[0];
    state.link = { run, link: run.links.findIndex((one) => one.name.includes('nic')) };
    state.tell('link');
  });
  assert.match(await page.textContent('#panel-cluster .users'), /, 2 transfers/);
});
// Sixty milliseconds an answer on a busy machine, and some five of each number.
await test('numbers of all lessons: what is worked out by hand is what is simulated', lessons, async (page) => {
  const count = await page.locator('.lessons button').count();
  let compared = 0;
  for (let i = 0; i < count; ++i) {
    await page.click(`.lessons button >> nth=${i}`);
    await page.waitForFunction(
      (at) => window.rehearse.lesson === window.rehearse.lessons[at],
      i,
    );
    const off = await page.evaluate(async () => {
      const { lesson, models, live } = window.rehearse;
      const model = models[lesson];
      const found = [];
      for (const isChanged of [false, true]) {
        const values = Object.fromEntries(
          model.variables.map((one) => [one.name, isChanged ? (one.changed ?? one.now) : one.now]),
        );
        for (const one of model.variables)
          for (const value of new Set([one.values[0], one.values.at(-1), values[one.name]])) {
            const own = { ...values, [one.name]: value };
            let step = null;
            for (let tries = 0; step === null && tries < 100; ++tries) {
              step = await live.panel.stepOf(model.changes(own, isChanged));
              if (step === null) await new Promise((done) => setTimeout(done, 20));
            }
            const byHand = model.closed(own, isChanged);
            const isRight = step > 0 && (byHand === null || Math.abs(step / 1e6 / byHand - 1) <= model.within);
            found.push(isRight ? '' : `${lesson} ${JSON.stringify(own)}: ${step / 1e6}, by hand ${byHand}`);
          }
      }
      return found;
    });
    assert.deepEqual(off.filter((one) => one), []);
    compared += off.length;
  }
  assert.equal(count, 13);
  assert.ok(compared > 120, `${compared}`);
});
for (const [colorScheme, width] of [['light', 1280], ['dark', 1920]])
  await test(`numbers in a lesson's sentence are dragged, and a curve is painted, ${colorScheme}, ${width}`, lessons, async (page) => {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.setViewportSize({ width, height: 900 });
    await page.click('.lessons button >> nth=3');
    await page.waitForFunction(() => window.rehearse.lesson === 'prefetch');
    assert.equal(await page.locator('.curve circle').count(), 0); // it would tell the answer
    const number = page.locator('.sentence .dragged').first();
    assert.equal(await number.textContent(), '4');
    const box = await number.boundingBox();
    await page.mouse.move(box.x + 5, box.y + 8);
    await page.mouse.down();
    await page.mouse.move(box.x + 5 + 4 * 14, box.y + 8, { steps: 6 });
    await page.mouse.up();
    assert.equal(await number.textContent(), '8');
    await page.waitForFunction(() => Math.abs(window.rehearse.state.page.runs[1]?.step / 1e6 - 8 * 5.002) < 1e-3);
    await page.waitForFunction(() => document.querySelectorAll('.curve .simulated').length === 12);
    const painted = await page.evaluate(() => {
      const of = (one) => document.querySelector(one);
      const place = (one) => {
        const { x, y, width, height } = one.getBoundingClientRect();
        return [x + width / 2, y + height / 2];
      };
      const here = place(of('.curve .here'));
      const dots = [...document.querySelectorAll('.curve .simulated')].map(place);
      return {
        line: getComputedStyle(of('.curve .by-hand')).stroke,
        dot: getComputedStyle(of('.curve .simulated')).fill,
        off: Math.hypot(here[0] - dots[7][0], here[1] - dots[7][1]),
        rises: dots.every((one, i) => i === 0 || (one[0] > dots[i - 1][0] && one[1] < dots[i - 1][1])),
        outside: document.documentElement.scrollWidth > innerWidth,
        type: parseFloat(getComputedStyle(of('.sentence')).fontSize),
      };
    });
    assert.deepEqual(
      { ...painted, off: painted.off < 1, type: painted.type >= 16 },
      {
        line: colorScheme === 'light' ? 'rgb(29, 66, 137)' : 'rgb(47, 127, 209)',
        dot: 'rgb(224, 138, 30)',
        off: true,
        rises: true,
        outside: false,
        type: true,
      },
    );
    // With the change, the step beside it has the same numbers.
    await page.click('#change');
    await page.waitForFunction(() => window.rehearse.state.page.runs[1]?.title.includes('changed'));
    assert.equal(await number.textContent(), '4');
    await page.locator('.sentence .dragged').nth(3).focus();
    await page.keyboard.press('ArrowRight');
    await page.waitForFunction(() => document.querySelectorAll('.curve .simulated').length === 4);
    assert.match(await page.textContent('.curve'), /layers that are gathered ahead.*by hand: max/s);
  });
await test('a change is seen beside the same numbers without it', lessons, async (page) => {
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await page.click('.lessons button >> nth=5');
  await page.waitForFunction(() => window.rehearse.lesson === 'straggler');
  await page.click('#change');
  await page.waitForFunction(() => window.rehearse.state.page.runs.length === 2);
  await page.locator('.sentence .dragged').first().focus();
  await page.keyboard.press('End');
  await page.waitForFunction(() => window.rehearse.state.page.runs.every((run) => run.rankCount === 16));
  const [a, b] = await page.evaluate(() => window.rehearse.state.page.runs.map((run) => run.step / 1e6));
  assert.ok(Math.abs(a - 17.56) < 0.001 && Math.abs(b - 22.56) < 0.001, `${a} ${b}`);
});
await test('the bar of a guess is dragged to where the step will end, and then it is played', lessons, async (page) => {
  const place = () =>
    page.evaluate(() => {
      const { timeline, state } = window.rehearse;
      const box = timeline.canvas.getBoundingClientRect();
      return { x: box.left + timeline.x(state.page.guess ?? state.page.runs[0].step), y: box.bottom - 16 };
    });
  await page.locator('.timeline canvas').scrollIntoViewIfNeeded();
  const from = await place();
  await page.mouse.move(from.x, from.y);
  assert.equal(await page.evaluate(() => document.querySelector('.timeline canvas').style.cursor), 'ew-resize');
  await page.mouse.down();
  await page.mouse.move(from.x + 60, from.y, { steps: 5 });
  await page.mouse.up();
  const guess = await page.evaluate(() => window.rehearse.state.page.guess / 1e6);
  assert.ok(guess > 6.3 && guess < 7.5, `${guess}`);
  assert.ok(Math.abs((await place()).x - from.x - 60) < 2);
  await page.click('#change');
  await page.waitForFunction(() => window.rehearse.state.page.runs.length === 2 && window.rehearse.state.playedTo > 0);
  const early = await page.evaluate(() => {
    const { timeline, state } = window.rehearse;
    const [, b] = state.page.runs;
    const { fill } = b.classOf(b.shown[0].first);
    const wanted = [1, 3, 5].map((at) => parseInt(fill.slice(at, at + 2), 16));
    state.playedTo = b.step * 0.1;
    timeline.drawNow();
    const copy = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    copy.canvas.width = timeline.canvas.width;
    copy.canvas.height = timeline.canvas.height;
    const oranges = (share) => {
      copy.drawImage(timeline.canvas, 0, 0);
      const { data } = copy.getImageData(timeline.x(b.step * share) - 20, 85, 40, 60); // B's row
      let count = 0;
      for (let i = 0; i < data.length; i += 4) if (wanted.every((value, k) => Math.abs(data[i + k] - value) < 4)) ++count;
      return count;
    };
    const found = [oranges(0.05), oranges(0.5)];
    state.playedTo = null;
    timeline.drawNow();
    return [...found, oranges(0.5), fill];
  });
  assert.ok(early[0] > 50 && early[1] === 0 && early[2] > 50, `${early}`); // it grows as it is played
  assert.match(await page.textContent('.guess output'), /ms: /);
});
await test('the machine of a lesson: two flows on a NIC pass at half the speed of one', lessons, async (page) => {
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await page.click('.lessons button >> nth=1');
  await page.waitForFunction(() => window.rehearse.lesson === 'two-rings');
  await page.click('#change');
  await page.waitForFunction(() => window.rehearse.state.page.runs.length === 2);
  const flows = (at) =>
    page.evaluate((time) => {
      window.rehearse.state.moveCursor(time);
      return [...document.querySelectorAll('.machine svg')].map((svg) => {
        const nic = [...svg.querySelectorAll('.cable')].find((one) => /nic0/.test(one.textContent) && /fabric/.test(one.textContent));
        const found = [];
        for (let one = nic.nextElementSibling; one?.classList.contains('flow'); one = one.nextElementSibling)
          found.push({ hue: getComputedStyle(one).stroke, at: Math.abs(parseFloat(one.getAttribute('stroke-dashoffset'))) });
        return { load: getComputedStyle(nic).stroke, hues: new Set(found.map((one) => one.hue)).size, at: found[0].at };
      });
    }, at);
  const [first, second] = [await flows(1e6), await flows(2e6)];
  assert.deepEqual(first.map((one) => [one.load, one.hues]), [
    ['rgb(255, 234, 70)', 2],
    ['rgb(255, 234, 70)', 1],
  ]);
  const [shared, alone] = [0, 1].map((i) => second[i].at - first[i].at);
  assert.ok(Math.abs(alone / shared - 2) < 0.01, `${alone} ${shared}`);
});
await test('the machine of a lesson: two flows on one path, and the other path half empty', lessons, async (page) => {
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await page.click('.lessons button >> nth=9');
  await page.waitForFunction(() => window.rehearse.lesson === 'ecmp');
  await page.click('#change');
  await page.waitForFunction(() => window.rehearse.state.page.runs.length === 2);
  const cables = await page.evaluate(() => {
    window.rehearse.state.moveCursor(2e6);
    return [...document.querySelectorAll('.machine svg')].map((svg) =>
      [...svg.querySelectorAll('.cable')]
        .filter((one) => /spine/.test(one.textContent))
        .map((one) => getComputedStyle(one).stroke),
    );
  });
  const full = 'rgb(255, 234, 70)';
  assert.deepEqual(cables.map((one) => one.map((stroke) => stroke === full)), [
    [true, false, true, false],
    [true, true, true, true],
  ]);
});
await test('the first collective of a lesson is watched step by step, and left again', lessons, async (page) => {
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await page.click('#watch');
  await page.waitForFunction(() => window.rehearse.film);
  const film = () => page.evaluate(() => ({ end: window.rehearse.film.data.end / 1e6, done: window.rehearse.film.done }));
  assert.deepEqual(await film(), { end: 6.012, done: 0 });
  await page.keyboard.press('ArrowRight');
  assert.deepEqual(await film(), { end: 6.012, done: 4 });
  await page.evaluate(() => window.rehearse.film.show(1.5e6));
  assert.equal(await page.locator('.film-over .packet').count(), 4);
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('.film-over').count(), 0);
  await page.click('#change');
  await page.waitForFunction(() => window.rehearse.state.page.runs.length === 2);
  await page.click('#watch');
  await page.waitForFunction(() => window.rehearse.film?.data.end === 7.028e6);
  await page.click('#close-film');
  // Of dragged numbers there is none.
  await page.locator('.sentence .dragged').first().focus();
  await page.keyboard.press('ArrowRight');
  await page.waitForFunction(() => window.rehearse.state.page.runs[1]?.rankCount === 9);
  assert.equal(await page.locator('#watch').count(), 0);
});
for (const width of [1280, 1920])
  await test(`names in the machines of all lessons can be read, ${width}`, lessons, async (page) => {
    await page.emulateMedia({ reducedMotion: 'reduce' });
    await page.setViewportSize({ width, height: width === 1280 ? 800 : 1080 });
    const count = await page.locator('.lessons button').count();
    for (let i = 0; i < count; ++i) {
      await page.click(`.lessons button >> nth=${i}`);
      await page.waitForFunction((at) => window.rehearse.lesson === window.rehearse.lessons[at], i);
      await page.click('#change');
      await page.waitForFunction(() => window.rehearse.state.page.runs.length === 2);
      const found = await page.evaluate(() => ({
        least: Math.min(
          ...[...document.querySelectorAll('.machine text')].map(
            (one) => parseFloat(getComputedStyle(one).fontSize) * one.getScreenCTM().a,
          ),
        ),
        outside: document.documentElement.scrollWidth > innerWidth,
      }));
      assert.ok(found.least >= 8.5 && !found.outside, `${i}: ${JSON.stringify(found)}`);
    }
  });
await test('the machine of a lesson: the straggler computes while others wait', lessons, async (page) => {
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await page.click('.lessons button >> nth=5');
  await page.waitForFunction(() => window.rehearse.lesson === 'straggler');
  await page.click('#change');
  await page.waitForFunction(() => window.rehearse.state.page.runs.length === 2);
  const fills = await page.evaluate(() => {
    window.rehearse.state.moveCursor(12e6);
    return [...document.querySelectorAll('.machine svg')].at(-1)
      .querySelectorAll('.box.device')
      .values()
      .map((one) => getComputedStyle(one).fill)
      .toArray();
  });
  assert.deepEqual(fills.map((one) => one === 'rgb(29, 66, 137)'), [false, true, false, false]);
});
for (const width of [1280, 1920])
  await test(`a lecture has one picture a screen, ${width}`, lessons, async (page) => {
    await page.emulateMedia({ reducedMotion: 'reduce' });
    await page.setViewportSize({ width, height: width === 1280 ? 800 : 1080 });
    await page.click('#lecture');
    const seen = async () => {
      const found = [];
      for (const one of ['.machine', '.timeline', '.curve']) if (await page.isVisible(one)) found.push(one);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false);
      return found;
    };
    assert.deepEqual(await seen(), ['.machine']);
    await page.keyboard.press('ArrowRight');
    await page.waitForFunction(() => window.rehearse.state.page.runs.length === 2);
    assert.deepEqual(await seen(), ['.timeline']);
    await page.keyboard.press('ArrowRight');
    assert.deepEqual(await seen(), ['.curve']);
  });
await test('who guesses first is told how far off it was', lessons, async (page) => {
  await page.focus('#guess');
  for (let i = 0; i < 20; ++i) await page.keyboard.press('ArrowRight');
  assert.match(await page.textContent('.guess output'), /^7\.2\d* ms$/);
  const blue = [0x1d, 0x42, 0x89]; // of the marker
  assert.ok((await pixelsOf(page, '.timeline canvas', [blue]))[0] > 100);
  await page.click('#change');
  await page.waitForFunction(() => window.rehearse.state.page.runs.length === 2);
  assert.match(await page.textContent('.guess output'), /2\.7 % too long/);
});
await test('a straggler is seen', lessons, async (page) => {
  await page.click('.lessons button >> nth=5');
  await page.waitForFunction(() => window.rehearse.lesson === 'straggler');
  await page.click('#change');
  await page.waitForFunction(() => window.rehearse.state.page.runs.length === 2);
  const ranks = await page.evaluate(() =>
    window.rehearse.timeline.ranks
      .filter((one) => one.run.letter === 'B')
      .map((one) => [one.rank, one.alike]),
  );
  assert.deepEqual(ranks, [
    [0, 3],
    [1, 1],
  ]);
});
await test(
  'the page of lessons in the repository plays them with the bundle beside it',
  join(scenarios, 'lessons/lessons.html'),
  async (page) => {
    await page.click('#change');
    await page.waitForFunction(() => window.rehearse.state.page.runs.length === 2);
    const hashes = await playedHashes(page, ['cluster.devices=3', 'jobs.0.schedule.ranks=3']);
    assert.equal(hashes.length, 2, `${hashes}`);
  },
);

const orders = ['gpipe', '1f1b', 'interleaved', 'zb-h1', 'zb-v', 'dualpipe'];
const pipelines = report('pipelines.html', '--pipelines', orders.join(','));
for (const colorScheme of ['light', 'dark'])
  await test(`pipelines are drawn as papers do, ${colorScheme}`, pipelines, async (page) => {
    await page.emulateMedia({ colorScheme });
    for (const width of [1280, 1920]) {
      await page.setViewportSize({ width, height: width === 1280 ? 800 : 1080 });
      await settled(page);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false);
    }
    const state = await page.evaluate(() => {
      const { state, timeline } = window.rehearse;
      timeline.scroller ??= document.querySelector('.rows');
      return {
        titles: state.page.runs.map((run) => run.title),
        bubbles: state.page.runs.map((run) => run.pipeline.bubble),
        on: state.asPipelines,
      };
    });
    assert.deepEqual(state.titles, orders);
    assert.equal(state.on, true);
    assert.ok(state.bubbles[0] > 0.25 && state.bubbles[3] < 0.16 && state.bubbles[5] < state.bubbles[3]);
    assert.match(await page.textContent('.legends'), /weight gradient.*from the other end.*bubble/s);
    // Forward, input gradient and weight gradient; half of DualPipe comes from the other end.
    await page.evaluate(() => (document.querySelector('.rows').scrollTop = 1e6));
    const counts = await pixelsOf(page, '.timeline canvas', [
      [0x2f, 0x7f, 0xd1],
      [0x1d, 0x42, 0x89],
      [0x2f, 0x9e, 0x63],
      [0xe0, 0x8a, 0x1e],
    ]);
    assert.ok(Math.min(...counts) > 300, `${counts}`);
    await page.keyboard.press('p');
    assert.equal(await page.evaluate(() => window.rehearse.state.asPipelines), false);
    assert.match(await page.textContent('.legends'), /exposed/);
  });

function oneSum(name, cluster, ranks) {
  const communicators = [{ name: 'all', ranks: 'all' }];
  const ops = [{ name: 'sum', collective: 'all-reduce', communicator: 'all', bytes: '100MB' }];
  const own = { schema: 'rehearse.schedule.v1', name, ranks, communicators, ops };
  const file = join(folder, `${name}.json`);
  writeFileSync(file, JSON.stringify({ name, cluster, jobs: [{ placement: 'block', schedule: own }] }));
  return report(`${name}.html`, file);
}
for (const [name, cluster, ranks, leaves] of [
  ['nvl', { preset: 'gb200-nvl72' }, 72, ['rail0', 'rail1', 'rail2', 'rail3']],
  ['boxes32', { preset: 'dgx-h100', nodes: 32 }, 256, []],
])
  await test(`a box of many GPUs has a dot for each, as full as its links: ${name}`, oneSum(name, cluster, ranks), async (page) => {
    await page.click('#tab-cluster');
    await page.evaluate(() => {
      const { state } = window.rehearse;
      state.moveCursor(state.end * 0.97);
    });
    const found = await page.evaluate(() => {
      const dots = [...document.querySelectorAll('#panel-cluster circle.dot')];
      return {
        dots: dots.length,
        fills: [...new Set(dots.map((one) => getComputedStyle(one).fill))],
        names: [...document.querySelectorAll('#panel-cluster .box-name')].map((one) => one.textContent),
        outside: dots.filter((one) => {
          const dot = one.getBBox();
          const box = one.parentElement.querySelector('rect').getBBox();
          return dot.x < box.x || dot.x + dot.width > box.x + box.width || dot.y < box.y || dot.y + dot.height > box.y + box.height;
        }).length,
      };
    });
    assert.equal(found.dots, ranks);
    assert.equal(found.outside, 0);
    assert.equal(found.fills.length, 1);
    assert.notEqual(found.fills[0], 'rgb(157, 183, 228)'); // something is on the links
    for (const leaf of leaves) assert.ok(found.names.includes(leaf), `${found.names}`);
    assert.ok(!found.names.includes(''), `${found.names}`);
  });

// All of it is on the screen, not below its edge.
const isWhole = (page) =>
  page.evaluate(() => {
    const rows = document.querySelector('.rows');
    return rows.scrollHeight <= rows.clientHeight + 16;
  });
await test(
  'six steps are small multiples on one screen, each with its step and difference',
  report('six.html', ...['baseline', 'a', 'ab', 'abc', 'abcd', 'abcde'].map((one) => join(scenarios, `axonn-fig3-${one}.json`))),
  async (page) => {
    assert.ok(await isWhole(page));
    const found = await page.evaluate(() => {
      const { timeline, state } = window.rehearse;
      return { labels: timeline.rows.filter((row) => row.kind === 'run').map((row) => row.label), least: timeline.wantedHeight / state.page.runs.length };
    });
    assert.equal(found.labels.length, 6);
    for (const [i, label] of found.labels.entries())
      assert.match(label, i === 0 ? /one step takes [\d.]+ s$/ : /one step takes [\d.]+ s, -\d+\.\d %$/);
    assert.ok((await colorsOf(page, '.timeline canvas')) > 20);
  },
);
await test(
  'two pipelines of four stages begin with a row for each rank, and fit',
  report('four.html', join(scenarios, 'lessons/bubble.json'), '--versus', 'pipeline.schedule=zb-h1'),
  async (page) => {
    assert.equal(await page.evaluate(() => window.rehearse.state.asPipelines), true);
    assert.ok(await isWhole(page));
    const [weights] = await pixelsOf(page, '.timeline canvas', [[0x2f, 0x9e, 0x63]]);
    assert.ok(weights > 1000, `${weights}`); // W of zb-h1
  },
);
await test('six orders of a pipeline fit on one screen', pipelines, async (page) => {
  for (const [width, height] of [[1280, 800], [1920, 1080]]) {
    await page.setViewportSize({ width, height });
    await page.reload();
    await page.waitForFunction(() => document.documentElement.dataset.ready === 'yes');
    assert.ok(await isWhole(page), `${width}`);
  }
});
await test('names of machines are under no cable', one, async (page) => {
  await page.click('#tab-cluster');
  const hidden = await page.evaluate(() => {
    const names = [...document.querySelectorAll('#panel-cluster .node-name')];
    const cables = [...document.querySelectorAll('#panel-cluster .cable:not(.unused)')];
    return names.filter((name) => {
      const box = name.getBBox();
      return cables.some((cable) => {
        const length = cable.getTotalLength();
        for (let at = 0; at <= length; at += 2) {
          const { x, y } = cable.getPointAtLength(at);
          if (x > box.x && x < box.x + box.width && y > box.y + 2 && y < box.y + box.height - 2) return true;
        }
        return false;
      });
    }).length;
  });
  assert.equal(hidden, 0);
});

// Blocks move along the links at the simulation's times.
function watched(name, ...options) {
  const file = join(folder, name);
  execFileSync(rehearse, ['collective', ...options, '--watch', '-o', file], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return file;
}
const ring = ['all-reduce', '--cluster', 'switch:devices=4', '-b', '100000000', '-a', 'ring', '-p', 'none'];
await test('a ring is played: blocks move, are added, and all arrive', watched('ring.html', ...ring), async (page) => {
  const film = () =>
    page.evaluate(() => {
      const { film } = window.rehearse;
      return { at: film.at, done: film.done, moves: film.data.moves.length, steps: film.steps.length };
    });
  assert.deepEqual(await film(), { at: 0, done: 0, moves: 24, steps: 6 });
  await page.click('button[title^="One step on"]');
  assert.equal((await film()).done, 4);
  await page.evaluate(() => window.rehearse.film.show(window.rehearse.film.data.end * 0.42));
  const places = await page.evaluate(() =>
    [...document.querySelectorAll('.packet')].map((one) => one.getBoundingClientRect().x),
  );
  assert.equal(places.length, 4);
  await page.evaluate(() => window.rehearse.film.show(window.rehearse.film.data.end * 0.45));
  const fills = await strokes(page, '.cable:not(.unused)');
  assert.deepEqual([...new Set(fills)], ['rgb(255, 234, 70)']); // all are full
  await page.keyboard.press('End');
  assert.equal((await film()).done, 24);
  const full = await page.evaluate(() => {
    const { state, data } = window.rehearse.film;
    const count = (parts) => parts.toString(2).split('1').length - 1;
    return [...state.blocks.values()].every(({ parts }) => count(parts) === data.full);
  });
  assert.ok(full, 'not every rank has the sum');
  await page.keyboard.press('Home');
  await page.keyboard.press(' ');
  await page.waitForFunction(() => window.rehearse.film.at > 0);
  await page.keyboard.press(' ');
  const { at } = await film();
  await settled(page);
  assert.equal((await film()).at, at);
});
await test(
  'two rings on one NIC move at half the speed',
  watched('one-ring.html', 'all-reduce', '--cluster', join(folder, 'boxes.json'), '--ranks', '0,2', '-b', '100000000', '-a', 'ring', '-p', 'none'),
  async (page) => {
    const alone = await page.evaluate(() => window.rehearse.film.data.end);
    const both = watched('two-rings.html', 'all-reduce', '--cluster', join(folder, 'boxes.json'), '--groups', '2', '-b', '100000000', '-a', 'ring', '-p', 'none');
    await page.goto(`file://${both}`);
    await page.waitForFunction(() => window.rehearse?.film);
    const shared = await page.evaluate(() => window.rehearse.film.data.end);
    assert.ok(shared / alone > 1.99 && shared / alone < 2.01, `${shared / alone}`);
  },
);
for (const [kind, algorithm, cluster = 'switch:devices=8'] of [
  ['all-reduce', 'tree'],
  ['all-reduce', 'halving-doubling'],
  ['all-reduce', 'direct', 'dgx-a100'],
  ['all-reduce', 'nvls', 'dgx-h100'],
  ['all-reduce', 'ring', 'dgx-a100:nodes=2'],
  ['all-reduce', 'hierarchical', 'dgx-a100:nodes=2'],
  ['all-gather', 'ring'],
  ['reduce-scatter', 'ring'],
  ['all-to-all', 'pairwise'],
  ['all-to-all', 'direct', 'dgx-h100'],
  ['all-gather', 'nvls', 'dgx-h100'],
  ['all-gather', 'hierarchical', 'dgx-a100:nodes=2'],
  ['all-reduce', 'bucket', 'tpu-v4:x=2,y=2,z=2'],
  ['all-gather', 'bucket', 'tpu-v4:x=2,y=2,z=2'],
  ['broadcast', 'chain'],
])
  await test(
    `${kind} by ${algorithm}: all get what they want`,
    watched(`${kind}-${algorithm}.html`, kind, '--cluster', cluster, '-b', '8M', '-a', algorithm, '-p', 'none', '--channels', '2'),
    async (page) => {
      await page.keyboard.press('End');
      const missing = await page.evaluate(() => {
        const { state, data } = window.rehearse.film;
        const count = (parts) => parts.toString(2).split('1').length - 1;
        return data.wants.filter(([place, part, chunk]) => {
          const block = state.blocks.get((place * 65536 + part) * 1048576 + chunk);
          return !block || count(block.parts) < data.full;
        }).length;
      });
      assert.equal(missing, 0);
    },
  );

function watchedOp(name, scenario, op, ...options) {
  return report(name, join(scenarios, scenario), '--watch', op, ...options);
}
await test(
  'any collective of a step is watched at its times, beside what else there is',
  watchedOp('gather.html', 'lessons/prefetch.json', 'gather 3'),
  async (page) => {
    const film = () => page.evaluate(() => {
      const { film } = window.rehearse;
      return { title: film.data.title, end: film.data.end / 1e6, moves: film.data.moves.length, begin: film.data.moves[0].begin };
    });
    assert.deepEqual(await film(), { title: 'gather 3 of prefetch', end: 2.002, moves: 2, begin: 0 });
    await page.evaluate(() => window.rehearse.film.show(1e6));
    assert.deepEqual([...new Set(await strokes(page, '.cable:not(.unused)'))], ['rgb(255, 234, 70)']);
    // Two rings of a step, on one NIC: both under way, each with half.
    await page.goto(`file://${watchedOp('rings.html', 'lessons/two-rings.json', 'sum')}`);
    await page.waitForFunction(() => window.rehearse?.film);
    await page.evaluate(() => window.rehearse.film.show(3e6));
    assert.equal(await page.locator('.packet').count(), 4);
    assert.deepEqual(await page.evaluate(() => [window.rehearse.film.data.end / 1e6, window.rehearse.film.data.groups]), [8.012, 2]);
    await page.keyboard.press('End');
    const missing = await page.evaluate(() => {
      const { state, data } = window.rehearse.film;
      const count = (parts) => parts.toString(2).split('1').length - 1;
      return data.wants.filter(([place, part, chunk]) => {
        const block = state.blocks.get((place * 65536 + part) * 1048576 + chunk);
        return !block || count(block.parts) < data.full;
      }).length;
    });
    assert.equal(missing, 0);
  },
);

const shipped = [
  ['axonn-gpt20b-perlmutter.json'],
  ['strategy-fsdp.json'],
  ['strategy-sbp-layouts.json'],
  ['cpu-experts.json'],
  ['jobs-two-trainings.json'],
  ['axonn-weak-80b.json'],
  ['schedules/pipeline.json', '--cluster', 'switch:devices=2'],
];
for (const [scenario, ...options] of shipped) {
  const live = report('live.html', join(scenarios, scenario), ...options, '--live');
  await test(`${scenario} is played in the page as the program plays it`, live, async (page) => {
    const native = hashOf(join(scenarios, scenario), ...options);
    assert.deepEqual(
      await playedHashes(page, ['description=the same again']),
      [native, native],
      kStale,
    );
  });
}
const live = report('live.html', join(scenarios, 'strategy-fsdp.json'), '--live');
await test('switches, choices and grids of a scenario play it again', live, async (page) => {
  const step = () => page.evaluate(() => window.rehearse.state.page.runs.at(-1).step);
  const was = await step();
  await page.getByLabel('prefetch', { exact: true }).selectOption('0');
  await page.waitForFunction(
    (before) =>
      window.rehearse.state.page.runs.length === 2 &&
      window.rehearse.state.page.runs[1].step > before,
    was,
    { timeout: 60000 },
  );
  const native = hashOf(join(scenarios, 'strategy-fsdp.json'), '--set', 'strategy.prefetch=0');
  assert.equal(
    await page.evaluate(() => window.rehearse.state.page.runs[1].result.timeline_hash),
    native,
    kStale,
  );
  assert.deepEqual(await page.evaluate(() => window.rehearse.panels.includes('compare')), true);
});

await browser.close();
rmSync(folder, { recursive: true });
if (failures > 0) {
  console.log(`${failures} failed`);
  process.exit(1);
}
