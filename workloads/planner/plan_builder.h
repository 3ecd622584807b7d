// Tensors on a mesh and the ops that work on them: the planner writes a Schedule with these.
//
// Above RoleBuilder, which knows buffers and dependencies, this knows layouts: it cuts tensors
// into each rank's piece, gives buffers their shapes and regions, and turns a change of layout
// into the collectives of the cheapest path (workloads/layouts/redistribution.h). Pieces that
// arrive stacked are put side by side by a copy, as after PyTorch's all_gather; a slice is a view.
// Not thread-safe.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/base/error.h"
#include "workloads/layouts/redistribution.h"
#include "workloads/planner/kernel_costs.h"
#include "workloads/planner/role_builder.h"
#include "workloads/planner/step_communicators.h"

namespace rehearse {

// A matrix as it lies on the mesh: global shape, layout, and this rank's piece of it.
struct Tensor {
  std::string name;
  uint64_t rows = 0;
  uint64_t columns = 0;
  Layout layout;
  BufferId buffer;
  DType dtype = DType::kBf16;
};

class PlanBuilder {
 public:
  using Issue = RoleBuilder::Issue;

  // A role with that name. The communicators are those of all roles of the step, and must outlive
  // this.
  PlanBuilder(std::string role, StepCommunicators* communicators, DType precision,
              std::vector<AxisCost> costs, Place place);

  const DeviceMesh& mesh() const { return communicators_.mesh(); }  // of one stage
  const StepCommunicators& communicators() const { return communicators_; }
  const std::vector<uint32_t>& sizes() const { return sizes_; }
  const Place& place() const { return place_; }
  DType precision() const { return precision_; }
  double element() const { return SizeOf(precision_).value(); }
  uint32_t SizeOfAxes(const std::vector<uint32_t>& axes) const;
  // Along these axes, the last one varying fastest.
  CommunicatorId CommunicatorOf(const std::vector<uint32_t>& axes);
  CommunicatorId CommunicatorNamed(const std::vector<uint32_t>& axes, const std::string& name);
  // The ranks of the pipeline with the same coordinates, separate from their other communicators.
  CommunicatorId PipelineNamed(const std::string& name);
  // Pairs each rank of one mesh of the pipeline with its counterpart on another.
  CommunicatorId PairsOf(uint32_t rank, uint32_t other);

  void set_tag(const Tag& tag) { builder_.set_tag(tag); }
  const Tag& tag() const { return builder_.tag(); }
  void set_layer(int32_t layer) { set_tag({tag().phase, layer, tag().micro_batch}); }
  // If chunks take turns, nothing blocks (or nothing but in the backward pass): an op waits for the
  // buffers that it needs.
  void set_runs_chunks(bool runs_chunks, bool blocks_backward) {
    runs_chunks_ = runs_chunks;
    blocks_backward_ = blocks_backward;
  }

  // Along this axis ranks share sequences of so many rows; call this before there are tensors.
  void set_sequences(uint32_t axis, uint64_t sequence, bool balanced);

  // "norm 1 of layer 3" inside a layer.
  std::string Label(const std::string& name) const;

  uint64_t LocalRows(const Tensor& tensor) const;
  uint64_t LocalColumns(const Tensor& tensor) const;
  double LocalElements(const Tensor& tensor) const;

  // A new buffer that holds this rank's piece, an activation in the plan's precision unless said
  // otherwise.
  Tensor MakeTensor(std::string name, uint64_t rows, uint64_t columns, const Layout& layout);
  Tensor MakeTensor(std::string name, uint64_t rows, uint64_t columns, const Layout& layout,
                    DType dtype, Bytes element, BufferKind kind = BufferKind::kActivation);
  // `numbers` fp32 values for each row of `like`.
  Tensor MakeRowValues(std::string name, const Tensor& like, uint64_t numbers,
                       BufferKind kind = BufferKind::kBuffer);
  BufferId AddBuffer(Buffer buffer) { return builder_.AddBuffer(std::move(buffer)); }
  // So many rows of a buffer; nothing of one whose rows lie where the rank's place says, or that is
  // a run of elements.
  std::optional<BufferId> ViewOfRows(BufferId of, uint64_t row, uint64_t rows);
  // As many equal runs of rows.
  std::vector<BufferId> EqualRows(BufferId of, uint32_t runs);
  const Buffer& BufferOf(BufferId buffer) const { return builder_.BufferOf(buffer); }
  void Borrow(BufferId buffer) { builder_.Borrow(buffer); }
  // The region of a matrix with this layout, its shares cut along `flat_axes` (outermost first).
  uint32_t RegionOf(uint64_t rows, uint64_t columns, const Layout& layout,
                    const std::vector<uint32_t>& flat_axes = {});

