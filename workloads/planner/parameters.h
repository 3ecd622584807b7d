// The parameters of a planned step: where each lies, when it is gathered, and which way its
// gradient goes.
//
// A matrix is stored n×k (a table V×h), cut as the product's layouts say, in equal shares along one
// axis if the strategy shards it. Its gradient goes: product -> block in the plan's precision ->
// reduce-scatter to the share (stages 2, 3) -> accumulated over micro-batches (in fp32 unless said
// otherwise) -> all-reduced over the axes that split the batch -> summed with that of the other
// pipeline stage that has the matrix -> Adam. Vectors (biases, norms) lie one after the other in
// one buffer for each set of axes over which their gradients are summed, so that one collective
// serves them all.
//
// A gathered matrix belongs to the micro-batches that hold it, from their first product with it
// until they give it back; the last one to do so frees it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "workloads/networks/network.h"
#include "workloads/networks/training.h"
#include "workloads/planner/kernel_costs.h"
#include "workloads/planner/plan_builder.h"
#include "workloads/planner/stages.h"
#include "workloads/strategies/strategy.h"

namespace rehearse {

class Parameters {
 public:
  // The parameters of the nodes in a rank's stages. `rests` are the layouts in which the values of
  // the network's nodes rest.
  Parameters(const Network& network, const Strategy& strategy, const Training& training,
             const std::vector<Layout>& rests, std::vector<const Stage*> stages, PlanBuilder* plan);

  // The layouts of a matrix's product, forward and backward, before anything is redistributed.
  const MatmulResult& PlacesOf(uint32_t matrix) const { return matrices_[matrix].places; }
  const ProductLayouts& LayoutsOf(uint32_t matrix) const { return strategy_.products[matrix]; }

  // The whole block of the index-th matrix, gathered if it is not at hand. With prefetching the
  // gathers of the next ones (up to `end`, exclusive) are issued now, before this one's product;
  // FetchBackward prefetches the other way, and so does Fetch when layers are recomputed one by one
  // on the way back, if layers are gathered.
  BufferId Fetch(uint32_t index, uint32_t end);
  BufferId FetchBackward(uint32_t index);
  // The same, as the products Y = X·W^T and dX = dY·W take it: if they are narrow
  // (workloads/planner/casts.h), the copy, cast if it is not yet.
  BufferId Operand(uint32_t index, uint32_t end);
  BufferId OperandBackward(uint32_t index);
  // The micro-batch has no more use for it.
  void Release(uint32_t matrix);
  // What the forward pass need not keep of a layer's matrices [begin, end).
  void ReleaseAfterForward(uint32_t begin, uint32_t end);

  // A vector and its gradient, cut to fit columns that lie like the tensor's.
  BufferId Vector(uint32_t vector) const { return vectors_[vector].value; }
  BufferId VectorGradient(uint32_t vector) const { return vectors_[vector].gradient; }

  double BlockElements(uint32_t index) const { return matrices_[index].elements; }
  // The gradient of a block, to be written, or added to if `*adds` comes back true; then
  // EndGradient.
  BufferId BeginGradient(uint32_t index, bool* adds);
  void EndGradient(uint32_t index);
  // What follows is for this micro-batch on this stage. Gradients may be all-reduced beside the
  // action that makes the stage's last ones.
  void BeginAction(const Stage& stage, uint32_t micro_batch, bool makes_last_gradients) {
    stage_ = &stage;
    micro_batch_ = micro_batch;
    is_last_ = makes_last_gradients;
  }
  // From now on, the numbers of the micro-batches under way are higher by `count`.
  void SkipMicroBatches(uint32_t count);
  // Whether everything gathered lies outside the buffers [begin, end).
  bool HoldsNothingOf(uint32_t begin, uint32_t end) const;
  void set_goes_backward(bool goes_backward) { goes_backward_ = goes_backward; }
  // Whether the chunk of the micro-batch that comes next is the last one to use a gathered matrix.
  void set_is_last_chunk(bool is_last_chunk) { is_last_chunk_ = is_last_chunk; }
  // The state that the optimizer left on the device goes to the host, if that is where it waits.
  void BeginStep();
  // Does what the action has put off: sums that are awaited only at its end.
  void FinishGradients();

  // Whether Update() does without the norm of the ranks behind (workloads/planner/pipeline.h).
  // Throws Error if shares are gathered after the update: they would have to be gathered again.
  void set_validation(AdamAgain validation);

