#include "real/cuda/gpu_program.h"

#include <algorithm>

#include <fmt/format.h>

#include "real/cuda/gemm.h"
#include "real/cuda/routing_table.h"
#include "real/kernels/numbers.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

NcclType NcclTypeOf(Storage storage) {
  switch (storage) {
    case Storage::kFp32:
      return NcclType::kFp32;
    case Storage::kBf16:
      return NcclType::kBf16;
    case Storage::kFp16:
      return NcclType::kFp16;
  }
  return NcclType::kFp32;
}

bool MakesLoss(Kernel kernel) {
  return kernel == Kernel::kCrossEntropy || kernel == Kernel::kSquaredError;
}

class Maker {
 public:
  Maker(const RankPlan& plan, const GpuAddresses& addresses, uint32_t multiprocessors)
      : plan_(plan), addresses_(addresses), multiprocessors_(multiprocessors) {
    program_.scratch_floats.resize(plan.role->streams.size());
  }

  GpuProgram Run() {
    for (uint32_t i = 0; i < plan_.role->ops.size(); ++i) AddOp(i);
    return std::move(program_);
  }

 private:
  void AddOp(uint32_t id) {
    const Op& op = plan_.role->ops[id];
    GpuOp made;
    uint64_t loss_rows = 0;
    if (const auto* compute = std::get_if<Compute>(&op.work)) {
      if (compute->kernel == Kernel::kNone) {
        throw Error(
            fmt::format("role \"{}\": op {} \"{}\" only takes time: CPU ranks wait for it, but "
                        "GPUs have no kernel for it",
                        plan_.role->name, id, op.name));
      }
      if (IsHostWork(op.work)) {
        throw Error(fmt::format(
            "role \"{}\": op {} \"{}\" is the host's own work, which CPU ranks do and GPUs do not; "
            "expected \"optimizer_on_host\": false",
            plan_.role->name, id, op.name));
      }
      made.operands = AddOperands(op);
      if (!IsProduct(compute->kernel)) {
        made.kernel.push_back(MakeKernel(op.stream.index(), *compute, made.operands));
      }
      if (MakesLoss(compute->kernel)) loss_rows = plan_.buffers[op.writes[0].index()].rows;
    } else {
      const size_t members = std::max(op.reads.size(), op.writes.size());
      for (size_t i = 0; i < members; ++i) made.communication.push_back(CommunicationOf(op, i));
      CheckGroup(op, made.communication);
    }
    program_.ops.push_back(std::move(made));
    program_.loss_rows.push_back(loss_rows);
  }

  OperandRun AddOperands(const Op& op) {
    const OperandRun run{program_.operands.size(), static_cast<uint32_t>(op.reads.size()),
                         static_cast<uint32_t>(op.writes.size())};
    for (const auto* buffers : {&op.reads, &op.writes}) {
      for (const BufferId id : *buffers) {
        program_.operands.push_back(OperandOf(plan_, addresses_, id, op.tag.micro_batch));
      }
    }
    return run;
  }

  GpuKernel MakeKernel(uint32_t stream, const Compute& compute, const OperandRun& run) {
    GpuKernel work;
    work.run = run;
    work.kernel = compute.kernel;
    work.first_attribute = program_.attributes.size();
    work.attribute_count = static_cast<uint32_t>(compute.attributes.size());
    program_.attributes.insert(program_.attributes.end(), compute.attributes.begin(),
                               compute.attributes.end());
    const std::span<const GpuOperand> operands(program_.operands.data() + run.first,
                                               size_t{run.reads} + run.writes);
    const std::vector<double> routing = RoutingTable(compute, operands, run.reads);
    program_.attributes.insert(program_.attributes.end(), routing.begin(), routing.end());
    work.plan = PlanLaunches(compute, operands, run.reads, multiprocessors_);
    uint64_t& scratch = program_.scratch_floats[stream];
    scratch = std::max(scratch, work.plan.scratch_floats);
    return work;
  }

  GpuKernel MakeCopy(uint32_t stream, const GpuOperand& from, const GpuOperand& to) {
    const OperandRun run{program_.operands.size(), 1, 1};
    program_.operands.insert(program_.operands.end(), {from, to});
    Compute copy;
    copy.kernel = Kernel::kCopy;
    return MakeKernel(stream, copy, run);
  }

  // The same matrix, densely stored in memory of the stream.
  GpuOperand Packed(uint32_t stream, const GpuOperand& operand, bool is_output,
                    uint64_t elements) const {
    GpuOperand packed = operand;
    packed.stride = operand.columns;
    packed.data = addresses_.packed(stream, is_output, elements * SizeOf(operand.storage));
    return packed;
  }

  // Whether `elements` from the operand's first one on are contiguous in its memory.
  bool IsRun(BufferId id, uint64_t elements) const {
    const BufferPlan& own = plan_.buffers[id.index()];
    if (!own.IsDense()) return false;
    if (own.elements() == elements) return true;
    const bool is_view = plan_.role->buffers[id.index()].view.has_value();
    return !is_view && plan_.memories[own.memory].elements >= elements;
  }

