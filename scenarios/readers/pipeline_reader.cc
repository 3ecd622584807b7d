#include "scenarios/readers/pipeline_reader.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <sstream>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/json_fields.h"
#include "sim/base/json_parse.h"
#include "workloads/planner/stage_sizes.h"

namespace rehearse {
namespace {

constexpr int64_t kMostPipelineRanks = 4096;
constexpr int64_t kMostStagesOfRank = 1024;
constexpr int64_t kMostStages = 1 << 16;

std::vector<std::string> ScheduleNames() {
  std::vector<std::string> names;
  for (const PipelineScheduleFacts& facts : PipelineSchedules()) names.emplace_back(facts.name);
  return names;
}

constexpr ValueName<StageSplit> kSplitNames[] = {{"layers", StageSplit::kLayers},
                                                 {"layers-and-ends", StageSplit::kLayersAndEnds},
                                                 {"parameters", StageSplit::kParameters},
                                                 {"flops", StageSplit::kFlops}};
constexpr ValueName<AdamAgain> kValidationNames[] = {
    {"before-update", kAdamOnce}, {"after-update", kAdamIfClipped}, {"done-again", kAdamTwice}};

const Fields<StageTimes>& StageTimesFields() {
  static const Fields<StageTimes> fields(
      "pipeline times",
      "How long a stage takes for a micro-batch; orders by times put weight gradients where a rank "
      "would wait.",
      {{"forward", &StageTimes::forward, ADuration(), Required(), "forward pass", "\"18.5ms\""},
       {"input_gradient", &StageTimes::input_gradient, ADuration(), Required(),
        "gradients of inputs", "\"18.1ms\""},
       {"weight_gradient", &StageTimes::weight_gradient, ADuration(), Required(),
        "gradients of weights", "\"9.3ms\""},
       {"message", &StageTimes::message, ADuration(), Usual(),
        "a message from one rank to the next", "\"0.6ms\""},
       {"kept_for_weights", &StageTimes::kept_for_weights, ANumberAbove(0, 1),
        Optional("as the model's products say"),
        "what share of a micro-batch's memory is kept between its two gradients", "0.43"}});
  return fields;
}

std::vector<std::string> PairOrderNames() {
  std::vector<std::string> names;
  for (const PairOrderFacts& facts : PairOrders()) names.emplace_back(facts.name);
  return names;
}

PairOrder ReadPairOrder(const JsonReader& reader) {
  if (!reader.IsArray()) return PairOrders()[reader.Choice(PairOrderNames())].order;
  std::vector<std::string> names;
  for (size_t part = 0; part < kPassParts; ++part)
    names.emplace_back(Name(static_cast<PassPart>(part)));
  PairOrder order;
  for (const JsonReader& part : reader.Elements())
    order.push_back(static_cast<PassPart>(part.Choice(names)));
  CheckPairOrder(order, reader.place());
  return order;
}

// Whether a rank has forward passes with the backward passes of other micro-batches behind them.
// One alone, where all forward passes come first, would wait for a neighbour's that waits for it.
bool HasPairs(const PipelineOrder& order) {
  const auto is_pair = [](const Action& forward, const Action& backward) {
    return forward.kind == ActionKind::kForward && GoesBack(backward.kind) &&
           forward.micro_batch != backward.micro_batch;
  };
  const size_t needed = order.places.ranks > 1 ? 2 : 1;
  for (uint32_t rank = 0; rank < order.places.ranks; ++rank) {
    const std::vector<Action> own = OfRank(order.actions, order.places, rank);
    size_t pairs = 0;
    for (size_t i = 1; i < own.size(); ++i) pairs += is_pair(own[i - 1], own[i]) ? 1 : 0;
    if (pairs >= needed) return true;
  }
  return false;
}

void ReadPairs(const JsonReader& reader, const PipelineOrder& order, StagePipeline* pipeline) {
  if (reader.Has("pair_order")) {
    if (!pipeline->pairs_passes)
      reader.At("pair_order").Fail("is the order of pairs; expected \"pair_passes\": true");
    pipeline->pair_order = ReadPairOrder(reader.At("pair_order"));
  }
  if (pipeline->pairs_passes && !HasPairs(order)) {
    reader.At("pair_passes")
        .Fail(
            "no rank has forward passes with other micro-batches' backward passes behind them; "
            "expected an order that has (1f1b, interleaved, zb-v, dualpipe, dualpipev) and "
            "enough micro-batches");
  }
}

std::vector<std::vector<std::string>> RowsOf(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> cells;
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, ',');) cells.push_back(cell);
    if (!cells.empty()) rows.push_back(std::move(cells));
  }
  return rows;
}

