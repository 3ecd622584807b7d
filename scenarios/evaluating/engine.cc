#include "scenarios/evaluating/engine.h"

#include <algorithm>

#include <fmt/format.h>

#include "scenarios/playing/few_layers.h"
#include "scenarios/playing/rehearsal.h"
#include "sim/base/error.h"
#include "sim/base/fnv.h"
#include "sim/base/interruption.h"
#include "sim/base/progress.h"
#include "sim/base/version.h"

namespace rehearse {
namespace {

// Reports the progress of a simulation, and ends it when it should stop.
class PlayObserver : public ProgressObserver {
 public:
  PlayObserver(const std::function<bool()>& is_stopped, const std::function<void(double)>& tell)
      : is_stopped_(is_stopped), tell_(tell) {}

  void Begin(std::string_view what, std::string_view /*parts*/, uint64_t all) override {
    all_ = what == kSimulating ? static_cast<double>(all) : 0;
    Tell(0);
  }
  void Done(double parts) override { Tell(all_ > 0 ? std::min(parts / all_, 1.0) : 0); }

 private:
  void Tell(double share) {
    if (is_stopped_()) throw Stopped("a point is not done");
    if (tell_) tell_(share);
  }

  const std::function<bool()>& is_stopped_;
  const std::function<void(double)> tell_;
  double all_ = 0;
};

}  // namespace

std::string ThisBuild() { return fmt::format("{} {}", Version(), BuildCommit()); }

Scenario Engine::Read(const JsonDocument& document) {
  Scenario scenario = ReadScenario(document, &clusters_);
  if (options_.allow_out_of_memory) scenario.allow_out_of_memory = true;
  return scenario;
}

Result Engine::Play(const Scenario& scenario, const std::function<void(double)>& tell) {
  PlayObserver observer(options_.is_stopped, tell);
  const GroupMemories::Taken memory(memories_, scenario);
  std::optional<Result> result =
      RehearseFewLayers(scenario, {.observer = &observer,
                                   .memory = memory.get(),
                                   .layers = &layers_,
                                   .hash = options_.hash,
                                   .bounds_memory = options_.bounds_memory});
  if (result) return *std::move(result);
  return PlayWhole(scenario, &observer, memory.get(), {});
}

Result Engine::PlayInView(const Scenario& scenario, const Look& look) {
  PlayObserver observer(options_.is_stopped, {});
  const GroupMemories::Taken memory(memories_, scenario);
  return PlayWhole(scenario, &observer, memory.get(), look);
}

Result Engine::PlayWhole(const Scenario& scenario, ProgressObserver* observer, GroupMemory* memory,
                         const Look& look) {
  return Rehearse(scenario, {.observer = observer,
                             .threads = 1,
                             .hash = options_.hash,
                             .memory = memory,
                             .spans = false,
                             .look = look})
      .result;
}

Evaluation Engine::Evaluate(const EvaluationKey& key, const std::vector<JsonDocument>& documents,
                            const std::function<void(double)>& tell) {
  Evaluation evaluation = ReadAndPlay(&key, documents, tell);
  if (!evaluation.kept)
    for (PointStore* store : options_.stores) store->Keep(key, evaluation);
  return evaluation;
}

Evaluation Engine::EvaluateApart(const std::vector<JsonDocument>& documents) {
  return ReadAndPlay(nullptr, documents, {});
}

std::string Engine::ErrorOf(const JsonDocument& document) {
  try {
    const Scenario scenario = Read(document);
    const GroupMemories::Taken memory(memories_, scenario);
    if (!RehearseFewLayers(scenario, {.memory = memory.get(), .layers = &layers_, .hash = false}))
      Rehearse(scenario, {.threads = 1, .hash = false, .spans = false});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

Evaluation Engine::ReadAndPlay(const EvaluationKey* key, const std::vector<JsonDocument>& documents,
                               const std::function<void(double)>& tell) {
  Evaluation evaluation;
  try {
    std::vector<Scenario> scenarios;
    scenarios.reserve(documents.size());
    for (const JsonDocument& document : documents) scenarios.push_back(Read(document));
    evaluation.device = scenarios.front().cluster->DeviceOf(0).name;
    if (options_.hash) evaluation.hash = HashOf(documents, scenarios);
    if (key != nullptr && options_.hash && !options_.again && Find(*key, &evaluation))
      return evaluation;

    const auto plays = static_cast<double>(scenarios.size());
    for (const Scenario& scenario : scenarios) {
      const auto ended = static_cast<double>(evaluation.results.size());
      std::function<void(double)> tell_all;
      if (tell) tell_all = [&](double share) { tell((ended + share) / plays); };
      evaluation.results.push_back(Play(scenario, tell_all));
    }
  } catch (const Error& error) {
    evaluation.results.clear();
    evaluation.error = error.what();
  }
  return evaluation;
}

std::string Engine::HashOf(const std::vector<JsonDocument>& documents,
                           const std::vector<Scenario>& scenarios) const {
  Fnv1a hash;
  const auto add = [&](const std::string& text) {
    hash.Add(uint64_t{text.size()});
    hash.Add(text);
  };
  add(options_.build);
  for (const JsonDocument& document : documents) {
    if (!document.value().contains("search")) {
      add(document.value().dump());
      continue;
    }
    nlohmann::json value = document.value();  // how it was searched makes no difference
    value.erase("search");
    add(value.dump());
  }
  if (options_.allow_out_of_memory) add("--allow-oom");
  for (const Scenario& scenario : scenarios)
    for (const InputFile& file : scenario.files) hash.Add(file.hash);
  return fmt::format("{:016x}", hash.hash());
}

bool Engine::Find(const EvaluationKey& key, Evaluation* evaluation) const {
  for (size_t i = 0; i < options_.stores.size(); ++i) {
    std::optional<Evaluation> found = options_.stores[i]->Find(key, evaluation->hash);
    if (!found) continue;
    found->kept = true;
    found->hash = evaluation->hash;
    found->device = evaluation->device;
    *evaluation = std::move(*found);
    for (size_t k = 0; k < options_.stores.size(); ++k)
      if (k != i && !options_.stores[k]->Find(key, evaluation->hash))
        options_.stores[k]->Keep(key, *evaluation);
    return true;
  }
  return false;
}

}  // namespace rehearse
