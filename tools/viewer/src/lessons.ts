// `rehearse lessons -o`: a question, what to change, the step before above the step after, an
// answer.
import { type Page, readPage } from './data';
import { unpack, type Unpacked } from './decode';
import { showFilm } from './film';
import { readFilm } from './film_state';
import { Curve, type Point } from './lesson_curve';
import { kModels, type Variable, withoutChange } from './lesson_models';
import { MachinePicture } from './lesson_picture';
import { Sentence } from './lesson_sentence';
import { type LiveScenario, LivePanel } from './live';
import { forgetColors } from './paint';
import { State } from './state';
import { h, percent, time } from './text';
import { Timeline } from './timeline';

interface Lesson {
  name: string;
  title: string;
  question: string;
  change: string;
  set: string[];
  answer: string[];
  command: string;
  live: LiveScenario;
}

function pictureOf(page: Page): HTMLElement {
  page.runs.forEach((run, i) => {
    run.letter = page.runs.length > 1 ? 'AB'[i] : '';
  });
  const state = new State(page);
  state.asPipelines = state.havePipelines;
  const timeline = new Timeline(state, () => {});
  state.showAll();
  const { url, width, height } = timeline.picture(1000);
  return h('img', { src: url, alt: 'the timeline of the step', width, height });
}

// Questions with their pictures, and behind them, on sheets of their own, the answers.
async function handoutOf(lessons: Lesson[], texts: Map<string, string>): Promise<HTMLElement> {
  const root = document.documentElement;
  const theme = root.dataset['theme'];
  root.dataset['theme'] = 'light';
  forgetColors();
  const questions: HTMLElement[] = [];
  const answers: HTMLElement[] = [];
  for (const [i, lesson] of lessons.entries()) {
    const unpacked = await unpack(texts.get(lesson.name)!);
    const title = `${i + 1} ${lesson.title}`;
    questions.push(
      h(
        'section',
        {},
        h('h2', {}, title),
        h('p', {}, lesson.question),
        pictureOf(firstOf(unpacked)),
        h('p', {}, h('b', {}, 'Change: '), lesson.change),
        h('p', { class: 'lines' }),
      ),
    );
    answers.push(
      h(
        'section',
        {},
        h('h2', {}, title),
        pictureOf(readPage(unpacked)),
        ...lesson.answer.map((text) => h('p', {}, text)),
      ),
    );
  }
  if (theme) root.dataset['theme'] = theme;
  else delete root.dataset['theme'];
  forgetColors();
  return h(
    'div',
    { class: 'handout' },
    h('h1', {}, 'Questions'),
    ...questions,
    h('h1', { class: 'apart' }, 'Answers'),
    ...answers,
  );
}

// The step as it was, without the changed one.
const firstOf = (unpacked: Unpacked): Page =>
  readPage({
    ...unpacked,
    header: {
      ...unpacked.header,
      runs: (unpacked.header['runs'] as unknown[]).slice(0, 1),
      comparison: null,
    },
  });

// The curve of a lesson: asks the simulator for its points while nothing else is asked.
class Points {
  private readonly known = new Map<string, number>(); // ms
  private asked = 0;

  constructor(private readonly panel: LivePanel) {}

  stop(): void {
    ++this.asked;
  }

  async show(
    variable: Variable,
    changesAt: (value: number) => string[],
    draw: (points: Point[]) => void,
  ): Promise<void> {
    const number = ++this.asked;
    const points: Point[] = [];
    for (const at of variable.values) {
      const changes = changesAt(at);
      const key = changes.join('\n');
      for (let tries = 0; !this.known.has(key) && tries < 200; ++tries) {
        const step = await this.panel.stepOf(changes);
        if (step !== null) this.known.set(key, step / 1e6);
        else await new Promise((done) => setTimeout(done, 25));
        if (number !== this.asked) return;
      }
      const step = this.known.get(key);
      if (step === undefined) continue;
      points.push({ at, step });
      draw(points);
    }
  }
}