PipelineOrder ReadOrder(const JsonReader& reader) {
  if (reader.IsArray()) {
    std::vector<std::vector<std::string>> rows;
    for (const JsonReader& row : reader.Elements()) {
      const auto cells = RowsOf(row.String());
      if (cells.size() != 1) row.Expected("the actions of one rank, \"0F0,0F1,0B0\"");
      rows.push_back(cells.front());
    }
    return ParsePipelineOrder(rows, reader.place());
  }
  const auto [name, text] = reader.OpenText("file");
  return ParsePipelineOrder(RowsOf(text), {name, 0, ""});
}

StageTimes ReadTimes(const JsonReader& object, double kept_for_weights) {
  StageTimes times;
  times.kept_for_weights = kept_for_weights;
  StageTimesFields().ReadInto(object.As(StageTimesFields().shape()), &times);
  if (!(times.forward > 0 && times.input_gradient > 0 && times.weight_gradient > 0)) {
    object.Expected("times above zero");
  }
  return times;
}

// The layers of every stage if only those of the ends are given.
std::vector<uint32_t> LayersWithEnds(const JsonReader& reader, const Network& network,
                                     uint32_t stages) {
  const auto all = static_cast<uint32_t>(network.layers);
  const bool has_first = reader.Has("first_layers");
  const bool has_last = reader.Has("last_layers");
  const uint32_t first = has_first ? reader.At("first_layers").Whole<uint32_t>() : 0;
  const uint32_t last = has_last ? reader.At("last_layers").Whole<uint32_t>() : 0;
  const uint32_t ends = (has_first ? 1 : 0) + (has_last ? 1 : 0);
  const uint32_t others = stages - std::min(stages, ends);
  const bool fits = first + last <= all && stages >= ends &&
                    (others == 0 ? first + last == all : (all - first - last) % others == 0);
  if (!fits) {
    reader.At(has_first ? "first_layers" : "last_layers")
        .Fail(fmt::format("{} layers: what {} at the ends leave does not split evenly into {} "
                          "other stages",
                          all, first + last, others));
  }
  std::vector<uint32_t> layers(stages, others > 0 ? (all - first - last) / others : 0);
  if (has_first) layers.front() = first;
  if (has_last) layers.back() = last;
  return layers;
}

std::vector<uint32_t> ReadStageSizes(const JsonReader& reader, const Network& network,
                                     uint32_t stages) {
  const std::vector<std::string> ways = {"layers", "layout", "first_layers", "last_layers",
                                         "split"};
  const auto given = [&](const char* key) { return reader.Has(key); };
  std::vector<std::string> found;
  for (const std::string& way : ways) {
    if (given(way.c_str())) found.push_back(way);
  }
  const bool is_ends = found == std::vector<std::string>{"first_layers", "last_layers"};
  if (found.size() > 1 && !is_ends) {
    reader.At(found[1]).Fail(fmt::format("\"{}\" already says what each stage has", found[0]));
  }
  if (given("layers")) {
    const JsonReader list = reader.At("layers");
    std::vector<uint32_t> layers;
    for (const JsonReader& entry : list.Elements()) layers.push_back(entry.Whole<uint32_t>());
    if (layers.size() != stages) {
      list.Fail(fmt::format("found the layers of {} stages, expected those of {}", layers.size(),
                            stages));
    }
    return StagesOfLayers(network, layers, list.place());
  }
  if (given("layout")) {
    const JsonReader layout = reader.At("layout");
    return StagesOfLayout(network, layout.String(), stages, layout.place());
  }
  if (given("first_layers") || given("last_layers")) {
    return StagesOfLayers(network, LayersWithEnds(reader, network, stages), reader.place());
  }
  const StageSplit split =
      given("split") ? kSplitNames[reader.At("split").Choice()].value : StageSplit::kLayers;
  return SplitIntoStages(network, split, stages, reader.place());
}

