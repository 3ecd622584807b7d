// Sums of gradients over the data axes in buckets, and gathers of what was updated in shares, as in
// Megatron-Core's DistributedDataParallel and distributed optimizer (docs.nvidia.com/megatron-core,
// DistributedDataParallelConfig). A bucket is full when it has `bucket_elements` or more; matrices
// fill it in the order in which their gradients come. Its sum begins when the last of them is
// there, with several stages on a rank when a whole stage is (SumStage). Without overlap there is
// one bucket for all.
//
// Gathers beside the forward pass are those of the previous step: each step begins with updated
// shares, gathers the first bucket, which is waited for, and at the first use of each bucket the
// next one. A rank with several stages gathers whole stages (GatherStage).
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "workloads/planner/parameters.h"

namespace rehearse {

using Issue = PlanBuilder::Issue;

void Parameters::MakeBuckets() {
  const bool is_asked = strategy_.bucket_elements > 0 || strategy_.gathers_beside_forward;
  if (!is_asked) return;
  for (uint32_t stage = 0; stage < stages_.size(); ++stage) {
    const size_t first = buckets_.size();
    MakeBucketsOf(*stages_[stage]);
    for (size_t bucket = first; bucket < buckets_.size(); ++bucket) buckets_[bucket].stage = stage;
  }
}

// Each stage of a rank has its own buckets, whose gradients and first uses come together.
void Parameters::MakeBucketsOf(const Stage& stage) {
  const auto least = static_cast<double>(strategy_.bucket_elements);
  const auto first_bucket = static_cast<uint32_t>(buckets_.size());
  struct Open {
    uint32_t bucket = kNone;
    double elements = 0;
  };
  std::map<std::tuple<std::vector<uint32_t>, std::vector<uint32_t>, DType>, Open> open;
  for (uint32_t index = stage.matrix_end(); index-- > stage.first_matrix();) {
    Matrix& matrix = matrices_[index];
    if (!IsOwner(index) || Shares(matrix, 2)) continue;
    if (matrix.sum_axes.empty() && !Shares(matrix, 1)) continue;
    Open& last = open[{matrix.sum_axes, matrix.share_axes, ParameterType(index)}];
    const bool is_whole = !strategy_.asynchronous_data_gradient && least > 0;
    if (last.bucket == kNone || (!is_whole && last.elements >= least)) {
      last = {static_cast<uint32_t>(buckets_.size()), 0};
      buckets_.emplace_back();
      if (last.bucket > first_bucket) buckets_.back().next = last.bucket - 1;
    }
    matrix.bucket = last.bucket;
    last.elements += matrix.elements;
    buckets_[last.bucket].matrices.push_back(index);
  }
}

void Parameters::EndInBucket(uint32_t index) {
  Bucket& bucket = buckets_[matrices_[index].bucket];
  if (++bucket.ended == bucket.matrices.size() && !sums_by_stage_)
    SumBucket(bucket, Issue::kAsynchronous);
}

void Parameters::SumStage(uint32_t stage) {
  if (!sums_by_stage_ || !strategy_.asynchronous_data_gradient) return;
  for (Bucket& bucket : buckets_) {
    const bool is_complete = bucket.ended == bucket.matrices.size();
    if (bucket.stage != stage || bucket.is_summed || !is_complete) continue;
    bucket.is_summed = true;
    SumBucket(bucket, Issue::kAsynchronous);
  }
}

void Parameters::SumBucket(const Bucket& bucket, Issue issue) {
  const Matrix& first = matrices_[bucket.matrices.front()];
  const Tag tag = plan_.tag();
  SetLayer(network_.matrices[bucket.matrices.back()].layer);
  if (bucket.matrices.size() == 1) {
    SumGradient(bucket.matrices.front(), issue);
  } else {
    std::vector<BufferId> wholes;
    std::vector<BufferId> shares;
    double elements = 0;
    for (const uint32_t index : bucket.matrices) {
      wholes.push_back(matrices_[index].main_gradient);
      shares.push_back(matrices_[index].update_gradient);
      elements += matrices_[index].elements;
    }
    const double bytes = elements * gradient_element();
    if (!first.sum_axes.empty())
      plan_.AddCollective("all-reduce gradients", CollectiveKind::kAllReduce, first.sum_axes, bytes,
                          training_.gradients, issue, wholes, wholes);
    if (Shares(first, 1))
      plan_.AddCollective("reduce-scatter gradients", CollectiveKind::kReduceScatter,
                          first.share_axes, bytes, training_.gradients, issue, wholes, shares);
  }
  plan_.set_tag(tag);
}

void Parameters::GatherBucket(Bucket* bucket, Issue issue) {
  if (bucket->is_gathered) return;
  bucket->is_gathered = true;
  const uint32_t first = bucket->matrices.front();
  if (!Shares(matrices_[first], 1)) return;
  const Tag tag = plan_.tag();
  SetLayer(network_.matrices[bucket->matrices.back()].layer);
  std::vector<BufferId> shares;
  std::vector<BufferId> wholes;
  double elements = 0;
  for (const uint32_t index : bucket->matrices) {
    shares.push_back(matrices_[index].update_share);
    wholes.push_back(matrices_[index].parameter);
    elements += matrices_[index].elements;
  }
  const DType type = ParameterType(first);
  const std::string what =
      bucket->matrices.size() > 1 ? "parameters" : network_.matrices[first].name;
  plan_.AddCollective("all-gather " + what, CollectiveKind::kAllGather, matrices_[first].share_axes,
                      elements * SizeOf(type).value(), type, issue, shares, wholes);
  plan_.set_tag(tag);
}

// Before the first use of a matrix: gathers its bucket, then the next one on the way forward.
void Parameters::Freshen(uint32_t index) {
  if (!strategy_.gathers_beside_forward) return;
  const uint32_t bucket = matrices_[matrices_[index].owner].bucket;
  if (bucket == kNone) return;
  GatherBucket(&buckets_[bucket], Issue::kAsynchronous);
  const uint32_t next = buckets_[bucket].next;
  if (next != kNone) GatherBucket(&buckets_[next], Issue::kAsynchronous);
}

void Parameters::GatherStage(uint32_t stage) {
  if (!strategy_.gathers_beside_forward) return;
  for (size_t bucket = buckets_.size(); bucket-- > 0;)
    if (buckets_[bucket].stage == stage) GatherBucket(&buckets_[bucket], Issue::kAsynchronous);
}

void Parameters::GatherUpdated() {
  for (Bucket& bucket : buckets_) GatherBucket(&bucket, Issue::kBlocking);
  for (uint32_t index = 0; index < matrices_.size(); ++index) {
    const Matrix& matrix = matrices_[index];
    if (!IsOwner(index) || !Shares(matrix, 1) || Shares(matrix, 3)) continue;
    if (matrix.bucket != kNone) continue;
    SetLayer(network_.matrices[index].layer);
    const DType type = ParameterType(index);
    plan_.AddCollective("all-gather " + network_.matrices[index].name, CollectiveKind::kAllGather,
                        matrix.share_axes, matrix.elements * SizeOf(type).value(), type,
                        Issue::kBlocking, {matrix.update_share}, {matrix.parameter});
  }
}

}  // namespace rehearse
