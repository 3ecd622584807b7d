#include "scenarios/explaining/memory_picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/playing/rehearsal.h"
#include "sim/base/error.h"
#include "sim/base/interruption.h"
#include "sim/base/json_document.h"
#include "sim/base/units.h"
#include "sim/report/text_page.h"
#include "sim/schedule/memory.h"
#include "sim/schedule/memory_lives.h"
#include "sim/schedule/written_out.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLargest = 10;

// ---- over time ----------------------------------------------------------------------------------

std::vector<Seconds> BeginsOf(const Timeline& timeline, uint32_t rank, const Role& role) {
  const size_t ops = role.OpCount();
  std::vector<Seconds> begins(ops);
  const uint32_t own = timeline.RepresentativeOf(rank);
  for (const Span& span : timeline.spans)
    if (span.rank == own && span.op < ops) begins[span.op] = ToSeconds(span.begin);
  // Messages are posted ahead of the kernels before them, or begin after those behind them.
  Seconds kernel;
  for (uint32_t position = 0; position < ops; ++position) {
    if (std::holds_alternative<Compute>(role.At(position).work))
      kernel = std::max(kernel, begins[position]);
    begins[position] = kernel;
  }
  return begins;
}

void FindMoments(const Role& role, const std::vector<Seconds>& begins, MemoryPicture* picture) {
  const MemoryChanges changes = MemoryChangesOf(role);
  MemoryUse use = changes.kept;
  bool has_changed = true;
  for (uint32_t position = 0; position < changes.gained.size(); ++position) {
    const MemoryChange& gained = changes.gained[position];
    has_changed = has_changed || gained.OnDevice() > Bytes(0);
    use.optimizer += gained.optimizer;
    use.activations += gained.activations;
    use.buffers += gained.buffers;
    if (has_changed) {
      const Op& op = role.At(position);
      picture->moments.push_back({begins[position], op.name, role.TagAt(position), use});
      const MemoryUse& peak = picture->moments[picture->peak].use;
      if (use.Total() > peak.Total()) picture->peak = picture->moments.size() - 1;
    }
    const MemoryChange& lost = changes.lost[position];
    use.optimizer -= lost.optimizer;
    use.activations -= lost.activations;
    use.buffers -= lost.buffers;
    has_changed = lost.OnDevice() > Bytes(0);
  }
}

std::string NameOf(const Role& role, uint32_t position) {
  const Tag tag = role.TagAt(position);
  std::string name = fmt::format("{} ({}", role.At(position).name, Name(tag.phase));
  if (tag.layer >= 0) name += fmt::format(", layer {}", tag.layer);
  return name + fmt::format(", micro-batch {})", tag.micro_batch);
}

uint32_t PositionOfPeak(const Role& role) {
  const MemoryChanges changes = MemoryChangesOf(role);
  Bytes now;
  Bytes most;
  uint32_t at = 0;
  for (uint32_t position = 0; position < changes.gained.size(); ++position) {
    now += changes.gained[position].OnDevice();
    if (position == 0 || now > most) {
      most = now;
      at = position;
    }
    now -= changes.lost[position].OnDevice();
  }
  return at;
}

void FindLargest(const Role& role, MemoryPicture* picture) {
  const uint32_t ops = role.OpCount();
  if (ops == 0) return;
  const uint32_t peak = PositionOfPeak(role);
  for (uint32_t position = peak - std::min(peak, 2u); position <= std::min(peak + 2, ops - 1);
       ++position)
    picture->ops_at_peak.push_back((position == peak ? "* " : "  ") + NameOf(role, position));
  std::vector<LivingBuffer> living = LivingBuffers(role, WrittenOut(role));
  std::erase_if(living,
                [&](const LivingBuffer& one) { return one.begin > peak || one.end < peak; });
  std::stable_sort(living.begin(), living.end(),
                   [](const LivingBuffer& a, const LivingBuffer& b) { return a.bytes > b.bytes; });
  picture->living = living.size();
  living.resize(std::min(living.size(), kLargest));
  for (const LivingBuffer& one : living) {
    const Buffer& buffer = role.buffers[one.buffer.index()];
    BufferAtPeak row{buffer.name, buffer.kind, one.bytes, "", "", -1};
    if (buffer.kind == BufferKind::kActivation || buffer.kind == BufferKind::kBuffer) {
      row.made_by = NameOf(role, one.begin);
      row.last_use = NameOf(role, one.end);
      row.micro_batch = role.TagAt(one.begin).micro_batch;
    }
    picture->largest.push_back(std::move(row));
  }
}

// ---- what would lower it ------------------------------------------------------------------------

struct Candidate {
  std::string what;
  std::vector<std::string> changes;  // as --set takes them
  bool drops_ops = false;            // whatever "recomputed_ops" say
};

