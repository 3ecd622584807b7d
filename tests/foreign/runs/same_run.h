// An imported scenario beside one that was written by hand: the same run, in that it is planned
// from the same numbers.
#pragma once

#include <string>
#include <variant>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "scenarios/readers/scenario.h"
#include "sim/base/json_document.h"

namespace rehearse {

inline std::string DescribeRun(const std::string& scenario) {
  const Scenario read = ReadScenario(JsonDocument::FromText(scenario, "scenario"));
  const auto& work = std::get<Workload>(read.jobs.front().work);
  const Training& training = work.training;
  std::string text =
      fmt::format("{} of {} devices\n{} parameters, {} layers\n{}\n",
                  read.jobs.front().placement.size(), read.cluster->device_count(),
                  work.network->Parameters(), work.network->layers, work.strategy.name);
  for (const MeshAxis& axis : work.strategy.mesh.axes())
    text += fmt::format("{} {}\n", axis.name, axis.size);
  text +=
      fmt::format("batch {}, sequence {}, micro-batches {}, recomputation {}, attention {}\n",
                  training.batch, training.sequence, training.micro_batches,
                  static_cast<int>(training.recomputation), static_cast<int>(training.attention));
  text += fmt::format(
      "products {}, kernels {}, moments {}, fused {} {}, experts {} {} {}, buckets {}, overlaps {} "
      "{} {}\n",
      static_cast<int>(training.products), static_cast<int>(training.kernels),
      static_cast<int>(training.moments), training.fused_cross_entropy, training.fused_accumulation,
      training.fused_experts, training.sequential_experts, training.fused_permutation,
      work.strategy.bucket_elements, work.strategy.asynchronous_input_gradient,
      work.strategy.asynchronous_data_gradient, work.strategy.gathers_beside_forward);
  if (work.pipeline) {
    text +=
        fmt::format("{} stages, {} actions, units {}\n", work.pipeline->places.ranks,
                    work.pipeline->actions.size(), fmt::join(work.pipeline->units_of_stage, " "));
  }
  return text;
}

}  // namespace rehearse