  OpId AddMemoryOp(std::string name, Kernel kernel, double bytes, std::vector<BufferId> reads,
                   std::vector<BufferId> writes, uint32_t kernels = 1,
                   std::vector<double> attributes = {});
  OpId AddMemoryOp(std::string name, Kernel kernel, const KernelCost& cost,
                   std::vector<BufferId> reads, std::vector<BufferId> writes,
                   std::vector<double> attributes = {});
  // One kernel on a compute stream other than the first, which waits only for its buffers.
  OpId AddMemoryOpBeside(std::string name, Kernel kernel, double bytes, StreamId stream,
                         std::vector<BufferId> reads, std::vector<BufferId> writes);
  // The host's own work on arrays in its memory, which waits for them and for what it did before.
  OpId AddHostOp(std::string name, Kernel kernel, double bytes, std::vector<BufferId> reads,
                 std::vector<BufferId> writes, std::vector<double> attributes);
  // How many bytes a product moves, with A as it is here.
  Bytes BytesOfGemm(const Gemm& gemm, BufferId a) const;
  // C(m×n) = A·B in the type that A is cast to, else in the plan's precision; C += A·B if
  // `accumulate`. `bytes` is the memory traffic if it is not that of the three arrays.
  OpId AddGemm(std::string name, const Gemm& gemm, BufferId a, BufferId b, BufferId c,
               bool accumulate = false, std::optional<Bytes> bytes = std::nullopt);
  // The next products are equal parts, by rows and columns of C, of one kernel; with 1 and 1 they
  // are kernels again.
  void set_parts(uint32_t rows, uint32_t columns) {
    row_parts_ = rows;
    column_parts_ = columns;
    has_launched_ = false;
  }
  OpId AddCompute(std::string name, Compute compute, std::vector<BufferId> reads,
                  std::vector<BufferId> writes);
  // How long the host needs to launch a kernel or a collective. From then on the kernels of a layer
  // (or of what comes between layers) begin when everything before them has been launched; 0: they
  // do not wait for that.
  void set_host_launch(Seconds time) { host_launch_ = time; }
  // Which graph of its layer the next ops belong to; they are launched at once. 0: none.
  void set_graph(uint32_t graph) { graph_ = graph; }
  // So many more than ops say, before the next one.
  void CountLaunches(uint32_t launches);
  OpId AddCollective(std::string name, CollectiveKind kind, const std::vector<uint32_t>& axes,
                     double bytes, DType dtype, Issue issue, std::vector<BufferId> reads,
                     std::vector<BufferId> writes);
  OpId AddCollective(std::string name, Collective collective, Issue issue,
                     std::vector<BufferId> reads, std::vector<BufferId> writes);
  // Sends this rank's piece of a tensor to its counterpart on another rank of the pipeline, or
  // receives it. The next kernel waits for a blocking send.
  OpId AddSend(const Tensor& tensor, CommunicatorId communicator, uint32_t rank, StreamId stream,
               Issue issue);
  OpId AddReceive(const Tensor& tensor, CommunicatorId communicator, uint32_t rank,
                  StreamId stream);
  // One number in fp32, between neighbours on a communicator that PipelineNamed made; nothing waits
  // for it but its buffer.
  OpId AddSend(std::string name, BufferId number, CommunicatorId communicator, uint32_t rank);
  OpId AddReceive(std::string name, BufferId number, CommunicatorId communicator, uint32_t rank);
  // Copies buffers to new ones on the host, or back from there, and returns the new ones. They
  // begin after `since`, and nothing waits for them but what needs the buffers.
  std::vector<BufferId> CopyToHost(const std::string& name, const std::vector<BufferId>& buffers,
                                   OpId since);
  std::vector<BufferId> CopyFromHost(const std::string& name, const std::vector<BufferId>& buffers,
                                     OpId since);
  // From arrays, or views of some, to others on the host, and from there to where they are.
  void SendToHost(const std::string& name, const std::vector<BufferId>& buffers,
                  const std::vector<BufferId>& on_host, OpId since);
  void ReturnFromHost(const std::string& name, const std::vector<BufferId>& on_host,
                      const std::vector<BufferId>& buffers, OpId since);
  void Await(OpId op) { builder_.Await(op); }
  OpId LastCompute() const { return builder_.LastCompute(); }
  OpId LastOp() const { return OpId(static_cast<uint32_t>(role().ops.size() - 1)); }
  StreamId AddStream(std::string name, StreamKind kind = StreamKind::kCommunication) {
    return builder_.AddStream(std::move(name), kind);
  }
  // All-reduces `values` (fp32, in place) along the axes that split the columns of `like`.
  void AllReduceRowValues(const std::string& name, const Tensor& values, const Tensor& like,
                          Reduction reduction = Reduction::kSum);

