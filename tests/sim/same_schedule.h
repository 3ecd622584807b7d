// Whether two schedules say the same: the current test fails for each part that differs.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/schedule/schedule.h"

namespace rehearse {
inline void ExpectSameAxes(const std::vector<StridedAxis>& a, const std::vector<StridedAxis>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].extent, b[i].extent);
    EXPECT_EQ(a[i].stride, b[i].stride);
  }
}

inline void ExpectSameCommunicator(const Communicator& a, const Communicator& b) {
  EXPECT_EQ(a.name(), b.name());
  EXPECT_EQ(a.is_strided(), b.is_strided());
  ExpectSameAxes(a.member_axes(), b.member_axes());
  ExpectSameAxes(a.group_axes(), b.group_axes());
  ASSERT_EQ(a.size(), b.size());
  ASSERT_EQ(a.group_count(), b.group_count());
  for (uint32_t group = 0; group < a.group_count(); ++group) {
    for (uint32_t member = 0; member < a.size(); ++member)
      EXPECT_EQ(a.Rank(group, member), b.Rank(group, member));
  }
}

inline void ExpectSameBuffer(const Buffer& a, const Buffer& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.bytes.value(), b.bytes.value());
  EXPECT_EQ(a.dtype, b.dtype);
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.columns, b.columns);
  EXPECT_EQ(a.region, b.region);
  ASSERT_EQ(a.view.has_value(), b.view.has_value());
  if (!a.view) return;
  EXPECT_EQ(a.view->of, b.view->of);
  EXPECT_EQ(a.view->row, b.view->row);
  EXPECT_EQ(a.view->column, b.view->column);
  EXPECT_EQ(a.view->rows_cut_by, b.view->rows_cut_by);
  EXPECT_EQ(a.view->columns_cut_by, b.view->columns_cut_by);
  EXPECT_EQ(a.view->rows_turned, b.view->rows_turned);
}

inline void ExpectSameRegion(const Region& a, const Region& b) {
  EXPECT_EQ(a.rows.size, b.rows.size);
  EXPECT_EQ(a.rows.cut_by, b.rows.cut_by);
  EXPECT_EQ(a.columns.size, b.columns.size);
  EXPECT_EQ(a.columns.cut_by, b.columns.cut_by);
  EXPECT_EQ(a.flat_by, b.flat_by);
}

inline void ExpectSameCompute(const Compute& a, const Compute& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.kernel, b.kernel);
  EXPECT_EQ(a.dtype, b.dtype);
  if (a.kind == ComputeKind::kGemm) {
    EXPECT_EQ(a.gemm.m, b.gemm.m);
    EXPECT_EQ(a.gemm.n, b.gemm.n);
    EXPECT_EQ(a.gemm.k, b.gemm.k);
    EXPECT_EQ(a.gemm.mode, b.gemm.mode);
    EXPECT_EQ(a.gemm.batch, b.gemm.batch);
    EXPECT_EQ(a.tuned, b.tuned);
    EXPECT_EQ(a.row_parts, b.row_parts);
    EXPECT_EQ(a.column_parts, b.column_parts);
  }
  if (a.kind == ComputeKind::kFixed) {
    EXPECT_EQ(a.duration.value(), b.duration.value());
  }
  EXPECT_EQ(a.flops.value(), b.flops.value());
  EXPECT_EQ(a.bytes.value(), b.bytes.value());
  EXPECT_EQ(a.kernels, b.kernels);
  EXPECT_EQ(a.strided, b.strided);
  EXPECT_EQ(a.strided_bytes, b.strided_bytes);
  EXPECT_EQ(a.attributes, b.attributes);
}

inline void ExpectSameCollective(const Collective& a, const Collective& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.dtype, b.dtype);
  EXPECT_EQ(a.reduction, b.reduction);
  EXPECT_EQ(a.algorithm, b.algorithm);
  EXPECT_EQ(a.protocol, b.protocol);
  EXPECT_EQ(a.root, b.root);
  EXPECT_EQ(a.pair_bytes, b.pair_bytes);
}

inline void ExpectSameWork(const Work& a, const Work& b) {
  ASSERT_EQ(a.index(), b.index());
  EXPECT_EQ(CommunicatorOf(a), CommunicatorOf(b));
  EXPECT_EQ(CommunicationBytes(a).value(), CommunicationBytes(b).value());
  if (const auto* compute = std::get_if<Compute>(&a))
    ExpectSameCompute(*compute, std::get<Compute>(b));
  else if (const auto* collective = std::get_if<Collective>(&a))
    ExpectSameCollective(*collective, std::get<Collective>(b));
  else if (const auto* send = std::get_if<Send>(&a))
    EXPECT_EQ(send->peer, std::get<Send>(b).peer);
  else
    EXPECT_EQ(std::get<Receive>(a).peer, std::get<Receive>(b).peer);
}

inline void ExpectSameOp(const Op& a, const Op& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.stream, b.stream);
  EXPECT_EQ(a.tag.phase, b.tag.phase);
  EXPECT_EQ(a.tag.layer, b.tag.layer);
  EXPECT_EQ(a.tag.micro_batch, b.tag.micro_batch);
  EXPECT_EQ(a.after, b.after);
  EXPECT_EQ(a.reads, b.reads);
  EXPECT_EQ(a.writes, b.writes);
  ExpectSameWork(a.work, b.work);
}

inline void ExpectSameRepeat(const Repeat& a, const Repeat& b) {
  EXPECT_EQ(a.begin, b.begin);
  EXPECT_EQ(a.end, b.end);
  EXPECT_EQ(a.times, b.times);
  EXPECT_EQ(a.first_buffer, b.first_buffer);
  EXPECT_EQ(a.end_buffer, b.end_buffer);
  EXPECT_EQ(a.micro_batches, b.micro_batches);
  EXPECT_EQ(a.back, b.back);
}

template <typename Part>
void ExpectSameParts(const char* what, const std::vector<Part>& a, const std::vector<Part>& b,
                     void (*expect_same)(const Part&, const Part&)) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t i = 0; i < a.size(); ++i) {
    SCOPED_TRACE(std::string(what) + " " + std::to_string(i));
    expect_same(a[i], b[i]);
  }
}

inline void ExpectSameStream(const Stream& a, const Stream& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.kind, b.kind);
}

inline void ExpectSameRole(const Role& a, const Role& b) {
  EXPECT_EQ(a.name, b.name);
  ExpectSameParts("stream", a.streams, b.streams, ExpectSameStream);
  ExpectSameParts("buffer", a.buffers, b.buffers, ExpectSameBuffer);
  ExpectSameParts("region", a.regions, b.regions, ExpectSameRegion);
  ExpectSameParts("op", a.ops, b.ops, ExpectSameOp);
  ExpectSameParts("repeat", a.repeats, b.repeats, ExpectSameRepeat);
}

inline void ExpectSame(const Schedule& a, const Schedule& b) {
  ExpectSameParts("communicator", a.communicators, b.communicators, ExpectSameCommunicator);
  ExpectSameParts("role", a.roles, b.roles, ExpectSameRole);
  EXPECT_EQ(a.role_of_rank, b.role_of_rank);
  EXPECT_EQ(a.model_flops.value(), b.model_flops.value());
  EXPECT_EQ(a.hardware_flops.value(), b.hardware_flops.value());
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.token_name, b.token_name);
}

}  // namespace rehearse