  // Sums of gradients wait for SumStage.
  void set_sums_by_stage(bool sums_by_stage) { sums_by_stage_ = sums_by_stage; }
  // Begins to sum the gradients in buckets that are complete, of the rank's `stage`-th stage.
  void SumStage(uint32_t stage);
  // Begins to gather what an earlier step has updated in shares of the rank's `stage`-th stage, if
  // that is done beside the forward pass, in the order in which that uses it.
  void GatherStage(uint32_t stage);
  void Synchronize();
  // Does the norm of all gradients, Adam, and the all-gathers of what stages 1 and 2 have updated
  // in shares.
  void Update();

 private:
  static constexpr uint32_t kNone = static_cast<uint32_t>(-1);
  // Matrices whose gradients are summed as one, and so gathered when they are updated in shares:
  // the last ones of a stage in its first bucket.
  struct Bucket {
    std::vector<uint32_t> matrices;
    uint32_t stage = 0;     // of the rank's
    uint32_t next = kNone;  // on the way forward, in the same stage
    uint32_t ended = 0;
    bool is_gathered = false;
    bool is_summed = false;
  };
  struct Matrix {
    MatmulResult places;
    uint32_t owner = 0;        // itself, or the matrix it is tied to
    uint32_t group_begin = 0;  // matrices that are gathered together with this one
    uint32_t group_end = 0;
    bool is_read_backward = false;  // for the gradient of its product's input
    bool is_looked_up = false;      // by an embedding, which cannot add to the sum of gradients
    uint32_t uses = 0;              // by products and lookups of a micro-batch; the owner's
    uint32_t uses_left = 0;
    std::vector<uint32_t> share_axes;  // empty if it is not sharded
    std::vector<uint32_t> sum_axes;    // along which gradients are all-reduced
    uint64_t rows = 0;                 // of the block as stored
    uint64_t columns = 0;
    double elements = 0;        // of the block, padded to equal shares
    double share_elements = 0;  // of a share
    BufferId parameter;         // the share of stage 3, else the block
    BufferId whole;             // as ops that read it see it: the same, or a view
    BufferId main_gradient;     // the share of stages 2 and 3, else the block
    BufferId update_gradient;   // what Adam reads: that, or the summed share of stage 1
    BufferId update_share;  // what Adam writes: the parameter, or the share of it of stages 1 and 2
    BufferId block;         // where its gradients are made, if that block is shared
    BufferId gradient;      // of the block, while it is made
    BufferId share_gradient;  // until it is accumulated
    BufferId gathered;        // set while a gathered copy is at hand
    BufferId narrow;     // copies for narrow products: transposed, and as it is stored unless it
    BufferId narrow_of;  // is kept so; and of which whole block they are at hand
    uint32_t bucket = kNone;               // the one in which its sums and updated shares travel
    BufferId landed;                       // what a gather leaves, until it is copied there
    std::vector<uint32_t> holders;         // micro-batches, of the gathered copy
    const SharedMatrix* shared = nullptr;  // with a stage of another rank
  };
  // Vectors whose gradients are summed over the same axes.
  struct VectorGroup {
    std::vector<uint32_t> sum_axes;
    std::vector<uint32_t> vectors;
    uint64_t elements = 0;
    BufferId value;
    BufferId gradient;
  };
  struct PlacedVector {
    Layout layout;  // of a matrix of one row
    BufferId value;
    BufferId gradient;
  };

