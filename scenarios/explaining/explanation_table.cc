#include "scenarios/explaining/explanation_table.h"

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/known_names.h"

namespace rehearse {
namespace {

DataTable PathTable(const Explanation& explanation) {
  DataTable table({{"op", CellKind::kText},
                   {"kind", CellKind::kText},
                   {"rank", CellKind::kInteger},
                   {"phase", CellKind::kText},
                   {"layer", CellKind::kInteger},
                   {"micro_batch", CellKind::kInteger},
                   {"begin_seconds", CellKind::kNumber},
                   {"end_seconds", CellKind::kNumber}});
  for (const PathStep& step : explanation.path) {
    table.Add({step.name.op, step.name.kind, step.rank, Name(step.phase), step.layer,
               step.micro_batch, step.begin.value(), step.end.value()});
  }
  return table;
}

DataTable ShareTable(const std::vector<PathShare>& shares, Seconds step) {
  DataTable table({{"name", CellKind::kText},
                   {"steps", CellKind::kInteger},
                   {"seconds", CellKind::kNumber},
                   {"share", CellKind::kNumber}});
  for (const PathShare& share : shares) {
    table.Add({share.name, share.steps, share.seconds.value(),
               step > Seconds(0) ? share.seconds / step : 0.0});
  }
  return table;
}

DataTable KindTable(const Explanation& explanation) {
  return ShareTable(explanation.path_by_kind, explanation.result.step);
}

DataTable OpTable(const Explanation& explanation) {
  return ShareTable(explanation.path_by_op, explanation.result.step);
}

DataTable LayerTable(const Explanation& explanation) {
  return ShareTable(explanation.path_by_layer, explanation.result.step);
}

DataTable SlackTable(const Explanation& explanation) {
  DataTable table({{"op", CellKind::kText},
                   {"kind", CellKind::kText},
                   {"runs", CellKind::kInteger},
                   {"least_seconds", CellKind::kNumber},
                   {"median_seconds", CellKind::kNumber}});
  for (const NamedSlack& slack : explanation.slack) {
    table.Add(
        {slack.name.op, slack.name.kind, slack.runs, slack.least.value(), slack.median.value()});
  }
  return table;
}

DataTable ExposureTable(const Explanation& explanation) {
  DataTable table({{"op", CellKind::kText},
                   {"axis", CellKind::kText},
                   {"operations", CellKind::kNumber},
                   {"seconds", CellKind::kNumber},
                   {"exposed_seconds", CellKind::kNumber}});
  for (const NamedExposure& exposure : explanation.exposed) {
    table.Add({exposure.name.op, exposure.name.kind, exposure.operations, exposure.seconds.value(),
               exposure.exposed.value()});
  }
  return table;
}

DataTable BottleneckTable(const Explanation& explanation) {
  DataTable table({{"op", CellKind::kText},
                   {"axis", CellKind::kText},
                   {"link", CellKind::kText},
                   {"link_kind", CellKind::kText},
                   {"transfers", CellKind::kInteger},
                   {"share", CellKind::kNumber}});
  for (const NamedBottleneck& bottleneck : explanation.bottlenecks) {
    table.Add({bottleneck.name.op, bottleneck.name.kind, bottleneck.link, bottleneck.link_kind,
               bottleneck.transfers, bottleneck.share});
  }
  return table;
}

DataTable LinkTable(const Explanation& explanation) {
  DataTable table({{"name", CellKind::kText},
                   {"kind", CellKind::kText},
                   {"capacity_bytes_per_second", CellKind::kNumber},
                   {"utilization", CellKind::kNumber},
                   {"held_back_seconds", CellKind::kNumber},
                   {"most_at_once", CellKind::kInteger}});
  for (const ContendedLink& link : explanation.links) {
    table.Add({link.name, link.kind, link.capacity.value(), link.utilization,
               link.held_back.value(), link.most_at_once});
  }
  return table;
}

DataTable SharerTable(const Explanation& explanation) {
  DataTable table({{"link", CellKind::kText},
                   {"op", CellKind::kText},
                   {"kind", CellKind::kText},
                   {"most_at_once", CellKind::kInteger},
                   {"bytes", CellKind::kNumber}});
  for (const ContendedLink& link : explanation.links) {
    for (const SharingOp& sharer : link.shared_by) {
      table.Add(
          {link.name, sharer.name.op, sharer.name.kind, sharer.most_at_once, sharer.bytes.value()});
    }
  }
  return table;
}

DataTable SensitivityTable(const Explanation& explanation) {
  const Seconds step = explanation.result.step;
  DataTable table({{"what", CellKind::kText},
                   {"better_by", CellKind::kNumber},
                   {"step_seconds", CellKind::kNumber},
                   {"change_seconds", CellKind::kNumber},
                   {"change", CellKind::kNumber}});
  for (const Sensitivity& sensitivity : explanation.sensitivities) {
    const Seconds change = sensitivity.step - step;
    table.Add({sensitivity.what, kBetter, sensitivity.step.value(), change.value(),
               step > Seconds(0) ? change / step : 0.0});
  }
  return table;
}

DataTable NewChoicesTable(const Explanation& explanation) {
  DataTable table({{"what", CellKind::kText},
                   {"axis", CellKind::kText},
                   {"kind", CellKind::kText},
                   {"bytes", CellKind::kNumber},
                   {"algorithm", CellKind::kText},
                   {"protocol", CellKind::kText},
                   {"new_algorithm", CellKind::kText},
                   {"new_protocol", CellKind::kText},
                   {"step_seconds", CellKind::kNumber},
                   {"kept_step_seconds", CellKind::kNumber}});
  for (const Sensitivity& row : explanation.sensitivities) {
    for (const auto& [before, after] : row.anew) {
      table.Add({row.what, before.axis, before.kind, before.bytes.value(), before.algorithm,
                 before.protocol, after.algorithm, after.protocol, row.step.value(),
                 row.kept.value_or(row.step).value()});
    }
  }
  return table;
}

DataTable StagesTable(const Explanation& explanation) {
  const Seconds step = explanation.result.step;
  DataTable table({{"what", CellKind::kText},
                   {"step_seconds", CellKind::kNumber},
                   {"change", CellKind::kNumber},
                   {"idle", CellKind::kNumber},
                   {"memory_bytes", CellKind::kNumber},
                   {"reason", CellKind::kText}});
  for (const StageChange& row : explanation.stages) {
    if (row.refused.empty()) {
      table.Add({row.what, row.step.value(), step > Seconds(0) ? (row.step - step) / step : 0.0,
                 row.idle, row.memory.value(), DataCell()});
    } else {
      table.Add({row.what, DataCell(), DataCell(), DataCell(), DataCell(), row.refused});
    }
  }
  return table;
}

}  // namespace

const std::vector<ExplanationList>& ExplanationLists() {
  static const std::vector<ExplanationList> kLists = {
      {"path", "a step of the critical path", PathTable},
      {"by-kind", "a kind of op on the path", KindTable},
      {"by-op", "an op on the path", OpTable},
      {"by-layer", "a layer on the path", LayerTable},
      {"slack", "an op that could take longer", SlackTable},
      {"exposed", "a collective that is not hidden", ExposureTable},
      {"bottlenecks", "a collective and the link that held it back", BottleneckTable},
      {"links", "a link that held transfers back", LinkTable},
      {"sharers", "an op on such a link", SharerTable},
      {"sensitivities", "a figure that could be better", SensitivityTable},
      {"chosen-anew", "a collective that a library would carry out otherwise with that",
       NewChoicesTable},
      {"stages", "a pipeline with other stages", StagesTable}};
  return kLists;
}

const ExplanationList& FindExplanationList(const std::string& name) {
  std::vector<std::string> names;
  for (const ExplanationList& list : ExplanationLists()) {
    if (name == list.name) return list;
    names.emplace_back(list.name);
  }
  throw Error(fmt::format("--table: found \"{}\"{}", name, KnownNames(name, names)));
}

}  // namespace rehearse