  // Throws Error, naming the tensor, if no redistribution reaches `target`.
  const std::vector<RedistributionStep>& PathTo(const Tensor& tensor, const Layout& target);
  Tensor Take(const RedistributionStep& step, Tensor tensor, Issue issue = Issue::kBlocking);
  Tensor Redistribute(Tensor tensor, const Layout& target, Issue issue = Issue::kBlocking);

  const Role& role() const { return builder_.role(); }
  void AwaitSince(size_t first_op) { builder_.AwaitSince(first_op); }
  void AddRepeat(const Repeat& repeat) { builder_.AddRepeat(repeat); }
  Role Build() { return builder_.Build(); }

 private:
  SequenceOrder OrderOf(uint64_t rows, const Layout& layout) const;
  Tensor Slice(const RedistributionStep& step, Tensor tensor);
  std::vector<BufferId> MakeCopies(const std::vector<BufferId>& buffers, bool on_host);
  void AddHostCopy(CollectiveKind kind, const std::string& name, const std::vector<BufferId>& from,
                   const std::vector<BufferId>& to, OpId since);
  BufferId MakePieces(const Tensor& tensor, uint64_t rows, uint64_t columns);
  BufferId Contiguous(const Tensor& tensor);
  Compute MemoryWork(Kernel kernel, double bytes) const;
  BufferId StackPieces(const Tensor& tensor, uint32_t pieces);
  CommunicatorId WithStream(CommunicatorId communicator);
  StreamId HostStream();

  StepCommunicators& communicators_;
  const DType precision_;
  const std::vector<AxisCost> costs_;
  const Place place_;
  bool runs_chunks_ = false;
  bool blocks_backward_ = false;
  uint32_t sequence_axis_ = 0;
  SequenceOrder sequences_;  // without its block, which is each tensor's own
  Seconds host_launch_;
  uint32_t launches_ = 0;  // since the host's last op
  Tag launched_;           // the layer that they belong to
  uint32_t graph_ = 0;
  uint32_t row_parts_ = 1;
  uint32_t column_parts_ = 1;
  bool has_launched_ = false;  // the kernel of which products are parts
  uint32_t launched_graph_ = 0;
  StreamId host_;
  std::map<CollectiveKind, StreamId> copy_streams_;
  std::vector<uint32_t> sizes_;
  RoleBuilder builder_;
  using RegionKey = std::tuple<uint64_t, uint64_t, uint64_t, std::vector<uint32_t>>;
  std::map<RegionKey, uint32_t> regions_;
  using PathKey = std::tuple<uint64_t, uint64_t, uint64_t, uint64_t>;
  std::map<PathKey, std::vector<RedistributionStep>> paths_;
};

// What is planned while this lives belongs to the layer; then the tag is what it was before.
class LayerTag {
 public:
  LayerTag(PlanBuilder* builder, int32_t layer) : builder_(*builder), before_(builder->tag()) {
    builder->set_layer(layer);
  }
  ~LayerTag() { builder_.set_tag(before_); }
  LayerTag(const LayerTag&) = delete;
  LayerTag& operator=(const LayerTag&) = delete;

 private:
  PlanBuilder& builder_;
  const Tag before_;
};

}  // namespace rehearse