const nlohmann::json& At(const nlohmann::json& json, const char* key) {
  static const nlohmann::json nothing;
  if (!json.is_object()) return nothing;
  const auto found = json.find(key);
  return found == json.end() ? nothing : *found;
}

std::vector<Candidate> CandidatesFor(const nlohmann::json& given) {
  const nlohmann::json& training = At(given, "training");
  const nlohmann::json& strategy = At(given, "strategy");
  const bool is_decoder = !At(given, "model").contains("kind");
  std::vector<Candidate> candidates;
  if (At(training, "recomputation") != "full") {
    candidates.push_back({"recompute all layers", {R"(training.recomputation="full")"}});
    candidates.back().drops_ops = true;
  }
  if (At(training, "recomputation") == "none" && is_decoder) {
    candidates.push_back({"recompute norms and activations",
                          {R"(training.recomputation="selective")",
                           R"(training.recomputed_ops=["norms", "activations"])"}});
  }
  const nlohmann::json& parts = At(training, "micro_batches");
  const uint64_t now = parts.is_number_unsigned() ? parts.get<uint64_t>() : 1;
  candidates.push_back({fmt::format("{} micro-batches instead of {}", 2 * now, now),
                        {fmt::format("training.micro_batches={}", 2 * now)}});
  const bool is_on_host = At(training, "optimizer_on_host") == true;
  if (At(training, "offloaded_optimizer") != true && !is_on_host) {
    candidates.push_back(
        {"optimizer's state on the host between updates", {"training.offloaded_optimizer=true"}});
    candidates.push_back({"optimizer on the host", {"training.optimizer_on_host=true"}});
  }
  if (is_on_host && At(training, "parameters_on_host") != true)
    candidates.push_back({"parameters on the host", {"training.parameters_on_host=true"}});
  if (At(training, "cross_entropy") != "fused" && is_decoder)
    candidates.push_back(
        {"a loss without copies of logits", {R"(training.cross_entropy="fused")"}});
  const nlohmann::json& kind = At(strategy, "kind");
  if (kind == "megatron" && At(strategy, "distributed_optimizer") != true)
    candidates.push_back(
        {"optimizer's state shared over data ranks", {"strategy.distributed_optimizer=true"}});
  const nlohmann::json& tensor = At(strategy, "tensor");
  const bool has_tensor = tensor.is_number() && tensor.get<double>() > 1;
  if ((kind == "megatron" || kind == "combined") && has_tensor &&
      At(strategy, "sequence_parallel") != true)
    candidates.push_back(
        {"rows split over tensor ranks between products", {"strategy.sequence_parallel=true"}});
  const nlohmann::json& zero = At(strategy, "zero");
  if (kind == "combined" && zero.is_number_unsigned() && zero.get<uint64_t>() < 3) {
    const uint64_t stage = zero.get<uint64_t>() + 1;
    candidates.push_back({fmt::format("ZeRO-{}", stage), {fmt::format("strategy.zero={}", stage)}});
  }
  if (At(strategy, "reshard_after_forward") == false)
    candidates.push_back(
        {"weights gathered again for the way back", {"strategy.reshard_after_forward=true"}});
  return candidates;
}

MemoryChangeTried Try(const Scenario& scenario, const Candidate& candidate) {
  MemoryChangeTried tried;
  tried.what = candidate.what;
  try {
    nlohmann::json given = *scenario.given;
    if (candidate.drops_ops) given["training"].erase("recomputed_ops");
    JsonDocument document =
        JsonDocument::FromValue(std::move(given), {scenario.jobs.front().place.file, 0, ""});
    for (const std::string& change : candidate.changes) document.Set(change);
    Scenario other = ReadScenario(document);
    other.allow_out_of_memory = true;
    const Result result = Rehearse(other, {.hash = false, .spans = false}).result;
    tried.needed = result.MemoryNeeded();
    tried.step = result.step;
  } catch (const Stopped&) {
    throw;
  } catch (const Error& error) {
    tried.refused = error.what();
  }
  return tried;
}

void TryChanges(const Scenario& scenario, ProgressObserver& observer, MemoryPicture* picture) {
  if (scenario.given == nullptr || !scenario.given->contains("training")) return;
  const std::vector<Candidate> candidates = CandidatesFor(*scenario.given);
  std::vector<MemoryChangeTried>& rows = picture->changes;
  try {
    observer.Begin("what would lower the peak", "changes", candidates.size());
    for (const Candidate& candidate : candidates) {
      rows.push_back(Try(scenario, candidate));
      observer.Done(static_cast<double>(rows.size()));
    }
  } catch (const Stopped&) {
    for (size_t i = rows.size(); i < candidates.size(); ++i)
      picture->left_out.push_back(candidates[i].what);
  }
  const Bytes now = picture->fit.Needed();
  std::erase_if(rows, [&](const MemoryChangeTried& tried) {
    return tried.refused.empty() && !(tried.needed < now);
  });
  std::stable_sort(rows.begin(), rows.end(),
                   [](const MemoryChangeTried& a, const MemoryChangeTried& b) {
                     if (a.refused.empty() != b.refused.empty()) return a.refused.empty();
                     return a.needed < b.needed;
                   });
}

