#include "tests/support/random_program.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

class RecipeMaker {
 public:
  RecipeMaker(uint64_t seed, uint32_t max_tasks) : random_(seed), max_tasks_(max_tasks) {}

  // Recipes without extras are the same as they always were, because golden hashes depend on them.
  ProgramRecipe Make(const Extras& extras) {
    Make();
    if (extras.long_chains) {
      const uint32_t count = random_.Between(1, 3);
      for (uint32_t i = 0; i < count; ++i) AddChain(32, 150, 1);
    }
    if (extras.core) AddCore();
    if (extras.interference) AddInterference();
    if (extras.link_changes) AddLinkChanges();
    return std::move(recipe_);
  }

  ProgramRecipe MakeBusy(uint32_t lanes, uint32_t length, const Extras& extras) {
    const bool coarse = random_.Chance(50);
    const uint32_t link_count = random_.Between(4, 40);
    for (uint32_t i = 0; i < link_count; ++i) {
      const double gigabytes = coarse ? random_.Between(1, 3) : 1 + 3 * random_.Fraction();
      recipe_.links.push_back({fmt::format("link{}", i), "test", BytesPerSecond(1e9 * gigabytes)});
    }
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      for (uint32_t i = 0; i < length; ++i) {
        std::vector<uint32_t> links = {random_.Below(link_count)};
        const uint32_t others = random_.Between(1, 3);
        for (uint32_t j = 0; j < others; ++j) links.push_back(random_.Below(link_count));
        std::sort(links.begin(), links.end());
        links.erase(std::unique(links.begin(), links.end()), links.end());
        std::vector<LinkUse> uses;
        for (const uint32_t link : links) {
          uses.push_back({LinkId(link), random_.Chance(85) ? 1 : random_.Between(2, 5)});
        }
        recipe_.use_sets.push_back(std::move(uses));
        Flow flow;
        flow.bytes = coarse ? 10'000.0 * random_.Between(1, 3) : random_.Between(1, 100'000);
        flow.latency = random_.Chance(80) ? Time(0) : RandomDuration();
        flow.use_set = static_cast<uint32_t>(recipe_.use_sets.size() - 1);
        recipe_.flows.push_back(flow);
        ProgramRecipe::Step step;
        step.task = {TaskKind::kFlow, static_cast<uint32_t>(recipe_.flows.size() - 1)};
        if (i > 0) step.predecessors.push_back(Count() - 1);
        recipe_.steps.push_back(step);
      }
    }
    for (int i = 0; i < 3 && extras.long_chains; ++i) AddChain(32, 150, 1);
    if (extras.core) AddCore();
    if (extras.interference) AddInterference();
    if (extras.link_changes) AddLinkChanges();
    return std::move(recipe_);
  }

 private:
  void Make() {
    const uint32_t link_count = random_.Between(1, 8);
    for (uint32_t i = 0; i < link_count; ++i) {
      const double gigabytes =
          random_.Chance(50) ? random_.Between(1, 10) : 1 + 9 * random_.Fraction();
      recipe_.links.push_back({fmt::format("link{}", i), "test", BytesPerSecond(1e9 * gigabytes)});
    }
    const uint32_t use_set_count = random_.Between(1, 12);
    for (uint32_t i = 0; i < use_set_count; ++i) recipe_.use_sets.push_back(RandomUseSet());

    // Some programs are mostly rings, whose flows rest and move again together while
    // others come and go.
    const uint32_t chain_percent = random_.Chance(70) ? 10 : 50;
    const uint32_t task_count = random_.Between(1, max_tasks_);
    while (recipe_.steps.size() < task_count) {
      const uint32_t what = random_.Below(100);
      if (random_.Chance(chain_percent)) {
        AddChain();
      } else if (what < 15) {
        AddStep({TaskKind::kJoin, 0}, Count());
      } else if (what < 35) {
        recipe_.delays.push_back(RandomDuration());
        AddStep({TaskKind::kDelay, static_cast<uint32_t>(recipe_.delays.size() - 1)}, Count());
      } else {
        AddFlow(RandomFlow(random_.Chance(75) ? 1 : random_.Between(2, 5)), Count());
      }
    }
  }

  uint32_t Count() const { return static_cast<uint32_t>(recipe_.steps.size()); }

  std::vector<LinkUse> RandomUseSet() {
    std::vector<LinkUse> uses;
    if (random_.Chance(5)) return uses;
    for (uint32_t link = 0; link < recipe_.links.size(); ++link) {
      if (random_.Chance(30)) uses.push_back({LinkId(link), RandomMultiplicity()});
    }
    if (uses.empty()) {
      const uint32_t link = random_.Below(static_cast<uint32_t>(recipe_.links.size()));
      uses.push_back({LinkId(link), RandomMultiplicity()});
    }
    return uses;
  }

  uint32_t RandomMultiplicity() { return random_.Chance(70) ? 1 : random_.Between(2, 4); }

  // The duration is up to 10 us; a fifth of them are zero.
  Time RandomDuration() {
    const uint32_t what = random_.Below(100);
    if (what < 20) return Time(0);
    if (what < 60) return Time(1'000'000 * int64_t{random_.Between(1, 10)});
    return Time(random_.Between(1, 10'000'000));
  }

  // The bytes are up to 100 kB, 10 us to 100 us on a link of its own; one in ten has none.
  double RandomBytes() {
    const uint32_t what = random_.Below(100);
    if (what < 10) return 0;
    if (what < 60) return 10'000.0 * random_.Between(1, 10);
    if (what < 90) return random_.Between(1, 100'000);
    return 100'000 * random_.Fraction();
  }

  Flow RandomFlow(uint32_t steps) {
    Flow flow;
    flow.bytes = RandomBytes();
    flow.latency = random_.Chance(40) ? Time(0) : RandomDuration();
    flow.steps = steps;
    flow.use_set = random_.Below(static_cast<uint32_t>(recipe_.use_sets.size()));
    return flow;
  }

  // Adds a task that waits for up to three of the first `earlier` tasks.
  uint32_t AddStep(Task task, uint32_t earlier) {
    ProgramRecipe::Step step;
    step.task = task;
    const uint32_t predecessor_count = earlier == 0 ? 0 : random_.Below(4);
    for (uint32_t i = 0; i < predecessor_count; ++i) {
      // Rather recent tasks are drawn, so that the program is deep.
      const uint32_t back = random_.Below(std::min(earlier, 12u));
      step.predecessors.push_back(earlier - 1 - back);
    }
    if (!step.predecessors.empty() && random_.Chance(50)) step.ready = step.predecessors.front();
    recipe_.steps.push_back(step);
    return Count() - 1;
  }

  uint32_t AddFlow(const Flow& flow, uint32_t earlier) {
    recipe_.flows.push_back(flow);
    return AddStep({TaskKind::kFlow, static_cast<uint32_t>(recipe_.flows.size() - 1)}, earlier);
  }

  // Adds a ring or an open chain of two to six flows, equal ones or not. Its flows do not wait for
  // each other's ends, which might never come.
  void AddChain(uint32_t fewest_steps = 1, uint32_t most_steps = 10, uint32_t shortest = 2) {
    const uint32_t earlier = Count();
    const uint32_t length = random_.Between(shortest, 6);
    const uint32_t steps = random_.Between(fewest_steps, most_steps);
    const bool alike = random_.Chance(50);
    const Flow model = RandomFlow(steps);
    for (uint32_t i = 0; i < length; ++i) {
      Flow flow = RandomFlow(steps);
      if (alike) {
        flow.bytes = model.bytes;
        flow.latency = model.latency;
      }
      AddFlow(flow, earlier);
      if (i > 0) recipe_.chains.emplace_back(earlier + i - 1, earlier + i);
    }
    if (random_.Chance(70)) recipe_.chains.emplace_back(earlier + length - 1, earlier);
  }

  // Adds one or two links as wide as a third to all of the others together, on most use sets.
  void AddCore() {
    double sum = 0;
    for (const ProgramLink& link : recipe_.links) sum += link.capacity.value();
    const uint32_t count = random_.Between(1, 2);
    for (uint32_t i = 0; i < count; ++i) {
      const LinkId core(static_cast<uint32_t>(recipe_.links.size()));
      const double share = 0.3 + 0.8 * random_.Fraction();
      recipe_.links.push_back({"core", "test", BytesPerSecond(sum * share)});
      for (std::vector<LinkUse>& uses : recipe_.use_sets) {
        if (!uses.empty() && random_.Chance(80)) uses.push_back({core, RandomMultiplicity()});
      }
    }
  }

  double RandomSlowdown() {
    return random_.Chance(30) ? 0 : random_.Chance(50) ? 0.5 : random_.Fraction();
  }

  void AddInterference() {
    const uint32_t hosts = random_.Below(3);
    for (uint32_t i = 0; i < hosts; ++i) recipe_.host_cores.push_back(random_.Between(1, 4));
    const uint32_t processors = random_.Between(1, 5);
    for (uint32_t i = 0; i < processors; ++i) {
      Processor processor;
      if (hosts > 0 && random_.Chance(70)) processor.host = random_.Below(hosts);
      processor.slowdown = RandomSlowdown();
      processor.copies = random_.Chance(80) ? 1 : 2;
      recipe_.processors.push_back(processor);
    }
    for (size_t i = 0; i < recipe_.delays.size(); ++i) {
      DelayOwner owner;
      if (random_.Chance(70)) owner.processor = random_.Below(processors);
      owner.slowdown = RandomSlowdown();
      recipe_.owners.push_back(owner);
    }
    for (size_t i = 0; i < recipe_.flows.size(); ++i) {
      std::vector<uint32_t> parties;
      for (uint32_t processor = 0; processor < processors; ++processor) {
        if (random_.Chance(40)) parties.push_back(processor);
      }
      recipe_.parties.push_back(parties);
    }
  }

  // Every link that fails recovers in the end, so that nothing is stuck forever.
  void AddLinkChanges() {
    const uint32_t count = random_.Between(1, 8);
    for (uint32_t i = 0; i < count; ++i) {
      const LinkId link(random_.Below(static_cast<uint32_t>(recipe_.links.size())));
      const Time time = random_.Chance(20) ? Time(0) : 20 * RandomDuration();
      const double factor = random_.Chance(40)   ? 0
                            : random_.Chance(50) ? 0.5
                                                 : 0.1 + 1.5 * random_.Fraction();
      recipe_.link_changes.push_back({time, link, factor});
      if (factor == 0) recipe_.link_changes.push_back({time + 10 * RandomDuration(), link, 1});
      const Time end(400'000'000 + int64_t{i});
      recipe_.link_changes.push_back({end, link, 1 - 0.5 * random_.Fraction()});
    }
    for (const Flow& flow : recipe_.flows) {
      const uint32_t set = random_.Below(static_cast<uint32_t>(recipe_.use_sets.size()));
      const bool possible =
          !recipe_.use_sets[set].empty() && !recipe_.use_sets[flow.use_set].empty();
      recipe_.alternatives.push_back(possible && random_.Chance(50) ? set : Program::kNone);
    }
  }

  Random random_;
  uint32_t max_tasks_;
  ProgramRecipe recipe_;
};

