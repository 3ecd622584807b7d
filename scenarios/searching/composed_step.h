// What a step takes, put together from pieces that are played once: microseconds a configuration,
// where planning one takes milliseconds.
//
// A piece is a step of a few layers under the simulator's closed forms, of two depths a < b and of
// one and two micro-batches. From its four times t(layers, micro-batches) follow what a layer and
// what the ends (embedding, loss) add for every micro-batch, and what both add once (gradients,
// Adam, weights gathered again):
//
//   layer  = (t(b, 2) - t(a, 2) - t(b, 1) + t(a, 1)) / (b - a)
//   ends   = t(a, 2) - t(a, 1) - a layer
//   update = (t(b, 1) - t(a, 1)) / (b - a) - layer
//   rest   = t(a, 1) - a (update + layer) - ends
//
// Where a forward and a backward pass go in pairs (workloads/planner/pair_order.h), another piece
// has one stage that pairs them, and two and three micro-batches, of which one and two are in
// pairs: what they add is a paired cycle. Of a pipeline's m micro-batches, p are taken to be alone
// while it fills and drains, and m - p in pairs.
//
// One piece has the ranks that share products (tensor, context, experts; with ZeRO-2 and -3 those
// that share gradients, too), and gives `layer` and `ends`. Another has all ranks that hold the
// same layers, and one micro-batch, and gives `update` and `rest`. Then, for p stages of v parts
// each, m micro-batches and L layers (Narayanan et al. 2021, arXiv 2104.04473, section 2.2):
//
//   step = m cycle + (p - 1) (L layer + ends) / (p v) + update L / p + rest
//
// where `cycle` is the fullest stage's time, with messages that kernels wait for. Where weights
// that were updated in shares are gathered beside the first forward pass (ZeRO-1), a stage begins
// with its gathers when its first micro-batch comes: what a layer waits for them lengthens the way
// of that micro-batch through each stage, so that the update's part of it is met p times. It is how
// much later the forward pass ends in the second piece than in the first. Where kernels wait for
// the host, they do not on the way of the first and last micro-batches, as the host gets ahead
// while a stage waits: there a layer takes less by what it idles in the piece. Memory is that of
// the first or the last stage, by the micro-batches under way there. Contention, what the ends of
// stages hide, and rounding of layers within chunks are left out: it puts configurations in order,
// and simulations decide.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "scenarios/evaluating/engine.h"
#include "scenarios/searching/search_space.h"
#include "sim/base/json_document.h"
#include "sim/base/quantity.h"

namespace rehearse {

class ComposedSteps {
 public:
  // The scenario is the one that the space changes; `is_wide` if the space is all that a search
  // knows by itself (scenarios/searching/wide_space.h), in which equal configurations are looked at
  // once. `engine` must outlive it.
  ComposedSteps(const SearchSpace& space, const JsonDocument& scenario, bool is_wide,
                uint32_t most_ranks, Engine* engine);
  ~ComposedSteps();

  // Whether it can be put to this space: decoders under "combined", where at most one axis changes
  // the cluster.
  bool is_known() const { return is_known_; }

  struct Found {
    const std::string* excluded = nullptr;  // why it is impossible; lives as long as this object
    double step = 0;                        // seconds
    double idle = 0;                        // share of the step
    double tokens = 0;                      // of a step, or what the model counts
    double memory = 0;                      // bytes of the fullest rank, driver and libraries too
    double room = 0;                        // bytes that it may have; 0: unknown
    uint32_t ranks = 0;
    const std::string* device = nullptr;
    // Configurations of one family err alike: those with the same of stages, gathered weights,
    // shared sequences, spread experts, kernels that wait for the host and passes in pairs.
    uint32_t family = 0;

    // Memory is estimated, too: within 4 % it may fit.
    bool MayFit() const { return room <= 0 || memory <= 1.04 * room; }
  };
  // May be called from several threads. Throws Stopped when the engine is stopped. Of what needs
  // more than `most_memory` times the room, it may only be found that it does.
  Found At(const SpacePoint& point, double most_memory = std::numeric_limits<double>::infinity());
  // Why sizes alone make the point impossible, or no configuration that a framework would run; null
  // if they do not. Takes less than a microsecond.
  const std::string* Excluded(const SpacePoint& point) const {
    return is_known_ ? Broken(ValuesAt(point), point) : nullptr;
  }

 private:
  enum Field : uint8_t {
    kTensor,
    kContext,
    kShard,
    kReplicas,
    kData,
    kExpert,
    kExpertTensor,
    kZero,
    kSequenceParallel,
    kStages,
    kSchedule,
    kVirtual,
    kSplit,
    kMicroBatches,
    kMicroBatchSize,
    kBatch,
    kPairs,
    kPairOrder,  // in `pair_orders_`
    kPinned,     // whether collectives have algorithms of their own
    kKept,       // multiprocessors of communication
    kFieldCount
  };
  enum PieceKind : uint32_t { kPass, kUpdate, kPairedPass };
  using Values = std::array<uint32_t, kFieldCount>;
  struct Axis;
  struct Piece;
  // Values, and which choices of axes with other changes.
  using Key = std::array<uint32_t, 13>;
  struct HashOfKey {
    size_t operator()(const Key& key) const;
  };

  void Compile(const JsonDocument& scenario, uint32_t most_ranks);
  bool CompileAxis(const SpaceAxis& axis);
  void SetField(const std::string& path, const nlohmann::json& value, Values* values);
  uint32_t FamilyOf(const SpacePoint& point, const Values& values, const Piece& pass) const;
  uint64_t MachineShare(uint64_t ranks, const SpacePoint& point) const;
  const std::string* BrokenBy(uint32_t layers, const Values& values) const;
  const std::string* BrokenOrder(const Values& values, uint64_t micro_batches) const;
  const std::string* Broken(const Values& values, const SpacePoint& point) const;
  Values ValuesAt(const SpacePoint& point) const;
  // An update's is of one sample and of the first of the choices of what only passes know, such as
  // recomputation, which do not matter.
  Key KeyOf(const SpacePoint& point, const Values& values, PieceKind kind) const;
  const Piece& PieceOf(const SpacePoint& point, const Values& values, PieceKind kind);
  void Play(const SpacePoint& point, const Values& values, PieceKind kind, Piece* piece);
  JsonDocument DocumentOf(const SpacePoint& point, const Values& values, PieceKind kind,
                          uint32_t layers, uint32_t micro_batches, bool without_dense) const;

  const SearchSpace& space_;
  const JsonDocument& scenario_;
  const bool is_wide_;
  Engine& engine_;
  bool is_known_ = false;
  bool has_experts_ = false;  // at each of its points
  uint32_t layers_ = 0;       // likewise; 0 if points differ
  Values base_ = {};
  std::vector<nlohmann::json> pair_orders_;
  std::vector<Axis> axes_;
  size_t cluster_axis_ = SIZE_MAX;                  // if one changes it
  std::vector<std::vector<uint32_t>> rank_counts_;  // by choice of the axis, or one
  std::vector<uint32_t> machines_;                  // likewise: devices of a machine
  std::shared_mutex mutex_;
  std::unordered_map<Key, std::unique_ptr<Piece>, HashOfKey> pieces_;
};

}  // namespace rehearse