std::vector<uint32_t> ReadScatter(const JsonReader& list, const DeviceMesh& mesh) {
  std::vector<std::string> names;
  for (const MeshAxis& axis : mesh.axes()) names.push_back(axis.name);
  std::vector<uint32_t> axes;
  for (const JsonReader& entry : list.Elements()) {
    const auto axis = static_cast<uint32_t>(entry.Choice(names));
    if (std::find(axes.begin(), axes.end(), axis) != axes.end()) entry.Expected("each axis once");
    axes.push_back(axis);
  }
  return axes;
}

// Stages, order and sizes, which depend on each other, are read by hand.
const Fields<StagePipeline>& PipelineFields() {
  static const Fields<StagePipeline> fields(
      "pipeline", "The network in stages; each rank of the pipeline is a mesh of the strategy.",
      {{"stages", AWhole(1, kMostPipelineRanks), Required(), "how many ranks the pipeline has",
        "8"},
       {"schedule", OneOf(ScheduleNames()), Optional("an \"order\""),
        "the order of the work (rehearse list pipelines)", "\"1f1b\""},
       {"virtual", AWhole(1, kMostStagesOfRank), Optional("the fewest that the schedule allows"),
        "stages of each rank", "2"},
       {"split", OneOf(kSplitNames).shape, Optional("\"layers\""),
        "what is made equal between stages", "\"flops\""},
       {"layers", ListOf(AWhole(0, kMostStages)), Optional("\"split\""),
        "how many layers each stage has", "[3, 5, 5, 3]"},
       {"first_layers", AWhole(0, kMostStages), Optional("as the others"),
        "how many layers the first stage has", "3"},
       {"last_layers", AWhole(0, kMostStages), Optional("as the others"),
        "how many layers the last stage has", "3"},
       {"layout", AText("E, t, m, L, | between stages, (...)*N"), Optional("\"split\""),
        "the stages in Megatron-LM's notation", "\"Et*3|(tt|)*6L\""},
       {"order",
        Either({AText("path of a CSV file, from this one"), ListOf(AText("a rank's actions"))}),
        Optional("a \"schedule\""), "the actions of each rank: stage; F, B, I, W or R; micro-batch",
        R"(["0F0,0F1,0B0,0B1", "1F0,1B0,1F1,1B1"])"},
       {"overlap_messages", &StagePipeline::overlaps_messages, TrueFalse(), Usual(),
        "messages travel during the work on other micro-batches; otherwise kernels wait for them"},
       {"batch_messages", &StagePipeline::batches_messages, TrueFalse(), Usual(),
        "with overlap_messages, kernels wait for what has been sent before them, and receives are "
        "posted with it (Megatron-LM without --overlap-p2p-communication)",
        "true"},
       {"keep_messages", &StagePipeline::keeps_messages, TrueFalse(), Usual(),
        "what stages receive and pass on of every micro-batch stays in memory until the step ends "
        "(PyTorch's pipelining)",
        "true"},
       {"scatter", ListOf(AText("axis")), Default("[]"),
        "axes whose ranks hold the same message and each send a part of it", "[\"tensor\"]"},
       {"pair_passes", &StagePipeline::pairs_passes, TrueFalse(), Usual(),
        "a forward pass and the backward pass of another micro-batch after it take turns, so that "
        "tokens of one travel beside kernels of the other",
        "true"},
       {"pair_order", Either({OneOf(PairOrderNames()), ListOf(AText("a part"))}),
        Optional("turns, wherever one has sent tokens"),
        "with pair_passes, in which order the parts of a layer's two passes are issued: "
        "F.attention, F.dispatch, F.experts, F.combine; I.combine, I.experts, I.dispatch, "
        "I.attention; if weights come apart W.experts, W.attention (rehearse list pair-orders)",
        "\"dualpipe\""},
       {"validation", &StagePipeline::validation, OneOf(kValidationNames), Usual(),
        "ranks wait for the norm of all gradients; or each updates with that of the ranks before "
        "it, "
        "and puts its update right later, if it must (steps then follow each other rank by rank); "
        "or this happens to every rank",
        "\"after-update\""},
       {"times", ObjectOf(ShapeIn<StageTimesFields>), Optional("as its flops say"),
        "how long a stage takes, for \"zb-1p\" and \"zb-2p\"",
        R"({"forward": "18.5ms", "input_gradient": "18.1ms", "weight_gradient": "9.3ms"})"}});
  return fields;
}

}  // namespace