// 0 .. count-1, shuffled (Fisher-Yates) when asked to.
std::vector<uint32_t> Order(size_t count, Random* shuffle) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = count; shuffle != nullptr && i > 1; --i) {
    std::swap(order[i - 1], order[shuffle->Below(static_cast<uint32_t>(i))]);
  }
  return order;
}

void AddExtras(const ProgramRecipe& recipe, const std::vector<LinkId>& links,
               const std::vector<TaskId>& tasks, uint32_t use_set_base, ProgramBuilder& builder) {
  std::vector<uint32_t> hosts;
  std::vector<uint32_t> processors;
  for (const double cores : recipe.host_cores) hosts.push_back(builder.AddHost(cores));
  for (Processor processor : recipe.processors) {
    if (processor.host != Program::kNone) processor.host = hosts[processor.host];
    processors.push_back(builder.AddProcessor(processor));
  }
  for (uint32_t i = 0; i < recipe.steps.size(); ++i) {
    const Task& task = recipe.steps[i].task;
    if (task.kind == TaskKind::kDelay && !recipe.owners.empty()) {
      DelayOwner owner = recipe.owners[task.payload];
      if (owner.processor == Program::kNone) continue;
      owner.processor = processors[owner.processor];
      builder.SetOwner(tasks[i], owner);
    }
    if (task.kind != TaskKind::kFlow) continue;
    if (!recipe.parties.empty() && !recipe.parties[task.payload].empty()) {
      std::vector<uint32_t> parties;
      for (const uint32_t party : recipe.parties[task.payload]) {
        parties.push_back(processors[party]);
      }
      builder.SetParties(tasks[i], builder.AddPartySet(parties));
    }
    if (!recipe.alternatives.empty() && recipe.alternatives[task.payload] != Program::kNone) {
      builder.SetAlternative(tasks[i], use_set_base + recipe.alternatives[task.payload]);
    }
  }
  for (LinkChange change : recipe.link_changes) {
    change.link = links[change.link.index()];
    builder.AddLinkChange(change);
  }
}

}  // namespace

