#include "workloads/networks/state_space.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "sim/schedule/state_space.h"

namespace rehearse {
namespace {

constexpr std::string_view kLetters = "M*-E";

void SetGroups(uint64_t groups, NetworkNode* node) {
  node->units = groups;
  node->unit_name = "groups of state-space heads";
}

}  // namespace

double StateSpaceModel::Weights(uint64_t hidden) const {
  return static_cast<double>(hidden) * static_cast<double>(InColumns(hidden) + Inner(hidden));
}

double StateSpaceModel::Vectors(uint64_t hidden) const {
  return static_cast<double>(Mixed(hidden) * (conv + 1) + 3 * Heads(hidden) + Inner(hidden));
}

uint32_t CountOf(const std::string& pattern, LayerLetter letter) {
  return static_cast<uint32_t>(
      std::count(pattern.begin(), pattern.end(), static_cast<char>(letter)));
}

std::optional<size_t> UnknownLetter(const std::string& pattern) {
  const size_t found = pattern.find_first_not_of(kLetters);
  return found == std::string::npos ? std::nullopt : std::optional(found);
}

uint32_t AddStateSpace(const StateSpaceModel& model, uint64_t sequence, uint32_t x,
                       Network* network, NetworkBuilder* builder) {
  const uint64_t hidden = builder->Node(x).columns;
  const uint64_t heads = model.Heads(hidden);
  const uint32_t mixed = builder->Product(x, "in projection", model.InColumns(hidden),
                                          "z, x, B, C, dt", MatrixRole::kQkv);
  SetGroups(model.groups, &network->nodes.back());
  const uint32_t y = builder->Map(NodeKind::kStateSpace, {mixed}, "state space");
  NetworkNode& node = network->nodes.back();
  node.columns = model.Inner(hidden);
  const auto number = [](uint64_t value) { return static_cast<double>(value); };
  node.attributes.resize(kStateAttributes);
  node.attributes[kStateSequence] = number(sequence);
  node.attributes[kStateGroups] = number(model.groups);
  node.attributes[kStateHeadsOfGroup] = number(heads / model.groups);
  node.attributes[kStateHeadSize] = number(model.head);
  node.attributes[kStateSize] = number(model.state);
  node.attributes[kStateTaps] = number(model.conv);
  node.attributes[kStateChunk] = number(std::min(model.chunk, sequence));
  node.whole_samples = true;
  SetGroups(model.groups, &node);
  node.vectors = {builder->AddVector("convolution", model.Mixed(hidden) * model.conv),
                  builder->AddVector("convolution bias", model.Mixed(hidden)),
                  builder->AddVector("dt bias", heads),
                  builder->AddVector("A logarithm", heads),
                  builder->AddVector("D", heads),
                  builder->AddVector("state norm gain", node.columns)};
  return builder->Product(y, "out projection", hidden, "out projection", MatrixRole::kSecond);
}

const Fields<StateSpaceModel>& StateSpaceFields() {
  using Model = StateSpaceModel;
  constexpr int64_t kMostColumns = 1 << 20;
  constexpr const char* kPresetOr = "the preset's, or ";
  static const Fields<Model> fields(
      "model: decoder: mamba", "State-space layers of Mamba-2, one for each M of the pattern.",
      {{"state", &Model::state, AWhole(1, kMostColumns), OrUsual(kPresetOr),
        "columns of a head's state (d_state): of B and of C", "256"},
       {"head", &Model::head, AWhole(1, kMostColumns), OrUsual(kPresetOr), "columns per head",
        "80"},
       {"groups", &Model::groups, AWhole(1, 1 << 16), OrUsual(kPresetOr),
        "groups of heads that share B and C; they divide the heads, and tensor ranks divide them",
        "1"},
       {"heads", &Model::heads, AWhole(0, 1 << 16), OrUsual(kPresetOr),
        "heads; 0: expand times hidden / head", "128"},
       {"expand", &Model::expand, AWhole(1, 1 << 10), OrUsual(kPresetOr),
        "columns of all heads, in hidden sizes, where \"heads\" are not given", "2"},
       {"conv", &Model::conv, AWhole(1, 1 << 10), OrUsual(kPresetOr),
        "tokens that the convolution before the state space sees, itself included", "4"},
       {"chunk", &Model::chunk, AWhole(1, 1 << 20), OrUsual(kPresetOr),
        "tokens that are computed at once, as products; it decides what that costs", "256"}});
  return fields;
}

StateSpaceModel ReadStateSpace(const JsonReader& object,
                               const std::optional<StateSpaceModel>& preset) {
  const JsonReader reader = object.As(StateSpaceFields().shape());
  StateSpaceModel model = preset.value_or(StateSpaceModel());
  StateSpaceFields().ReadInto(reader, &model);
  return model;
}

std::string WhyNot(const StateSpaceModel& model, uint64_t hidden) {
  if (model.heads == 0 && model.expand * hidden % model.head != 0)
    return fmt::format("state-space heads of {} columns do not divide {} times the hidden size {}",
                       model.head, model.expand, hidden);
  if (model.Heads(hidden) % model.groups != 0)
    return fmt::format("{} groups do not divide {} state-space heads", model.groups,
                       model.Heads(hidden));
  return "";
}

}  // namespace rehearse