  bool HasMatrix(uint32_t matrix) const;
  // The matrices of the stages with parameters of their own.
  bool IsOwner(uint32_t matrix) const {
    return HasMatrix(matrix) && matrices_[matrix].owner == matrix;
  }
  // The matrix that gives this one's buffers their name: the one that it is tied to, on whatever
  // stage.
  const NetworkMatrix& ArrayOf(uint32_t matrix) const {
    const NetworkMatrix& shape = network_.matrices[matrix];
    return shape.tied ? network_.matrices[*shape.tied] : shape;
  }
  uint32_t ZeroStage() const { return strategy_.shard ? strategy_.shard->stage : 0; }
  bool Shares(const Matrix& matrix, uint32_t stage) const {
    return !matrix.share_axes.empty() && ZeroStage() >= stage;
  }
  bool IsNarrowMatrix(uint32_t index) const;
  // The type of its block, as it is kept and as it is gathered.
  DType ParameterType(uint32_t index) const;
  DType GatherType(uint32_t index) const;
  BufferId AddNarrowCopies(uint32_t index);
  BufferId NarrowOf(uint32_t index, BufferId whole, bool turned);
  void MakeBuckets();
  void MakeBucketsOf(const Stage& stage);
  void EndInBucket(uint32_t index);
  void SumBucket(const Bucket& bucket, PlanBuilder::Issue issue);
  void GatherBucket(Bucket* bucket, PlanBuilder::Issue issue);
  void Freshen(uint32_t index);
  void GatherUpdated();
  void PlaceMatrix(uint32_t index);
  void AddMatrixBuffers(uint32_t index);
  // How many layers this one stands for.
  uint32_t LayersLike(int32_t layer) const {
    const LeftOutLayers& left_out = network_.left_out;
    return left_out.count > 0 && layer == left_out.like ? 1 + left_out.count : 1;
  }
  void AddLeftOut(size_t first, double elements);
  BufferId AddShareView(uint32_t index, BufferId of, std::string name, BufferKind kind,
                        DType dtype);
  BufferId AddBlock(uint32_t index);
  Buffer MatrixBuffer(uint32_t index, std::string name, BufferKind kind, DType dtype,
                      bool share) const;
  BufferId AddMatrixBuffer(uint32_t index, std::string name, BufferKind kind, DType dtype,
                           bool share);
  void AddState(const char* name, uint64_t rows, DType dtype);
  void AddVectors(const std::vector<Layout>& rests);
  void AddVectorsOf(const Stage& stage, const std::vector<Layout>& rests);
  void AddVectorViews(VectorGroup* group);
  void GroupByLayer();
  ShardCopies Copies() const { return strategy_.shard->copies; }
  DType ReduceType() const {
    return strategy_.shard->reduces_in_fp32 ? DType::kFp32 : training_.precision;
  }
  void Gather(uint32_t index);
  BufferId Pack(const Matrix& matrix, uint32_t index);
  void Unpack(uint32_t index);
  bool MayGatherMore(double ahead) const;
  BufferId PackGradient(const Matrix& matrix, uint32_t index);
  void Hold(Matrix* matrix) const;
  void GatherBefore(uint32_t index, uint32_t groups);
  void ReduceScatterWhenComplete(uint32_t index);
  void ReduceEnded();
  void ReduceScatter(const std::vector<uint32_t>& matrices);
  bool IsSummedBeside(const Matrix& matrix) const;
  void Accumulate(uint32_t index);
  void SumGradient(uint32_t index, PlanBuilder::Issue issue);
  void SumOverStages();
  void SynchronizeVectors();
  BufferId GradientNorm(const std::vector<BufferId>& gradients, std::vector<double> shares);
  BufferId AddNumber(const std::string& name);
  void SumOverModel(BufferId norm);
  void SumWithRanksBefore(BufferId norm);
  void Validate(std::vector<BufferId> reads, const std::vector<BufferId>& writes);
  double ShareOfRanks(const Layout& layout, const std::vector<uint32_t>& share_axes) const;
  void SetLayer(int32_t layer);
  double GradientBytes() const;
  OptimizerCosts AdamCosts() const;
  uint32_t UpdatedArrays() const;
  double gradient_element() const { return SizeOf(training_.gradients).value(); }

  const Network& network_;
  const Strategy& strategy_;
  const Training& training_;
  const std::vector<const Stage*> stages_;
  bool sums_by_stage_ = false;
  const Stage* stage_;  // the one being worked on
  PlanBuilder& plan_;
  std::vector<uint32_t> pure_data_;      // axes along which no parameter is split or shared
  std::vector<uint32_t> data_of_dense_;  // or split and shared only by experts
  std::vector<Matrix> matrices_;
  std::vector<PlacedVector> vectors_;
  std::vector<VectorGroup> groups_;
  std::vector<Bucket> buckets_;
  std::map<std::pair<uint64_t, uint64_t>, BufferId>
      blocks_;                             // blocks that several matrices share, by size
  std::vector<BufferId> optimizer_state_;  // as Adam writes it: kAdam in sim/schedule/kernel.h
  std::vector<BufferId> state_on_host_;    // if it is offloaded
  double update_elements_ = 0;             // of all parameters that this rank updates
  double vector_elements_ = 0;             // those of vectors among them
  std::vector<uint32_t> ended_;            // matrices whose gradients wait for those of their group
  std::vector<uint32_t> put_off_;  // matrices whose shares are accumulated at the end of backward
  StreamId beside_;                // where shares are accumulated that are summed beside backward
  AdamAgain validation_ = kAdamOnce;
  uint32_t micro_batch_ = 0;
  bool is_last_ = false;
  bool is_last_chunk_ = true;
  bool goes_backward_ = false;  // layers come last to first
};

// The axes along which nothing of the model is split or shared: those that only split the batch.
// With `dense_of`, matrices of experts do not count.
std::vector<uint32_t> PureDataAxes(const Strategy& strategy, const Network* dense_of = nullptr);

}  // namespace rehearse
