// Where the parameters of a rank's stages lie, and with which others each travels. All of this
// follows from network, strategy and stages, and nothing of it changes during a step.
//
// A matrix is stored n×k (a table V×h), cut as the product's layouts say, in equal shares along one
// axis if the strategy shards it.
//
// Buckets are those of Megatron-Core's DistributedDataParallel and distributed optimizer
// (docs.nvidia.com/megatron-core, DistributedDataParallelConfig): a bucket is full when it has
// `bucket_elements` or more, and matrices fill it in the order in which their gradients come. Each
// stage of a rank has its own, whose gradients and first uses come together. Without overlap there
// is one bucket for all.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/networks/network.h"
#include "workloads/networks/training.h"
#include "workloads/planner/plan_builder.h"
#include "workloads/planner/stages.h"
#include "workloads/strategies/strategy.h"

namespace rehearse {

struct MatrixPlace {
  MatmulResult products;     // layouts of its product before anything is redistributed
  uint32_t owner = 0;        // itself, or the matrix it is tied to
  uint32_t group_begin = 0;  // matrices that are gathered together with this one
  uint32_t group_end = 0;
  std::vector<uint32_t> share_axes;  // empty if it is not sharded
  std::vector<uint32_t> sum_axes;    // along which gradients are all-reduced
  uint32_t zero_stage = 0;           // 0 if it is not sharded
  uint64_t rows = 0;                 // of the block as stored
  uint64_t columns = 0;
  double elements = 0;                   // of the block, padded to equal shares
  double share_elements = 0;             // of a share
  uint32_t uses = 0;                     // by products and lookups of a micro-batch; the owner's
  bool is_read_backward = false;         // for the gradient of its product's input
  bool is_looked_up = false;             // by an embedding, which cannot add to sums of gradients
  std::optional<uint32_t> bucket;        // in which its sums and updated shares travel
  const SharedMatrix* shared = nullptr;  // with a stage of another rank

  // Whether ZeRO shards its optimizer state (1), its gradient (2), itself (3).
  bool Shares(uint32_t stage) const { return zero_stage >= stage; }
  // Whether a rank updates a share of a matrix that it holds whole.
  bool UpdatesShare() const { return Shares(1) && !Shares(3); }
  // Whether gradients are whole until they are summed, and then shares of the sums.
  bool SumsShare() const { return Shares(1) && !Shares(2); }
  double GradientElements() const { return Shares(2) ? share_elements : elements; }
  double UpdatedElements() const { return Shares(1) ? share_elements : elements; }
};

// Matrices whose gradients are summed as one, and so gathered when they are updated in shares: the
// last ones of a stage in its first bucket.
struct ParameterBucket {
  std::vector<uint32_t> matrices;
  uint32_t stage = 0;            // of the rank's
  std::optional<uint32_t> next;  // on the way forward, in the same stage
};

class ParameterPlaces {
 public:
  // All arguments must outlive this. Throws Error, with the plan's place, for layouts that do not
  // multiply, and for tied matrices that do not lie alike.
  ParameterPlaces(const Network& network, const Strategy& strategy, const Training& training,
                  std::vector<const Stage*> stages, const PlanBuilder& plan);

  const Network& network() const { return network_; }
  const Strategy& strategy() const { return strategy_; }
  const Training& training() const { return training_; }
  const std::vector<const Stage*>& stages() const { return stages_; }
  const std::vector<ParameterBucket>& buckets() const { return buckets_; }
  uint32_t count() const { return static_cast<uint32_t>(matrices_.size()); }
  const MatrixPlace& operator[](uint32_t matrix) const { return matrices_[matrix]; }

  // The matrices of the stages with parameters of their own.
  bool IsOwner(uint32_t matrix) const {
    return HasMatrix(matrix) && matrices_[matrix].owner == matrix;
  }
  bool HasMatrix(uint32_t matrix) const;
  std::vector<uint32_t> Owners() const;
  // Those of them that the step changes.
  bool IsTrained(uint32_t matrix) const { return IsOwner(matrix) && !ShapeOf(matrix).is_frozen; }
  std::vector<uint32_t> TrainedOwners() const;
  // The matrix that gives this one's buffers their name: the one that it is tied to, on whatever
  // stage.
  const NetworkMatrix& ArrayOf(uint32_t matrix) const;
  const NetworkMatrix& ShapeOf(uint32_t matrix) const { return network_.matrices[matrix]; }
  // How many layers this one stands for.
  uint32_t LayersLike(int32_t layer) const;

  // Whether its products take operands in 8 or 4 bits (workloads/planner/casts.h).
  bool IsNarrow(uint32_t matrix) const;
  // Whether parameters are themselves what Adam updates, in fp32, and are cast when they are
  // gathered (PyTorch's FSDP): there are no master weights beside them.
  bool KeepsMasters() const;
  // Whether its share waits on the host to be gathered.
  bool IsOnHost(uint32_t matrix) const {
    return training_.parameters_on_host && matrices_[matrix].Shares(3);
  }
  // Whether its gradients are summed there: shares that no other ranks have to add to.
  bool SumsOnHost(uint32_t matrix) const;
  // The type of its block, as it is kept and as it is gathered.
  DType KeptType(uint32_t matrix) const;
  DType GatheredType(uint32_t matrix) const;
  double gradient_element() const { return SizeOf(training_.gradients).value(); }

 private:
  void PlaceMatrix(uint32_t index, const PlanBuilder& plan);
  void CheckTie(uint32_t index, const Place& place) const;
  void GroupByLayer();
  void CountUses(const Stage& stage);
  void MakeBuckets(uint32_t stage);

  const Network& network_;
  const Strategy& strategy_;
  const Training& training_;
  const std::vector<const Stage*> stages_;
  std::vector<MatrixPlace> matrices_;
  std::vector<ParameterBucket> buckets_;
};

// The axes along which nothing of the model is split or shared: those that only split the batch.
// With `dense_of`, matrices of experts do not count.
std::vector<uint32_t> PureDataAxes(const Strategy& strategy, const Network* dense_of = nullptr);

}  // namespace rehearse