ProgramRecipe RandomRecipe(uint64_t seed, uint32_t max_tasks) {
  return ExtendedRecipe(seed, max_tasks, {});
}

ProgramRecipe ExtendedRecipe(uint64_t seed, uint32_t max_tasks, const Extras& extras) {
  return RecipeMaker(seed, max_tasks).Make(extras);
}

ProgramRecipe BusyRecipe(uint64_t seed, uint32_t lanes, uint32_t length, const Extras& extras) {
  return RecipeMaker(seed, 0).MakeBusy(lanes, length, extras);
}

Program Assemble(const std::vector<ProgramRecipe>& recipes, Random* shuffle) {
  // All (recipe, position) pairs of links and of tasks, in the order in which they are added.
  std::vector<std::pair<uint32_t, uint32_t>> all_links;
  std::vector<std::pair<uint32_t, uint32_t>> all_steps;
  for (uint32_t r = 0; r < recipes.size(); ++r) {
    for (uint32_t i = 0; i < recipes[r].links.size(); ++i) all_links.emplace_back(r, i);
    for (uint32_t i = 0; i < recipes[r].steps.size(); ++i) all_steps.emplace_back(r, i);
  }

  ProgramBuilder builder;
  std::vector<std::vector<LinkId>> links(recipes.size());
  std::vector<std::vector<TaskId>> tasks(recipes.size());
  std::vector<uint32_t> use_set_base(recipes.size());
  for (size_t r = 0; r < recipes.size(); ++r) {
    links[r].resize(recipes[r].links.size());
    tasks[r].resize(recipes[r].steps.size());
  }
  for (const uint32_t i : Order(all_links.size(), shuffle)) {
    const auto [r, position] = all_links[i];
    links[r][position] = builder.AddLink(recipes[r].links[position]);
  }
  for (size_t r = 0; r < recipes.size(); ++r) {
    for (size_t i = 0; i < recipes[r].use_sets.size(); ++i) {
      std::vector<LinkUse> uses;
      for (const uint32_t j : Order(recipes[r].use_sets[i].size(), shuffle)) {
        const LinkUse& use = recipes[r].use_sets[i][j];
        uses.push_back({links[r][use.link.index()], use.multiplicity});
      }
      const uint32_t set = builder.AddUseSet(uses);
      if (i == 0) use_set_base[r] = set;
    }
  }
  for (const uint32_t i : Order(all_steps.size(), shuffle)) {
    const auto [r, position] = all_steps[i];
    const Task& task = recipes[r].steps[position].task;
    TaskId& id = tasks[r][position];
    switch (task.kind) {
      case TaskKind::kJoin:
        id = builder.AddJoin();
        break;
      case TaskKind::kDelay:
        id = builder.AddDelay(recipes[r].delays[task.payload]);
        break;
      case TaskKind::kSeries:
        CHECK(false);  // recipes have delays one by one
        break;
      case TaskKind::kFlow: {
        Flow flow = recipes[r].flows[task.payload];
        flow.use_set += use_set_base[r];
        id = builder.AddFlow(flow);
        break;
      }
    }
  }
  for (uint32_t r = 0; r < recipes.size(); ++r) {
    for (const auto& [upstream, downstream] : recipes[r].chains) {
      builder.Chain(tasks[r][upstream], tasks[r][downstream]);
    }
    for (uint32_t i = 0; i < recipes[r].steps.size(); ++i) {
      const ProgramRecipe::Step& step = recipes[r].steps[i];
      for (const uint32_t predecessor : step.predecessors) {
        builder.AddEdge(tasks[r][predecessor], tasks[r][i]);
      }
      const bool has_ready = step.ready != Id<TaskTag>::kNone;
      builder.AddSpan({.rank = r,
                       .op = i,
                       .ready = has_ready ? tasks[r][step.ready] : TaskId(),
                       .begin = tasks[r][i],
                       .end = tasks[r][i]});
    }
  }
  for (uint32_t r = 0; r < recipes.size(); ++r) {
    AddExtras(recipes[r], links[r], tasks[r], use_set_base[r], builder);
  }
  return builder.Build();
}

Program RandomProgram(uint64_t seed, uint32_t max_tasks) {
  return Assemble({RandomRecipe(seed, max_tasks)});
}

Program RingProgram(const std::vector<double>& capacities, uint32_t steps, double bytes,
                    Time latency) {
  ProgramBuilder builder;
  std::vector<TaskId> flows;
  for (size_t i = 0; i < capacities.size(); ++i) {
    const LinkId link =
        builder.AddLink({fmt::format("edge{}", i), "test", BytesPerSecond(capacities[i])});
    Flow flow;
    flow.bytes = bytes;
    flow.latency = latency;
    flow.steps = steps;
    flow.use_set = builder.AddUseSet({{link, 1}});
    flows.push_back(builder.AddFlow(flow));
    builder.AddSpan({.rank = static_cast<uint32_t>(i),
                     .op = 0,
                     .ready = TaskId(),
                     .begin = flows.back(),
                     .end = flows.back()});
  }
  for (size_t i = 0; i < flows.size(); ++i) builder.Chain(flows[i], flows[(i + 1) % flows.size()]);
  return builder.Build();
}

}  // namespace rehearse