// ---- what is printed ----------------------------------------------------------------------------

constexpr std::array<std::pair<const char*, Bytes MemoryUse::*>, 5> kKinds = {
    {{"parameters", &MemoryUse::parameters},
     {"gradients", &MemoryUse::gradients},
     {"optimizer", &MemoryUse::optimizer},
     {"activations", &MemoryUse::activations},
     {"buffers", &MemoryUse::buffers}}};

const char* Name(BufferKind kind) {
  switch (kind) {
    case BufferKind::kParameter:
      return "parameters";
    case BufferKind::kGradient:
      return "gradients";
    case BufferKind::kOptimizer:
      return "optimizer";
    case BufferKind::kActivation:
      return "activations";
    case BufferKind::kBuffer:
      return "buffers";
  }
  CHECK(false);
}

constexpr size_t kBarWidth = 24;

// Padded, as it is painted.
std::string BarOf(double share) {
  const auto width = static_cast<size_t>(std::llround(share * kBarWidth));
  return std::string(width, '#') + std::string(kBarWidth + 2 - std::min(kBarWidth, width), ' ');
}

// The fullest moment of each of so many equal parts of the step.
std::vector<const MemoryMoment*> Sampled(const MemoryPicture& picture, size_t parts) {
  std::vector<const MemoryMoment*> sampled;
  size_t last = parts;
  for (const MemoryMoment& moment : picture.moments) {
    const double share = Share(moment.begin.value(), picture.step.value());
    const size_t part =
        std::min(parts - 1, static_cast<size_t>(share * static_cast<double>(parts)));
    if (part != last) {
      sampled.push_back(&moment);
      last = part;
    } else if (moment.use.Total() > sampled.back()->use.Total()) {
      sampled.back() = &moment;
    }
  }
  return sampled;
}

void WriteOverTime(Page& page, const MemoryPicture& picture) {
  constexpr size_t kParts = 24;
  page.Gap();
  page.Line(
      "{}   {}", page.pen(Ink::kBold, "Over time"),
      page.pen(Ink::kFaint, fmt::format("the fullest moment of each {}th of the step", kParts)));
  const double scale =
      std::max(picture.fit.capacity.value(), picture.moments[picture.peak].use.Total().value());
  for (const MemoryMoment* const moment : Sampled(picture, kParts)) {
    const Bytes total = moment->use.Total();
    const bool is_peak = moment == &picture.moments[picture.peak];
    page.Line("  {:>11}{:>12}  {}{}", Print(moment->begin), Print(total),
              page.pen(is_peak ? Ink::kRed : Ink::kBlue, BarOf(Share(total.value(), scale))),
              Shortened(moment->op, 40));
  }
}

void WritePeak(Page& page, const MemoryPicture& picture) {
  const MemoryMoment& peak = picture.moments[picture.peak];
  page.Gap();
  page.Line("{}   {} at {}, on {} ({})", page.pen(Ink::kBold, "Peak"), Print(peak.use.Total()),
            Print(peak.begin), picture.rank_name, picture.role);
  for (const auto& [name, member] : kKinds)
    page.Line("  {:<22}{:>11}", name, Print(peak.use.*member));
  page.Line("  {:<22}{:>11}  {}", "in addition, about", Print(picture.fit.reserve),
            page.pen(Ink::kFaint, "driver, NCCL and cuBLAS"));
  if (picture.idle > Bytes(0))
    page.Line("  {:<22}{:>11}  {}", "idle in the allocator", Print(picture.idle),
              page.pen(Ink::kFaint, "given back before anything fails"));
  page.Line("  {:<22}{:>11}", "the device has", Print(picture.fit.capacity));
  page.Gap();
  page.Line("{}", page.pen(Ink::kBold, "Ops at the peak"));
  for (const std::string& op : picture.ops_at_peak) page.Line("  {}", op);
  page.Gap();
  page.Line("{}   {}", page.pen(Ink::kBold, "Largest buffers there"),
            page.pen(Ink::kFaint, fmt::format("of {} that live", Grouped(picture.living))));
  for (const BufferAtPeak& buffer : picture.largest) {
    page.Line("  {:>11}  {:<12}{:<36}{}", Print(buffer.bytes), Name(buffer.kind),
              Shortened(buffer.name, 35),
              buffer.made_by.empty()
                  ? "the whole step"
                  : fmt::format("from {} to {}", buffer.made_by, buffer.last_use));
  }
}

