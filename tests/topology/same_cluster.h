// Whether two clusters are the same in everything that a Cluster shows. For tests.
#pragma once

#include <map>

#include <gtest/gtest.h>

#include "topology/cluster/cluster.h"
#include "topology/devices/attention_model.h"
#include "topology/devices/gemm_model.h"

namespace rehearse {

inline void ExpectSameDevice(const DeviceSpec& a, const DeviceSpec& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.description, b.description);
  EXPECT_EQ(a.compute_capability, b.compute_capability);
  EXPECT_EQ(a.matrix_peak_16, b.matrix_peak_16);
  EXPECT_EQ(a.matrix_peak_8, b.matrix_peak_8);
  EXPECT_EQ(a.matrix_peak_4, b.matrix_peak_4);
  EXPECT_EQ(a.matrix_peak_32, b.matrix_peak_32);
  EXPECT_EQ(a.vector_peak_32, b.vector_peak_32);
  EXPECT_EQ(a.vector_peak_64, b.vector_peak_64);
  EXPECT_EQ(a.memory, b.memory);
  EXPECT_EQ(a.memory_bandwidth, b.memory_bandwidth);
  EXPECT_EQ(a.memory_efficiency, b.memory_efficiency);
  EXPECT_EQ(a.cache, b.cache);
  if (a.cache > Bytes(0)) {
    EXPECT_EQ(a.cache_bandwidth, b.cache_bandwidth);
  }
  EXPECT_EQ(a.strided_element, b.strided_element);
  EXPECT_EQ(a.gemm_efficiency, b.gemm_efficiency);
  EXPECT_EQ(a.gemm_scale, b.gemm_scale);
  EXPECT_EQ(a.attention_forward_efficiency, b.attention_forward_efficiency);
  EXPECT_EQ(a.attention_backward_efficiency, b.attention_backward_efficiency);
  EXPECT_EQ(a.launch_overhead, b.launch_overhead);
  EXPECT_EQ(a.slowdown, b.slowdown);
  EXPECT_EQ(a.host_cores, b.host_cores);
  const auto sources = [](const DeviceSpec& spec) {  // their order means nothing
    return std::multimap(spec.sources.begin(), spec.sources.end());
  };
  EXPECT_EQ(sources(a), sources(b));
  ASSERT_EQ(a.gemm_model_4 == nullptr, b.gemm_model_4 == nullptr);
  if (a.gemm_model_4) {
    EXPECT_EQ(*a.gemm_model_4, *b.gemm_model_4);
  }
  ASSERT_EQ(a.gemm_model_8 == nullptr, b.gemm_model_8 == nullptr);
  if (a.gemm_model_8) {
    EXPECT_EQ(*a.gemm_model_8, *b.gemm_model_8);
  }
  ASSERT_EQ(a.gemm_model == nullptr, b.gemm_model == nullptr);
  if (a.gemm_model) {
    EXPECT_EQ(*a.gemm_model, *b.gemm_model);
  }
  ASSERT_EQ(a.attention_model == nullptr, b.attention_model == nullptr);
  if (a.attention_model) {
    EXPECT_EQ(*a.attention_model, *b.attention_model);
  }
  ASSERT_EQ(a.gemm_points.size(), b.gemm_points.size());
  for (size_t i = 0; i < a.gemm_points.size(); ++i) {
    EXPECT_EQ(a.gemm_points[i].mode, b.gemm_points[i].mode);
    EXPECT_EQ(a.gemm_points[i].m, b.gemm_points[i].m);
    EXPECT_EQ(a.gemm_points[i].n, b.gemm_points[i].n);
    EXPECT_EQ(a.gemm_points[i].k, b.gemm_points[i].k);
    EXPECT_EQ(a.gemm_points[i].efficiency, b.gemm_points[i].efficiency);
  }
}

inline void ExpectSameCluster(const Cluster& a, const Cluster& b) {
  EXPECT_EQ(a.name(), b.name());
  EXPECT_EQ(a.notes(), b.notes());
  EXPECT_EQ(a.step_overhead(), b.step_overhead());
  EXPECT_EQ(a.collective_overhead(), b.collective_overhead());
  EXPECT_EQ(a.channel_overhead(), b.channel_overhead());
  EXPECT_EQ(a.devices(), b.devices());
  EXPECT_EQ(a.node_count(), b.node_count());
  ASSERT_EQ(a.vertex_count(), b.vertex_count());
  for (VertexId id = 0; id < a.vertex_count(); ++id) {
    const Vertex& x = a.VertexAt(id);
    const Vertex& y = b.VertexAt(id);
    EXPECT_EQ(x.name, y.name);
    EXPECT_EQ(x.kind, y.kind);
    EXPECT_EQ(x.node, y.node);
  }
  ASSERT_EQ(a.device_count(), b.device_count());
  for (uint32_t rank = 0; rank < a.device_count(); ++rank)
    ExpectSameDevice(a.DeviceOf(rank), b.DeviceOf(rank));
  ASSERT_EQ(a.link_count(), b.link_count());
  for (uint32_t i = 0; i < a.link_count(); ++i) {
    const ClusterLink& x = a.Link(i);
    const ClusterLink& y = b.Link(i);
    EXPECT_EQ(a.LinkName(i), b.LinkName(i));
    EXPECT_EQ(x.kind, y.kind);
    EXPECT_EQ(x.bandwidth, y.bandwidth) << a.LinkName(i);
    EXPECT_EQ(x.efficiency, y.efficiency) << a.LinkName(i);
    EXPECT_EQ(x.latency, y.latency) << a.LinkName(i);
    EXPECT_EQ(a.SourceOf(i), b.SourceOf(i));
    EXPECT_EQ(a.TargetOf(i), b.TargetOf(i));
  }
}

}  // namespace rehearse
