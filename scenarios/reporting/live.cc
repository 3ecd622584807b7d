#include "scenarios/reporting/live.h"

#include <exception>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "sim/schedule/schedule_json.h"
#include "topology/files/cluster_file.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

const Place kPagePlace = {"this page", 0, ""};

std::string TextAt(const Json& request, const char* key) {
  return request.contains(key) ? request.at(key).get<std::string>() : "";
}

std::vector<std::string> TextsAt(const Json& request, const char* key) {
  return request.contains(key) ? request.at(key).get<std::vector<std::string>>()
                               : std::vector<std::string>();
}

bool FlagAt(const Json& request, const char* key) {
  return request.contains(key) && request.at(key).get<bool>();
}

Scenario ReadLive(const Json& request, const std::string& text,
                  const std::vector<std::string>& changes, const ReadOptions& options,
                  ReaderCache* cache) {
  JsonDocument document = JsonDocument::FromText(text, TextAt(request, "name"), options);
  for (const std::string& change : TextsAt(request, "set")) document.Set(change);
  for (const std::string& change : changes) document.Set(change, kPagePlace);
  const std::string fidelity = TextAt(request, "fidelity");
  const auto read = [&] {
    if (!IsSchedule(document.value())) {
      if (!fidelity.empty()) document.Set("simulator.fidelity=" + fidelity, {"--fidelity", 0, ""});
      return ReadScenario(document, cache);
    }
    Scenario scenario = ScenarioOf(
        document, ReadClusterArgument(TextAt(request, "cluster"), options), std::nullopt);
    for (const Fidelity one : {Fidelity::kFormula, Fidelity::kFluid, Fidelity::kStep})
      if (fidelity == Name(one)) scenario.lowering.fidelity = one;
    return scenario;
  };
  Scenario scenario = read();
  if (FlagAt(request, "allow_oom")) scenario.allow_out_of_memory = true;
  if (FlagAt(request, "no_fold")) scenario.lowering.fold = false;
  return scenario;
}

}  // namespace

Json ToJson(const LiveStep& step) {
  Json json = {{"schema", kLiveSchema}, {"name", step.name}, {"text", step.text}};
  if (!step.cluster.empty()) json["cluster"] = step.cluster;
  json["set"] = step.set;
  if (!step.fidelity.empty()) json["fidelity"] = step.fidelity;
  if (step.allow_out_of_memory) json["allow_oom"] = true;
  if (step.no_fold) json["no_fold"] = true;
  if (!step.files.empty()) json["files"] = step.files;
  return json;
}

ReportedRun LiveSession::Played(const Scenario& scenario, std::string source) {
  met_.insert(scenario.cluster.get());
  ReportedRun run = ReportScenario(scenario, {}, NoObserver(), {}, &*memory_);
  run.source = std::move(source);
  return run;
}

std::string LiveSession::PlayOrThrow(std::string_view text) {
  Json request = Json::parse(text);
  CHECK_EQ(TextAt(request, "schema"), kLiveSchema);
  ReadOptions files;
  if (request.contains("files"))
    files.given = std::make_shared<const GivenFiles>(request["files"].get<GivenFiles>());
  const std::vector<std::string> changes = TextsAt(request, "changes");
  const std::string edited = TextAt(request, "edited");
  request.erase("changes");
  request.erase("edited");
  const std::string known = TextAt(request, "known");
  request.erase("known");
  const std::string name = TextAt(request, "name");
  const std::string written = TextAt(request, "text");
  const std::string first = request.dump();
  constexpr size_t kMostKept = 16;
  if (!cache_ || met_.size() > kMostKept) {
    memory_.emplace();
    cache_.emplace();
    met_.clear();
  }
  if (first != first_) {
    first_.clear();
    report_.runs.clear();
    report_.runs.push_back(Played(ReadLive(request, written, {}, files, &*cache_), name));
    first_ = first;
  }
  report_.runs.erase(report_.runs.begin() + 1, report_.runs.end());
  if (!changes.empty() || !edited.empty()) {
    const Scenario scenario =
        ReadLive(request, edited.empty() ? written : edited, changes, files, &*cache_);
    std::string source = name;
    for (const std::string& change : changes) source += " " + change;
    report_.runs.push_back(Played(scenario, std::move(source)));
  }
  return PageBytes(report_, known);
}

std::string LiveSession::Play(std::string_view request) {
  constexpr char kData = 0;
  constexpr char kMessage = 1;
  Json answer;
  try {
    return kData + PlayOrThrow(request);
  } catch (const Error& error) {
    answer = {{"message", error.what()}, {"is_fault", false}};
  } catch (const std::bad_alloc&) {
    answer = {{"message", "this needs more memory than a page has; `rehearse run` can play it"},
              {"is_fault", false}};
  } catch (const std::exception& error) {
    answer = {{"message", error.what()}, {"is_fault", true}};
  }
  return kMessage + answer.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace rehearse
