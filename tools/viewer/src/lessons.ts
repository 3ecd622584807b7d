// `rehearse lessons -o`: a question, what to change, the step before above the step after, an
// answer.
import { readPage } from './data';
import { unpack } from './decode';
import { type LiveScenario, LivePanel } from './live';
import { h } from './text';

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

export async function showLessons(
  written: Record<string, unknown>,
  data: (name: string) => string,
  packed: string,
  root: HTMLElement,
  expose: (parts: Record<string, unknown>) => void,
): Promise<void> {
  const lessons = written['lessons'] as Lesson[];
  let open = '';
  const panel = new LivePanel(root, packed, (parts) =>
    expose({ ...parts, lesson: open, lessons: lessons.map((one) => one.name) }),
  );
  const list = h('nav', { class: 'lessons', 'aria-label': 'Lessons' });
  const told = h('div', { class: 'lesson' });
  // Taken before the page is laid out, which empties it.
  const texts = new Map(lessons.map((one) => [one.name, data(one.name)]));
  const show = async (lesson: Lesson): Promise<void> => {
    const unpacked = await unpack(texts.get(lesson.name)!);
    open = lesson.name;
    location.replace(`#${lesson.name}`);
    const both = () => readPage(unpacked);
    const before = readPage({
      ...unpacked,
      header: {
        ...unpacked.header,
        runs: (unpacked.header['runs'] as unknown[]).slice(0, 1),
        comparison: null,
      },
    });
    list.replaceChildren(
      ...lessons.map((one, i) =>
        h(
          'button',
          { 'aria-current': one === lesson ? 'true' : undefined, click: () => void show(one) },
          `${i + 1} ${one.title}`,
        ),
      ),
    );
    const box = h('input', {
      type: 'checkbox',
      id: 'change',
      change: () => panel.change(box.checked ? lesson.set : [], both),
    });
    told.replaceChildren(
      h('h2', {}, lesson.title),
      h('p', { class: 'question' }, lesson.question),
      h('label', { class: 'turn switch main-switch' }, box, h('span', {}, lesson.change)),
      h(
        'details',
        {
          class: 'answer',
          toggle: (event: Event) => {
            if (!(event.target as HTMLDetailsElement).open || box.checked) return;
            if (document.body.classList.contains('printing')) return;
            box.checked = true;
            panel.change(lesson.set, both);
          },
        },
        h('summary', {}, 'The answer'),
        ...lesson.answer.map((text) => h('p', {}, text)),
      ),
      h('h3', {}, 'Or change this'),
    );
    panel.take(lesson.live, before);
  };
  document.body.classList.add('live');
  document.body.replaceChildren(h('aside', { class: 'side' }, list, told, panel.element), root);
  await show(lessons.find((one) => `#${one.name}` === location.hash) ?? lessons[0]);
}