void WriteChanges(Page& page, const MemoryPicture& picture) {
  if (picture.changes.empty()) return;
  page.Gap();
  page.Line("{}   {}", page.pen(Ink::kBold, "What would lower it"),
            page.pen(Ink::kFaint, "each simulated again; of memory, all that is needed"));
  const Bytes needed = picture.fit.Needed();
  for (const MemoryChangeTried& tried : picture.changes) {
    if (!tried.refused.empty()) {
      page.Line("  {:<48}{}", Shortened(tried.what, 47), page.pen(Ink::kFaint, tried.refused));
      continue;
    }
    page.Line("  {:<48}{:>11}{:>9}{:>12}{:>9}", Shortened(tried.what, 47), Print(tried.needed),
              fmt::format("{:+.1f} %", 100 * (tried.needed / needed - 1)), Print(tried.step),
              fmt::format("{:+.1f} %", 100 * (tried.step / picture.step - 1)));
  }
}

}  // namespace

MemoryPicture PictureMemory(const Scenario& asked, ProgressObserver& observer) {
  if (asked.lists_jobs)
    throw Error("--memory is for one step; expected a scenario that lists no jobs");
  Scenario scenario = asked;
  scenario.allow_out_of_memory = true;
  const Rehearsal played =
      Rehearse(scenario, {.observer = &observer, .hash = false, .allocations = true});
  MemoryPicture picture;
  picture.scenario = scenario.name;
  picture.step = played.result.step;
  picture.idle = played.result.memory_idle;
  picture.fit = TightestFit(played.schedule, scenario.jobs.front().placement, *scenario.cluster,
                            scenario.memory.headroom_share);
  const Role& role = played.schedule.roles[played.schedule.role_of_rank[picture.fit.rank]];
  picture.role = role.name;
  picture.rank_name = NameOf(picture.fit, *scenario.cluster);
  FindMoments(role, BeginsOf(played.timeline, picture.fit.rank, role), &picture);
  FindLargest(role, &picture);
  TryChanges(scenario, observer, &picture);
  return picture;
}

std::string ToText(const MemoryPicture& picture, bool color) {
  Page page(color);
  page.Line("{}   {}", page.pen(Ink::kBold, picture.scenario), Print(picture.step));
  if (picture.moments.empty()) return page.text;
  WriteOverTime(page, picture);
  WritePeak(page, picture);
  WriteChanges(page, picture);
  return page.text;
}

Json ToJson(const MemoryPicture& picture) {
  Json json = {{"schema", "rehearse.memory.v1"},
               {"scenario", picture.scenario},
               {"step_seconds", picture.step.value()},
               {"rank", picture.fit.rank},
               {"role", picture.role},
               {"capacity_bytes", picture.fit.capacity.value()},
               {"reserve_bytes", picture.fit.reserve.value()},
               {"idle_bytes", picture.idle.value()},
               {"needed_bytes", picture.fit.Needed().value()},
               {"fits", picture.fit.Room() >= Bytes(0)},
               {"peak", picture.peak},
               {"ops_at_peak", picture.ops_at_peak}};
  json["moments"] = Json::array();
  for (const MemoryMoment& moment : picture.moments) {
    Json row = {{"seconds", moment.begin.value()},
                {"op", moment.op},
                {"phase", Name(moment.tag.phase)},
                {"layer", moment.tag.layer},
                {"micro_batch", moment.tag.micro_batch}};
    for (const auto& [name, member] : kKinds)
      row[fmt::format("{}_bytes", name)] = (moment.use.*member).value();
    json["moments"].push_back(std::move(row));
  }
  json["largest"] = Json::array();
  for (const BufferAtPeak& buffer : picture.largest)
    json["largest"].push_back({{"name", buffer.name},
                               {"kind", Name(buffer.kind)},
                               {"bytes", buffer.bytes.value()},
                               {"made_by", buffer.made_by},
                               {"last_use", buffer.last_use},
                               {"micro_batch", buffer.micro_batch}});
  json["changes"] = Json::array();
  for (const MemoryChangeTried& tried : picture.changes) {
    if (tried.refused.empty()) {
      json["changes"].push_back({{"what", tried.what},
                                 {"needed_bytes", tried.needed.value()},
                                 {"step_seconds", tried.step.value()}});
    } else {
      json["changes"].push_back({{"what", tried.what}, {"refused", tried.refused}});
    }
  }
  if (!picture.left_out.empty()) json["left_out"] = picture.left_out;
  return json;
}

}  // namespace rehearse
