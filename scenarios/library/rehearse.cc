#include "scenarios/library/rehearse.h"

#include <limits>
#include <utility>

#include "scenarios/library/state.h"
#include "scenarios/playing/prepare.h"
#include "sim/base/json_reader.h"
#include "sim/base/version.h"
#include "sim/schedule/schedule_json.h"
#include "topology/files/cluster_file.h"

namespace rehearse::v1 {

std::string LibraryVersion() { return std::string(::rehearse::Version()); }
std::string LibraryCommit() { return std::string(::rehearse::BuildCommit()); }

Error::Error(const std::string& what, std::string file, int line, std::string pointer)
    : std::runtime_error(what), file_(std::move(file)), line_(line), pointer_(std::move(pointer)) {}
Error::Error(const Error&) noexcept = default;
Error::~Error() = default;

Stopped::Stopped(const std::string& what) : std::runtime_error(what) {}
Stopped::Stopped(const Stopped&) noexcept = default;
Stopped::~Stopped() = default;

// ---- Scenarios ---------------------------------------------------------------------------------

std::shared_ptr<const ::rehearse::Scenario> Scenario::State::Read() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (scenario_ == nullptr) {
    ::rehearse::Scenario scenario =
        cluster.empty() ? ReadScenario(document)
                        : ScenarioOf(document, ReadClusterArgument(cluster), std::nullopt);
    scenario_ = std::make_shared<const ::rehearse::Scenario>(std::move(scenario));
  }
  return scenario_;
}

namespace {

std::shared_ptr<const Scenario::State> StateOf(JsonDocument document, const std::string& cluster) {
  auto state = std::make_shared<Scenario::State>();
  state->document = std::move(document);
  state->cluster = cluster;
  return state;
}

}  // namespace

Scenario Scenario::FromFile(const std::string& path) {
  return Guarded([&] {
    return Scenario(StateOf(JsonDocument::FromFile(path, {.size = InputSize::kLarge}), ""));
  });
}

Scenario Scenario::FromText(std::string_view json, const std::string& name) {
  return Guarded([&] { return Scenario(StateOf(JsonDocument::FromText(json, name), "")); });
}

Scenario Scenario::FromSchedule(std::string_view json, const std::string& cluster,
                                const std::string& name) {
  return Guarded([&] {
    if (cluster.empty()) throw ::rehearse::Error("a schedule needs a cluster; found \"\"");
    const ReadOptions options = {.size = InputSize::kLarge};
    return Scenario(StateOf(JsonDocument::FromText(json, name, options), cluster));
  });
}

Scenario Scenario::With(const std::vector<std::string>& changes) const {
  return Guarded([&] {
    JsonDocument document = state_->document;
    for (const std::string& change : changes) document.Set(change, {"With()", 0, ""});
    return Scenario(StateOf(std::move(document), state_->cluster));
  });
}

std::string Scenario::source() const { return state_->document.name(); }
std::string Scenario::cluster() const { return state_->cluster; }

std::string Scenario::name() const {
  return Guarded([&] { return state_->Read()->name; });
}

uint32_t Scenario::ranks() const {
  return Guarded([&] {
    size_t ranks = 0;
    const auto scenario = state_->Read();
    for (const JobRequest& job : scenario->jobs) ranks += job.placement.size();
    return static_cast<uint32_t>(ranks);
  });
}

std::string Scenario::Json() const { return state_->document.Given().dump(2); }

std::string Plan(const Scenario& scenario) {
  return Guarded([&] {
    const auto read = scenario.state().Read();
    const Job job = PrepareOne(*read, "Plan()");
    return WriteSchedule(job.schedule, {job.name, read->description});
  });
}

// ---- Progress ----------------------------------------------------------------------------------

void CallerObserver::Begin(std::string_view what, std::string_view /*parts*/, uint64_t all) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    what_ = what;
    all_ = all;
  }
  Tell(0);
}

void CallerObserver::Done(double parts) { Tell(parts); }

bool CallerObserver::IsStopped() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return is_stopped_;
}

void CallerObserver::Tell(double parts) {
  if (!progress_) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const double fraction = all_ == 0 ? -1 : parts / static_cast<double>(all_);
  if (!is_stopped_) is_stopped_ = !progress_(what_, fraction);
  if (is_stopped_) throw ::rehearse::Stopped("stopped while " + what_);
}

// ---- Tables ------------------------------------------------------------------------------------

Table TableOf(const DataTable& data) {
  Table table;
  table.rows = data.rows().size();
  for (size_t i = 0; i < data.columns().size(); ++i) {
    const DataColumn& from = data.columns()[i];
    Column& column = table.columns.emplace_back();
    column.name = from.name;
    column.kind = from.kind == CellKind::kText    ? Column::Kind::kText
                  : from.kind == CellKind::kTruth ? Column::Kind::kTruth
                                                  : Column::Kind::kNumber;
    for (const std::vector<DataCell>& row : data.rows()) {
      const nlohmann::ordered_json cell = row[i].ToJson();
      if (column.kind == Column::Kind::kText)
        column.texts.push_back(cell.is_string() ? cell.get<std::string>() : "");
      else if (column.kind == Column::Kind::kTruth)
        column.truths.push_back(cell.is_boolean() && cell.get<bool>() ? 1 : 0);
      else
        column.numbers.push_back(cell.is_number() ? cell.get<double>()
                                                  : std::numeric_limits<double>::quiet_NaN());
    }
  }
  return table;
}

const std::string& Points::Json() const { return state_->json; }
std::string Points::Text() const { return state_->text; }
const Table& Points::table() const { return state_->table; }

}  // namespace rehearse::v1