const ObjectShape& PipelineShape() { return PipelineFields().shape(); }

StagePipeline ReadPipeline(const JsonReader& object, const Network& network,
                           const Training& training, const Strategy& strategy) {
  const JsonReader reader = object.As(PipelineShape());
  const auto ranks = reader.At("stages").Whole<uint32_t>();
  if (reader.Has("schedule") == reader.Has("order"))
    reader.Fail("a pipeline has a \"schedule\" or an \"order\"; expected one of them");
  StagePipeline pipeline;
  PipelineFields().ReadInto(reader, &pipeline);
  PipelineOrder order;
  if (reader.Has("order")) {
    order = ReadOrder(reader.At("order"));
    if (order.places.ranks != ranks) {
      reader.At("order").Fail(fmt::format("found the actions of {} ranks, expected those of {}",
                                          order.places.ranks, ranks));
    }
    if (reader.Has("virtual")) reader.At("virtual").Fail("the \"order\" says which rank has what");
    CheckActions(order.actions, order.places, network.micro_batches, reader.At("order").place());
  } else {
    const PipelineScheduleFacts& facts = PipelineSchedules()[reader.At("schedule").Choice()];
    const uint32_t a_rank =
        reader.Has("virtual") ? reader.At("virtual").Whole<uint32_t>() : facts.fewest_stages_a_rank;
    const StageTimes times = reader.Has("times")
                                 ? ReadTimes(reader.At("times"), KeptForWeights(network, training))
                                 : TimesByFlops(network, training);
    order = OrderOf(facts.schedule, ranks, a_rank, network.micro_batches, times, reader.place(),
                    pipeline.pairs_passes);
  }
  ReadPairs(reader, order, &pipeline);
  pipeline.places = std::move(order.places);
  pipeline.actions = std::move(order.actions);
  pipeline.units_of_stage = ReadStageSizes(reader, network, pipeline.places.stages_of_copy());
  if (!pipeline.overlaps_messages && pipeline.places.HasSeveralOnARank()) {
    reader.At("overlap_messages")
        .Fail(
            "ranks with several stages that wait for their messages would wait for each other; "
            "expected true");
  }
  if (pipeline.pairs_passes && strategy.chunks > 1) {
    reader.At("pair_passes")
        .Fail("chunks take turns by themselves; expected false, or strategies without chunks");
  }
  pipeline.scattered_axes = ReadScatter(reader.At("scatter"), strategy.mesh);
  return pipeline;
}