export async function showLessons(
  written: Record<string, unknown>,
  data: (name: string) => string,
  packed: string,
  root: HTMLElement,
  expose: (parts: Record<string, unknown>) => void,
): Promise<void> {
  const lessons = written['lessons'] as Lesson[];
  let open = '';
  const machine = new MachinePicture();
  const curve = new Curve();
  let sentence: Sentence | null = null;
  let followStep = () => {};
  const panel = new LivePanel(root, packed, (parts) => {
    const state = parts['state'] as State | undefined;
    if (state && state !== shownState) {
      shownState = state;
      machine.attach(state, watchOf());
      followStep();
    }
    expose({ ...parts, lesson: open, lessons: lessons.map((one) => one.name), machine, sentence, models: kModels });
  });
  panel.inColumn = true;
  let shownState: State | null = null;
  let points = new Points(panel);
  const list = h('nav', { class: 'lessons', 'aria-label': 'Lessons' });
  const told = h('div', { class: 'lesson' });
  const below = h('div', { class: 'lesson' });
  // The film of the lesson as it is shown; of dragged numbers there is none.
  const watchOf = () => {
    const text = films.get(`${open}-film-${box.checked ? 'after' : 'before'}`);
    if (!text || (sentence && !sentence.isAsItWas(box.checked))) return null;
    return () =>
      void unpack(text).then((unpacked) => {
        machine.stop();
        const over = h('div', { class: 'film-over' });
        document.body.append(over);
        const parts = (window as unknown as Record<string, Record<string, unknown>>)['rehearse'];
        showFilm(readFilm(unpacked), (film) => expose({ ...parts, ...film }), over, () => {
          over.remove();
          expose({ ...parts, film: undefined });
        });
      });
  };
  // Taken before the page is laid out, which empties it.
  const texts = new Map(lessons.map((one) => [one.name, data(one.name)]));
  const films = new Map(
    lessons.flatMap(({ name }) =>
      ['before', 'after'].map((when) => [`${name}-film-${when}`, data(`${name}-film-${when}`)] as const),
    ),
  );
  let box = h('input', {});
  let answer = h('details', {});
  let stage = 0; // of a lecture: the question, the change, the answer
  const kStages = 3;
  const setStage = (to: number) => {
    stage = to;
    document.body.dataset['stage'] = String(to);
  };
  const go = async (by: number): Promise<void> => {
    const at = lessons.findIndex((one) => one.name === open);
    if (stage + by < 0 || stage + by >= kStages) {
      const other = lessons[at + by];
      if (!other) return;
      await show(other);
      if (by < 0) for (let i = 1; i < kStages; ++i) await go(1);
      return;
    }
    setStage(stage + by);
    if (box.checked !== stage > 0) box.click();
    answer.open = stage > 1;
    column.scrollTop = 0;
  };
  const lecture = h(
    'button',
    {
      id: 'lecture',
      'aria-pressed': 'false',
      title: 'Large type, one picture a screen; arrows go on (L)',
      click: () => {
        const on = document.body.classList.toggle('lecture');
        setStage(answer.open ? 2 : box.checked ? 1 : 0);
        lecture.setAttribute('aria-pressed', String(on));
        panel.showAgain();
      },
    },
    'Lecture',
  );
  const handout = h(
    'button',
    {
      id: 'handout',
      title: 'Print all questions, and apart from them the answers',
      click: async () => {
        const sheets = await handoutOf(lessons, texts);
        document.body.append(sheets);
        document.body.classList.add('hands-out');
        window.addEventListener(
          'afterprint',
          () => {
            sheets.remove();
            document.body.classList.remove('hands-out');
          },
          { once: true },
        );
        await Promise.all([...sheets.querySelectorAll('img')].map((one) => one.decode()));
        print();
      },
    },
    'Print a handout',
  );
  const allViews = h(
    'button',
    {
      id: 'all-views',
      'aria-pressed': 'false',
      title: 'Search, selection, breakdown, memory, links: what a report shows',
      click: () => {
        const on = column.classList.toggle('detailed');
        allViews.setAttribute('aria-pressed', String(on));
        panel.showAgain();
      },
    },
    'All views of this step',
  );
  document.addEventListener(
    'keydown',
    (event) => {
      if (document.querySelector('.film-over')) return;
      const isWriting = event.target instanceof HTMLElement && event.target.matches('input, select, textarea');
      const isBox = event.target === box;
      const isNumber = event.target instanceof HTMLElement && event.target.matches('.dragged');
      if ((isWriting && !isBox) || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key.toLowerCase() === 'l') lecture.click();
      else if (document.body.classList.contains('lecture') && !(isNumber && event.key.startsWith('Arrow'))) {
        const by = { ArrowRight: 1, PageDown: 1, ' ': 1, ArrowLeft: -1, PageUp: -1 }[event.key];
        if (event.key === 'Escape') lecture.click();
        else if (by) void go(by);
        else return;
      } else return;
      event.preventDefault();
      event.stopImmediatePropagation();
    },
    { capture: true },
  );
  const show = async (lesson: Lesson): Promise<void> => {
    const unpacked = await unpack(texts.get(lesson.name)!);
    open = lesson.name;
    location.replace(`#${lesson.name}`);
    const both = () => readPage(unpacked);
    const before = firstOf(unpacked);
    before.asPipelines = before.runs[0].pipeline !== null;
    before.panel = 'cluster';
    setStage(0);
    points.stop();
    points = new Points(panel);
    list.replaceChildren(
      ...lessons.map((one, i) =>
        h(
          'button',
          { 'aria-current': one === lesson ? 'true' : undefined, click: () => void show(one) },
          `${i + 1} ${one.title}`,
        ),
      ),
    );
    const model = kModels[lesson.name];
    // The number that was moved last, or that the change moves, is what the curve is drawn against.
    let against = model?.variables.find((one) => one.changed !== undefined) ?? model?.variables[0];
    const play = () => {
      if (!model || !sentence || (sentence.isAsItWas(box.checked))) {
        panel.change(box.checked ? lesson.set : [], both);
        return;
      }
      const { values } = sentence;
      // A change is seen beside the same numbers without it.
      const without = withoutChange(model, values);
      const isMoved = model.variables.some((one) => without[one.name] !== one.now);
      const base = box.checked && isMoved ? model.changes(without, false) : [];
      panel.change(model.changes(values, box.checked), null, base);
    };
    box = h('input', {
      type: 'checkbox',
      id: 'change',
      change: () => {
        if (box.checked) reveal();
        wantsToBePlayed = box.checked;
        tellGuess();
        sentence?.reset(box.checked);
        play();
      },
    });
    // A guess first: what was thought is remembered with what was wrong about it.
    panel.guess = undefined;
    const asItIs = before.runs[0].step;
    const wanted = readPage(unpacked).runs[1].step;
    const guessed = h('output', {}, 'drag the bar to where it will end');
    const kParts = 200; // of twice the step as it is
    const takeGuess = (at: number) => {
      panel.guess = at;
      guess.value = String(Math.round((at / asItIs / 2) * kParts));
      tellGuess();
    };
    const guess = h('input', {
      type: 'range',
      id: 'guess',
      min: 1,
      max: kParts,
      value: kParts / 2,
      'aria-label': 'My guess',
      input: () => {
        panel.guess = (Number(guess.value) / kParts) * 2 * asItIs;
        tellGuess();
        panel.showAgain();
      },
    });
    const tellGuess = () => {
      if (panel.guess === undefined) return;
      const off = panel.guess / wanted - 1;
      guessed.textContent = !box.checked
        ? time(panel.guess)
        : `${time(panel.guess)}: ` +
          (Math.abs(off) < 0.02
            ? 'right'
            : `${percent(Math.abs(off))} too ${off > 0 ? 'long' : 'short'}`);
    };
    panel.onGuess = takeGuess;
    // The curve would tell before anybody has thought.
    let isRevealed = false;
    let wantsToBePlayed = false;
    const reveal = () => {
      isRevealed = true;
      panel.onGuess = undefined;
      figures.classList.add('revealed');
    };
    sentence = model
      ? new Sentence(model, (variable) => {
          reveal();
          against = variable;
          play();
        })
      : null;
    followStep = () => {
      const run = shownState?.page.runs.at(-1);
      if (wantsToBePlayed && shownState && shownState.page.runs.length > 1) {
        wantsToBePlayed = false;
        if (!matchMedia('(prefers-reduced-motion: reduce)').matches) machine.play();
      }
      points.stop();
      if (!model || !sentence || !run || !isRevealed || !against) return;
      const own = sentence;
      const variable = against;
      const isChanged = box.checked;
      const values = { ...own.values };
      const now = { at: values[variable.name], step: run.step / 1e6 };
      const draw = (found: Point[]) => curve.draw(model, variable, values, isChanged, found, now);
      draw([]);
      void points.show(
        variable,
        (at) => model.changes({ ...values, [variable.name]: at }, isChanged),
        draw,
      );
    };
    answer = h(
      'details',
      {
        class: 'answer',
        toggle: () => {
          if (!answer.open) delete answer.dataset['printed'];
          if (!answer.open || box.checked || answer.dataset['printed']) return;
          box.checked = true;
          reveal();
          tellGuess();
          sentence?.reset(true);
          play();
        },
      },
      h('summary', {}, 'The answer'),
      ...lesson.answer.map((text) => h('p', {}, text)),
    );
    curve.element.replaceChildren(
      h('p', { class: 'note' }, 'A curve stands here once you have played the change, or dragged a number.'),
    );
    const figures = h('div', { class: 'figures' }, machine.element, curve.element);
    told.replaceChildren(
      h('h2', {}, lesson.title),
      h('p', { class: 'question' }, lesson.question),
      figures,
      h(
        'div',
        { class: 'turns' },
        h('label', { class: 'turn guess' }, h('span', {}, 'My guess'), guessed, guess),
        h('label', { class: 'turn switch main-switch' }, box, h('span', {}, lesson.change)),
      ),
      ...(sentence ? [sentence.element] : []),
      panel.message,
      panel.told,
    );
    below.replaceChildren(
      answer,
      h('details', { class: 'more' }, h('summary', {}, 'Or change this'), panel.element),
      h('p', { class: 'buttons' }, allViews),
    );
    panel.take(lesson.live, before);
    column.scrollTop = 0;
  };
  const column = h('main', { class: 'column' }, told, root, below);
  document.body.classList.add('live', 'lessons-page');
  document.body.replaceChildren(
    h('aside', { class: 'side' }, h('p', { class: 'buttons' }, lecture, handout), list),
    column,
  );
  await show(lessons.find((one) => `#${one.name}` === location.hash) ?? lessons[0]);
}