  // The i-th collective of the op's group.
  GpuCommunication CommunicationOf(const Op& op, size_t i) {
    GpuCommunication work;
    const uint32_t stream = op.stream.index();
    const bool receives = std::holds_alternative<Receive>(op.work);
    const bool sends = std::holds_alternative<Send>(op.work);
    GpuOperand from{};
    GpuOperand to{};
    if (!receives) from = OperandOf(plan_, addresses_, op.reads[i], op.tag.micro_batch);
    if (!sends) to = OperandOf(plan_, addresses_, op.writes[i], op.tag.micro_batch);
    uint64_t from_elements = from.rows * from.columns;
    uint64_t to_elements = to.rows * to.columns;
    work.buffers.elements = receives ? to_elements : from_elements;
    if (const auto* collective = std::get_if<Collective>(&op.work)) {
      if (from.storage != to.storage) {
        throw Error(fmt::format("role \"{}\": collective \"{}\" reads and writes different types",
                                plan_.role->name, op.name));
      }
      const uint64_t p = plan_.groups[collective->communicator.index()]->size();
      if (collective->kind == CollectiveKind::kAllGather) to_elements = p * from_elements;
      if (collective->kind == CollectiveKind::kReduceScatter) {
        from_elements = p * to_elements;
        work.buffers.elements = to_elements;
      }
    }
    work.buffers.type = NcclTypeOf(receives ? to.storage : from.storage);
    if (!receives) {
      work.buffers.from = from.data;
      if (!IsRun(op.reads[i], from_elements)) {
        const GpuOperand packed = Packed(stream, from, false, from_elements);
        work.pack.push_back(MakeCopy(stream, from, packed));
        work.buffers.from = packed.data;
        work.clear = packed.data;
        work.clear_bytes = (from_elements - from.rows * from.columns) == 0
                               ? 0
                               : from_elements * SizeOf(from.storage);
      }
    }
    if (!sends) {
      work.buffers.to = to.data;
      if (!IsRun(op.writes[i], to_elements)) {
        const GpuOperand packed = Packed(stream, to, true, to_elements);
        // In a reduce only the root's result counts: the others keep what they have.
        work.pack.push_back(MakeCopy(stream, to, packed));
        work.unpack.push_back(MakeCopy(stream, packed, to));
        work.buffers.to = packed.data;
      }
    }
    return work;
  }

  // What has to be packed uses the stream's memory, of which there is only one piece.
  void CheckGroup(const Op& op, const std::vector<GpuCommunication>& group) const {
    for (const GpuCommunication& member : group) {
      if (group.size() == 1 || IsHostCopy(op.work) ||
          (member.pack.empty() && member.unpack.empty()))
        continue;
      throw Error(fmt::format("role \"{}\": group \"{}\" has buffers that are not dense",
                              plan_.role->name, op.name));
    }
  }

  const RankPlan& plan_;
  const GpuAddresses& addresses_;
  uint32_t multiprocessors_;
  GpuProgram program_;
};

}  // namespace

GpuProgram MakeGpuProgram(const RankPlan& plan, const GpuAddresses& addresses,
                          uint32_t multiprocessors) {
  return Maker(plan, addresses, multiprocessors).Run();
}

GpuOperand OperandOf(const RankPlan& plan, const GpuAddresses& addresses, BufferId buffer,
                     int32_t micro_batch) {
  const BufferPlan& own = plan.buffers[buffer.index()];
  GpuOperand operand{};
  operand.storage = addresses.storage[own.memory];
  operand.data =
      static_cast<char*>(addresses.memories[own.memory]) + own.offset * SizeOf(operand.storage);
  operand.rows = own.rows;
  operand.columns = own.columns;
  operand.stride = own.stride;
  operand.global_rows = own.place ? own.place->global_rows : own.rows;
  operand.global_columns = own.place ? own.place->global_columns : own.columns;
  operand.global_row = own.place ? own.place->row : 0;
  operand.global_column = own.place ? own.place->column : 0;
  operand.first_batch_row = static_cast<uint64_t>(micro_batch) * operand.global_rows;
  if (own.place) operand.order = own.place->order;
  operand.placed = own.place ? 1 : 0;
  return operand;
}

uint64_t RandomStreamOf(const Compute& compute, const Tag& tag, uint64_t seed) {
  switch (compute.kernel) {
    case Kernel::kEmbedding:
    case Kernel::kEmbeddingBackward:
      return SeedOf(seed, "tokens");
    case Kernel::kExponentials:
    case Kernel::kCrossEntropyBackward:
      return SeedOf(seed, "labels");
    case Kernel::kSquaredError:
      return SeedOf(seed, "targets");
    case Kernel::kResidual:
    case Kernel::kDropout:
      return DropoutMask(seed, tag.layer, tag.micro_batch,
                         static_cast<uint64_t>(compute.attributes.at(1)), compute.attributes.at(0),
                         1)
          .stream();
    default:
      return 0;
  }
}

}  // namespace rehearse