namespace {

// "3" of "3F12", from a place on; nothing if there is no number.
std::optional<uint32_t> TakeNumber(const std::string& cell, size_t* at) {
  uint32_t number = 0;
  const char* const begin = cell.data() + *at;
  const auto [end, error] = std::from_chars(begin, cell.data() + cell.size(), number);
  if (error != std::errc() || number > static_cast<uint32_t>(kMostStages)) return std::nullopt;
  *at += static_cast<size_t>(end - begin);
  return number;
}

const std::map<std::string, ActionKind>& Letters() {
  static const std::map<std::string, ActionKind> letters = {{"F", ActionKind::kForward},
                                                            {"B", ActionKind::kBackward},
                                                            {"I", ActionKind::kInputGradient},
                                                            {"W", ActionKind::kWeightGradient},
                                                            {"R", ActionKind::kRecompute}};
  return letters;
}

// Nothing if the cell says nothing about the order.
std::optional<Action> ParseCell(std::string cell, const Place& place) {
  std::erase_if(cell, [](char c) { return c == ' ' || c == '\r' || c == '"'; });
  if (cell.empty()) return std::nullopt;
  size_t at = 0;
  const std::optional<uint32_t> stage = TakeNumber(cell, &at);
  size_t end = at;
  while (end < cell.size() && !(cell[end] >= '0' && cell[end] <= '9')) ++end;
  const std::string what = cell.substr(at, end - at);
  for (const char* skipped :
       {"SEND_F", "SEND_B", "RECV_F", "RECV_B", "UNSHARD", "RESHARD", "REDUCE_GRAD"}) {
    if (stage && what == skipped) return std::nullopt;
  }
  const std::optional<uint32_t> micro_batch = TakeNumber(cell, &end);
  const auto kind = Letters().find(what);
  if (!stage || !micro_batch || end != cell.size() || kind == Letters().end()) {
    throw Error(place, fmt::format("found {}, expected stage, F, B, I, W or R, and micro-batch, "
                                   "as in \"0F3\"",
                                   QuotedJson(cell)));
  }
  return Action{*stage, *micro_batch, kind->second};
}

}  // namespace

PipelineOrder ParsePipelineOrder(const std::vector<std::vector<std::string>>& rows,
                                 const Place& place) {
  PipelineOrder order;
  order.places.ranks = static_cast<uint32_t>(rows.size());
  std::map<uint32_t, uint32_t> rank_of;
  std::vector<uint32_t> lowest;
  for (uint32_t rank = 0; rank < rows.size(); ++rank) {
    uint32_t least = ~0u;
    for (const std::string& cell : rows[rank]) {
      const std::optional<Action> action = ParseCell(cell, place);
      if (!action) continue;
      const auto [it, is_new] = rank_of.emplace(action->stage, rank);
      if (it->second != rank) {
        throw Error(place, fmt::format("stage {} is on rank {} and on rank {} of the pipeline",
                                       action->stage, it->second, rank));
      }
      least = std::min(least, action->stage);
      order.actions.push_back(*action);
    }
    if (least == ~0u) throw Error(place, fmt::format("rank {} has nothing to do", rank));
    order.actions.push_back({least, 0, ActionKind::kSynchronize});
    order.actions.push_back({least, 0, ActionKind::kUpdate});
  }
  order.places.rank_of.clear();
  for (const auto& [stage, rank] : rank_of) {
    if (stage != order.places.rank_of.size()) {
      throw Error(place, fmt::format("stage {} is on no rank", order.places.rank_of.size()));
    }
    order.places.rank_of.push_back(rank);
  }
  if (rows.empty()) throw Error(place, "the order has no ranks");
  return order;
}

std::string ToPipelineCsv(const PipelineOrder& order) {
  std::string text;
  for (uint32_t rank = 0; rank < order.places.ranks; ++rank) {
    std::string line;
    for (const Action& action : OfRank(order.actions, order.places, rank)) {
      for (const auto& [letter, kind] : Letters()) {
        if (kind != action.kind) continue;
        line += fmt::format("{}{}{}{}", line.empty() ? "" : ",", action.stage, letter,
                            action.micro_batch);
      }
    }
    text += line + "\n";
  }
  return text;
}

}  // namespace rehearse
